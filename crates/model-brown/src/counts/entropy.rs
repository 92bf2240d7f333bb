/// F(x) = x ln x of integers, with a lookup table for small ones, which are almost all.
pub(crate) struct EntropyTerms(Vec<f64>);

impl EntropyTerms {
    pub(crate) fn new() -> EntropyTerms {
        EntropyTerms((0..1u64 << 16).map(entropy_term).collect())
    }

    #[inline]
    pub(crate) fn f(&self, x: u64) -> f64 {
        match self.0.get(x as usize) {
            Some(&term) => term,
            None => entropy_term(x),
        }
    }

    /// g(x, y) = F(x + y) − F(x) − F(y), which is zero if x or y is.
    #[inline]
    pub(crate) fn g(&self, x: u64, y: u64) -> f64 {
        if x == 0 || y == 0 { 0.0 } else { self.f(x + y) - self.f(x) - self.f(y) }
    }

    /// F of the sum of four counts minus the sum of F of each.
    pub(crate) fn block(&self, vv: u64, vw: u64, wv: u64, ww: u64) -> f64 {
        self.f(vv + vw + wv + ww) - self.f(vv) - self.f(vw) - self.f(wv) - self.f(ww)
    }
}

fn entropy_term(x: u64) -> f64 {
    if x == 0 { 0.0 } else { x as f64 * (x as f64).ln() }
}
