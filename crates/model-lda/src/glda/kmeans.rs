//! K-means clustering of vectors, for initialization.

use super::gaussian::vectors::TypeVectors;
use latens_math::linalg::{Accum, MatMut, MatRef, matmul};
use latens_math::{Rng, sample_index};
use rayon::prelude::*;

const N_ITERATIONS: usize = 20;
/// Number of vectors compared with all centers at once.
const ROWS: usize = 256;

/// Assigns a cluster to each type by weighted k-means with k-means++ initialization (Arthur and Vassilvitskii 2007).
/// Clusters may be empty.
pub(crate) fn kmeans(
    vectors: &TypeVectors,
    weights: &[f64],
    n_clusters: usize,
    rng: &mut Rng,
) -> Vec<u16> {
    let mut centers = first_centers(vectors, weights, n_clusters, rng);
    let mut clusters = Vec::new();
    for _ in 0..N_ITERATIONS {
        let nearest = nearest(vectors, &centers);
        if nearest == clusters {
            break;
        }
        clusters = nearest;
        move_centers(vectors, weights, &clusters, &mut centers);
    }
    clusters
}

fn first_centers(
    vectors: &TypeVectors,
    weights: &[f64],
    n_clusters: usize,
    rng: &mut Rng,
) -> Vec<f32> {
    let dim = vectors.dim();
    let mut centers = Vec::with_capacity(n_clusters * dim);
    let mut distances = vec![f64::INFINITY; vectors.len()];
    for _ in 0..n_clusters {
        let chances: Vec<f64> = match centers.len() {
            0 => weights.to_vec(),
            _ => distances.iter().zip(weights).map(|(d, w)| d * w).collect(),
        };
        // With fewer distinct vectors than clusters, the remaining clusters are empty.
        let is_left = chances.iter().any(|&chance| chance > 0.0);
        let chosen = if is_left { sample_index(&chances, rng) } else { 0 };
        let center = vectors.row(chosen as u32);
        centers.extend_from_slice(center);
        let rows = vectors.values().par_chunks_exact(dim);
        distances.par_iter_mut().zip(rows).with_min_len(ROWS).for_each(|(distance, row)| {
            let square: f32 = row.iter().zip(center).map(|(a, b)| (a - b) * (a - b)).sum();
            *distance = distance.min(f64::from(square));
        });
    }
    centers
}

/// The nearest center c of each vector x, which minimizes |c|²/2 − c·x.
fn nearest(vectors: &TypeVectors, centers: &[f32]) -> Vec<u16> {
    let dim = vectors.dim();
    let n_clusters = centers.len() / dim;
    let squares = centers.chunks_exact(dim).map(|c| 0.5 * c.iter().map(|x| x * x).sum::<f32>());
    let halves: Vec<f32> = squares.collect();
    let centers = MatRef::from_column_major_slice(centers, dim, n_clusters);
    let of_block = |rows: &[f32]| {
        let n = rows.len() / dim;
        let mut dots = vec![0.0; n * n_clusters];
        matmul(
            MatMut::from_column_major_slice_mut(&mut dots, n_clusters, n),
            Accum::Replace,
            centers.transpose(),
            MatRef::from_column_major_slice(rows, dim, n),
        );
        let best = |dots: &[f32]| {
            let mut best = (f32::INFINITY, 0);
            for (k, (half, dot)) in halves.iter().zip(dots).enumerate() {
                let distance = half - dot;
                if distance < best.0 {
                    best = (distance, k as u16);
                }
            }
            best.1
        };
        dots.chunks_exact(n_clusters).map(best).collect::<Vec<u16>>()
    };
    vectors.values().par_chunks(ROWS * dim).flat_map_iter(of_block).collect()
}

fn move_centers(vectors: &TypeVectors, weights: &[f64], clusters: &[u16], centers: &mut [f32]) {
    let dim = vectors.dim();
    let n_clusters = centers.len() / dim;
    let (mut sums, mut totals) = (vec![0.0; centers.len()], vec![0.0; n_clusters]);
    let rows = vectors.values().chunks_exact(dim);
    for ((&cluster, &weight), row) in clusters.iter().zip(weights).zip(rows) {
        let cluster = usize::from(cluster);
        totals[cluster] += weight;
        let sum = &mut sums[cluster * dim..(cluster + 1) * dim];
        sum.iter_mut().zip(row).for_each(|(sum, &x)| *sum += weight * f64::from(x));
    }
    let rows = centers.chunks_exact_mut(dim).zip(sums.chunks_exact(dim)).zip(totals);
    for ((center, sum), total) in rows.filter(|&(_, total)| total > 0.0) {
        center.iter_mut().zip(sum).for_each(|(c, sum)| *c = (sum / total) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separate_clusters_are_found() {
        let mut rng = Rng::new(1);
        let center = |i: usize| [10.0 * (i % 3) as f64, 10.0 * (i / 3) as f64];
        let values: Vec<f32> =
            (0..600).flat_map(|i| center(i % 6).map(|c| (c + rng.normal()) as f32)).collect();
        let vectors = TypeVectors::new(2, values);
        let clusters = kmeans(&vectors, &vec![1.0; 600], 6, &mut rng);
        for i in 6..600 {
            assert_eq!(clusters[i], clusters[i % 6], "vector {i}");
        }
        let mut first = clusters[..6].to_vec();
        first.sort_unstable();
        assert_eq!(first, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn there_may_be_more_clusters_than_vectors() {
        let vectors = TypeVectors::new(1, vec![1.0, 1.0, 5.0]);
        let clusters = kmeans(&vectors, &[1.0; 3], 5, &mut Rng::new(1));
        assert_eq!(clusters[0], clusters[1]);
        assert_ne!(clusters[0], clusters[2]);
    }
}
