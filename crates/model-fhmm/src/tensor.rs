//! Products and sums over the states of several layers.
//!
//! A tensor over n layers of k states is a slice of kⁿ numbers; the state of the first layer varies slowest. All
//! functions are inlined into their callers, which select the SIMD instructions.

use latens_math::Real;

/// Number of independent partial sums, since the compiler may not reorder floating-point additions.
const LANES: usize = 16;

/// Kronecker product: out = scale · x_1 ⊗ x_2 ⊗ …, where `factors` is the concatenation of x_i of length k.
#[inline(always)]
pub(crate) fn kronecker<T: Real>(factors: &[T], k: usize, scale: T, out: &mut [T]) {
    out[0] = scale;
    let mut n = 1;
    for factor in factors.rchunks_exact(k) {
        // From the last factor to the first: inner loops are long, and values are read before they are overwritten.
        let (tail, rest) = out[..n * k].split_at_mut(n);
        for (block, &x) in rest.chunks_exact_mut(n).zip(&factor[1..]) {
            block.iter_mut().zip(&*tail).for_each(|(out, &tail)| *out = x * tail);
        }
        tail.iter_mut().for_each(|out| *out *= factor[0]);
        n *= k;
    }
}

/// Sums over all layers but the first: out[i] = Σ_j tensor[i, j] tail[j].
#[inline(always)]
pub(crate) fn keep_first<T: Real>(tensor: &[T], tail: &[T], out: &mut [T]) {
    for (out, row) in out.iter_mut().zip(tensor.chunks_exact(tail.len())) {
        *out = dot(row, tail);
    }
}

/// Sums over the first layer: out[j] = Σ_i weights[i] tensor[i, j].
#[inline(always)]
pub(crate) fn sum_first<T: Real>(weights: &[T], tensor: &[T], out: &mut [T]) {
    out.fill(T::zero());
    for (&weight, row) in weights.iter().zip(tensor.chunks_exact(out.len())) {
        out.iter_mut().zip(row).for_each(|(out, &x)| *out += weight * x);
    }
}

/// Dot product.
///
/// Not `latens_math::dot`, whose order of additions rounds differently: a seed keeps its model.
#[inline(always)]
pub(crate) fn dot<T: Real>(x: &[T], y: &[T]) -> T {
    let mut lanes = [T::zero(); LANES];
    let n = x.len() / LANES * LANES;
    for (x, y) in x[..n].chunks_exact(LANES).zip(y[..n].chunks_exact(LANES)) {
        for lane in 0..LANES {
            lanes[lane] += x[lane] * y[lane];
        }
    }
    let rest: T = x[n..].iter().zip(&y[n..]).map(|(&x, &y)| x * y).sum();
    lanes.iter().copied().sum::<T>() + rest
}

/// Weighted sum over all layers of a group but one: out[k] is the sum of the tensor over joint states with `layer` in
/// state k, weighted by the other layers. `weights` is layers × k; `scratch` is at least twice as long as the tensor.
#[inline(always)]
pub(crate) fn keep_layer<T: Real>(
    tensor: &[T],
    weights: &[T],
    k: usize,
    layer: usize,
    scratch: &mut [T],
    out: &mut [T],
) {
    let (mut from, mut to) = scratch.split_at_mut(tensor.len());
    let mut len = tensor.len();
    for before in 0..layer {
        let source = if before == 0 { tensor } else { &from[..len] };
        sum_first(&weights[before * k..(before + 1) * k], source, &mut to[..len / k]);
        len /= k;
        std::mem::swap(&mut from, &mut to);
    }
    let tail = &mut to[..len / k];
    kronecker(&weights[(layer + 1) * k..], k, T::one(), tail);
    keep_first(if layer == 0 { tensor } else { &from[..len] }, tail, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens_math::Rng;

    #[test]
    fn products_and_sums_over_layers_agree_with_their_definition() {
        let (k, n_layers) = (3usize, 4);
        let mut rng = Rng::new(1);
        let mut draw = |n: usize| (0..n).map(|_| rng.uniform()).collect::<Vec<f64>>();
        let (tensor, weights) = (draw(81), draw(12));
        let digit = |s: usize, layer: usize| s / k.pow((n_layers - 1 - layer) as u32) % k;
        let mut product = vec![0.0; 81];
        kronecker(&weights, k, 2.0, &mut product);
        for (s, product) in product.iter().enumerate() {
            let expected: f64 = (0..n_layers).map(|l| weights[l * k + digit(s, l)]).product();
            assert!((product - 2.0 * expected).abs() < 1e-15);
        }
        for layer in 0..n_layers {
            let mut expected = vec![0.0; k];
            for (s, value) in tensor.iter().enumerate() {
                let others = (0..n_layers).filter(|&l| l != layer);
                let weight: f64 = others.map(|l| weights[l * k + digit(s, l)]).product();
                expected[digit(s, layer)] += weight * value;
            }
            let (mut out, mut scratch) = (vec![0.0; k], vec![0.0; 162]);
            keep_layer(&tensor, &weights, k, layer, &mut scratch, &mut out);
            for (out, expected) in out.iter().zip(&expected) {
                assert!((out - expected).abs() < 1e-13);
            }
        }
    }
}
