//! Two-dimensional map of the top words of topics (Das et al. 2015, Figure 3).

use super::labels::{Rectangle, place_labels, text_width};
use super::svg::{COLORS, Svg};

/// A word to place on a topic map.
pub struct MapWord<'a> {
    /// The word as text.
    pub word: &'a str,
    /// Index of its topic.
    pub topic: usize,
    /// Its vector; all words have vectors of the same length.
    pub vector: &'a [f32],
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 720.0;
const MARGIN: f64 = 50.0;
const FONT: f64 = 11.0;

/// Draws words at the first two principal components of their vectors, colored by topic, as SVG. Words that would
/// overlap are moved aside.
///
/// # Panics
/// If a vector is shorter than that of the first word.
pub fn topic_map(words: &[MapWord<'_>]) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let vectors: Vec<&[f32]> = words.iter().map(|word| word.vector).collect();
    let places = principal_plane(&vectors);
    let span = |axis: usize| {
        let of_axis = || places.iter().map(|place| place[axis]);
        let (low, high) =
            (of_axis().fold(f64::INFINITY, f64::min), of_axis().fold(f64::NEG_INFINITY, f64::max));
        (low, (high - low).max(f64::MIN_POSITIVE))
    };
    let (x_span, y_span) = (span(0), span(1));
    let mut topics: Vec<usize> = words.iter().map(|word| word.topic).collect();
    topics.sort_unstable();
    topics.dedup();
    let color = |topic: usize| COLORS[topics.binary_search(&topic).unwrap_or(0) % COLORS.len()];
    let point = |place: &[f64; 2]| {
        let x = MARGIN + (place[0] - x_span.0) / x_span.1 * (WIDTH - 3.0 * MARGIN);
        let y = HEIGHT - MARGIN - (place[1] - y_span.0) / y_span.1 * (HEIGHT - 2.0 * MARGIN);
        (x, y)
    };
    let points: Vec<(f64, f64)> = places.iter().map(point).collect();
    let sizes: Vec<(f64, f64)> =
        words.iter().map(|word| (text_width(word.word, FONT), FONT + 1.0)).collect();
    let frame = Rectangle { left: 0.0, top: 0.0, right: WIDTH - 80.0, bottom: HEIGHT };
    for (word, place) in words.iter().zip(place_labels(&points, &sizes, frame)) {
        let Some(place) = place else { continue };
        svg.colored_text((place.left, place.bottom - 2.0), FONT, color(word.topic), word.word);
    }
    for (i, &topic) in topics.iter().enumerate() {
        let place = (WIDTH - 70.0, 20.0 + 15.0 * i as f64);
        svg.colored_text(place, 12.0, color(topic), &format!("topic {topic}"));
    }
    svg.finish()
}

/// Coordinates of vectors along their first two principal components.
///
/// # Panics
/// If a vector is shorter than the first one.
pub fn principal_plane(vectors: &[&[f32]]) -> Vec<[f64; 2]> {
    let dim = vectors.first().map_or(0, |vector| vector.len());
    let n = vectors.len().max(1) as f64;
    let mean: Vec<f64> =
        (0..dim).map(|j| vectors.iter().map(|v| f64::from(v[j])).sum::<f64>() / n).collect();
    let mut rows: Vec<Vec<f64>> = vectors
        .iter()
        .map(|v| v.iter().zip(&mean).map(|(&x, m)| f64::from(x) - m).collect())
        .collect();
    let mut places = vec![[0.0; 2]; vectors.len()];
    for axis in 0..2 {
        let direction = principal_axis(&rows, dim);
        for (row, place) in rows.iter_mut().zip(&mut places) {
            let length: f64 = row.iter().zip(&direction).map(|(x, d)| x * d).sum();
            place[axis] = length;
            row.iter_mut().zip(&direction).for_each(|(x, d)| *x -= length * d);
        }
    }
    places
}

/// First principal component of centered rows, by power iteration.
fn principal_axis(rows: &[Vec<f64>], dim: usize) -> Vec<f64> {
    let mut axis: Vec<f64> = (0..dim).map(|j| 1.0 + 0.1 * (j as f64).sin()).collect();
    for _ in 0..200 {
        let mut next = vec![0.0; dim];
        for row in rows {
            let length: f64 = row.iter().zip(&axis).map(|(x, a)| x * a).sum();
            next.iter_mut().zip(row).for_each(|(sum, x)| *sum += length * x);
        }
        let norm = next.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm == 0.0 {
            break;
        }
        axis = next.into_iter().map(|x| x / norm).collect();
    }
    let norm = axis.iter().map(|x| x * x).sum::<f64>().sqrt();
    axis.iter_mut().for_each(|x| *x /= norm.max(f64::MIN_POSITIVE));
    axis
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plane_is_spanned_by_the_two_axes_of_largest_variance() {
        let vectors: Vec<[f32; 3]> =
            vec![[9.0, 0.1, 0.0], [-9.0, 0.0, 0.0], [0.0, 0.0, 4.0], [0.0, 0.1, -4.0]];
        let words: Vec<MapWord<'_>> =
            vectors.iter().map(|v| MapWord { word: "<w>", topic: 3, vector: v }).collect();
        let places = principal_plane(&vectors.iter().map(|v| &v[..]).collect::<Vec<_>>());
        assert!((places[0][0] - places[1][0]).abs() > 17.9, "{places:?}");
        assert!((places[2][1] - places[3][1]).abs() > 7.9, "{places:?}");
        let picture = topic_map(&words);
        assert!(picture.contains("&lt;w&gt;") && picture.contains("topic 3"));
        assert!(topic_map(&[]).starts_with("<svg"));
    }
}
