use super::Group;
use std::io;

/// Adds up a gradient and Σ ln p over all processes. Returns the latter, with a relative error of 10⁻⁷: it travels behind
/// the gradient.
pub fn add_up(group: &dyn Group, gradient: &mut Vec<f32>, log_prob: f64) -> io::Result<f64> {
    let n = gradient.len();
    gradient.push(log_prob as f32);
    let summed = group.sum(gradient);
    let log_prob = gradient[n];
    gradient.truncate(n);
    summed.map(|()| f64::from(log_prob))
}
