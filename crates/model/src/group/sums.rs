use super::members::Group;
use std::io;

/// Adds up a gradient and Σ ln p over all processes. Returns the latter, with a relative error of 10⁻⁷: it travels behind
/// the gradient.
pub fn add_up(group: &dyn Group, gradient: &mut Vec<f32>, log_prob: f64) -> io::Result<f64> {
    let n = gradient.len();
    gradient.reserve_exact(1);
    gradient.push(log_prob as f32);
    let summed = group.sum(gradient);
    let log_prob = gradient[n];
    gradient.truncate(n);
    summed.map(|()| f64::from(log_prob))
}

/// Whether all processes have the same number.
pub fn is_same(group: &dyn Group, number: u64) -> io::Result<bool> {
    // Sums of 16 bits are exact for up to 256 processes, and differ by chance almost never for more.
    let own = [0, 16, 32, 48].map(|shift| (number >> shift & 0xffff) as f32);
    let mut sums = own;
    group.sum(&mut sums)?;
    let is_own = |(sum, own): (&f32, &f32)| *sum == own * group.size() as f32;
    // A sum may be right by chance in one process, but not in all.
    let mut wrong = [f32::from(u8::from(!sums.iter().zip(&own).all(is_own)))];
    group.sum(&mut wrong)?;
    Ok(wrong[0] == 0.0)
}
