use super::*;
use crate::Rng;

/// Runs to convergence; returns the search and the number of function evaluations.
fn minimize(params: LbfgsParams, n: usize, function: &mut Function) -> (Lbfgs, usize) {
    let mut n_calls = 0;
    let mut counted = |x: &[f64], gradient: &mut [f64]| {
        n_calls += 1;
        function(x, gradient)
    };
    let mut search = Lbfgs::start(params, vec![0.0; n], &mut counted);
    for _ in 0..2000 {
        if search.step(&mut counted) != Outcome::Improved {
            break;
        }
    }
    (search, n_calls)
}

fn strict(l1: f64) -> LbfgsParams {
    LbfgsParams { l1, gradient_tolerance: 1e-9, value_tolerance: 0.0, ..LbfgsParams::default() }
}

/// Rosenbrock's function in many dimensions, with its only minimum at (1, …, 1).
fn rosenbrock(x: &[f64], gradient: &mut [f64]) -> f64 {
    gradient.fill(0.0);
    let mut value = 0.0;
    for i in (0..x.len()).step_by(2) {
        let (a, b) = (1.0 - x[i], x[i + 1] - x[i] * x[i]);
        value += a * a + 100.0 * b * b;
        gradient[i] = -2.0 * a - 400.0 * x[i] * b;
        gradient[i + 1] = 200.0 * b;
    }
    value
}

#[test]
fn rosenbrock_converges_to_its_minimum() {
    let (search, n_calls) = minimize(strict(0.0), 40, &mut rosenbrock);
    assert!(search.x().iter().all(|x| (x - 1.0).abs() < 1e-7), "{:?}", search.x());
    assert!(n_calls < 100, "{n_calls}");
}

/// Σ_i h_i (x_i − m_i)²/2 with curvatures over six orders of magnitude.
fn quadratic(n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(3);
    let h = (0..n).map(|_| 10f64.powf(6.0 * rng.uniform() - 3.0)).collect();
    let m = (0..n).map(|_| rng.normal()).collect();
    (h, m)
}

#[test]
fn l1_solutions_agree_with_soft_thresholding() {
    let n = 50;
    let (mut h, m) = quadratic(n);
    h.iter_mut().for_each(|h| *h = h.clamp(0.1, 10.0));
    let mut function = |x: &[f64], gradient: &mut [f64]| {
        let mut value = 0.0;
        for i in 0..n {
            gradient[i] = h[i] * (x[i] - m[i]);
            value += 0.5 * h[i] * (x[i] - m[i]).powi(2);
        }
        value
    };
    let l1 = 0.5;
    let (search, _) = minimize(strict(l1), n, &mut function);
    let expected = |i: usize| m[i].signum() * (m[i].abs() - l1 / h[i]).max(0.0);
    let mut n_zero = 0;
    for (i, &x) in search.x().iter().enumerate() {
        assert!((x - expected(i)).abs() < 1e-6, "{i}: {x} {}", expected(i));
        n_zero += usize::from(x == 0.0);
    }
    assert_eq!(n_zero, (0..n).filter(|&i| expected(i) == 0.0).count());
    assert!(n_zero > 5, "{n_zero}");
}

/// The logistic loss of `n` weights on `4 n` random rows.
fn logistic(n: usize) -> impl FnMut(&[f64], &mut [f64]) -> f64 {
    let mut rng = Rng::new(5);
    let rows: Vec<Vec<f64>> = (0..4 * n).map(|_| (0..n).map(|_| rng.normal()).collect()).collect();
    let signs: Vec<f64> =
        rows.iter().map(|row| (row[0] - row[1] + rng.normal()).signum()).collect();
    move |x: &[f64], gradient: &mut [f64]| {
        gradient.fill(0.0);
        let mut value = 0.0;
        for (row, sign) in rows.iter().zip(&signs) {
            let margin: f64 = sign * row.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
            value += (-margin).exp().ln_1p();
            let factor = -sign / (1.0 + margin.exp());
            gradient.iter_mut().zip(row).for_each(|(g, a)| *g += factor * a);
        }
        value
    }
}

#[test]
fn the_optimality_conditions_hold_at_the_solution() {
    for l1 in [0.0, 3.0] {
        let mut function = logistic(20);
        let (search, _) = minimize(strict(l1), 20, &mut function);
        let mut gradient = vec![0.0; 20];
        function(search.x(), &mut gradient);
        for (&x, &g) in search.x().iter().zip(&gradient) {
            match x {
                0.0 => assert!(g.abs() <= l1 + 1e-6, "{g}"),
                x => assert!((g + l1 * x.signum()).abs() < 1e-5, "{x} {g}"),
            }
        }
        assert_eq!(search.x().contains(&0.0), l1 > 0.0);
    }
}

#[test]
fn a_resumed_search_makes_the_same_steps() {
    for l1 in [0.0, 3.0] {
        let mut function = logistic(20);
        let mut search = Lbfgs::start(strict(l1), vec![0.0; 20], &mut function);
        (0..7).for_each(|_| assert_eq!(search.step(&mut function), Outcome::Improved));
        let mut again = Lbfgs::resume(strict(l1), search.state().clone());
        for _ in 0..5 {
            search.step(&mut function);
            again.step(&mut function);
        }
        assert_eq!(search, again);
    }
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let run = |n_threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let (h, m) = quadratic(100_000);
        pool.install(|| {
            let mut function = |x: &[f64], gradient: &mut [f64]| {
                let mut value = 0.0;
                for i in 0..x.len() {
                    gradient[i] = h[i] * (x[i] - m[i]);
                    value += 0.5 * h[i] * (x[i] - m[i]).powi(2);
                }
                value
            };
            let mut search = Lbfgs::start(strict(0.0), vec![0.0; 100_000], &mut function);
            (0..15).for_each(|_| _ = search.step(&mut function));
            search
        })
    };
    assert_eq!(run(1), run(3));
}

#[test]
fn a_minimum_at_the_start_is_recognized() {
    let mut flat = |_: &[f64], gradient: &mut [f64]| {
        gradient.fill(0.0);
        1.0
    };
    let mut search = Lbfgs::start(LbfgsParams::default(), vec![2.0; 3], &mut flat);
    assert_eq!(search.step(&mut flat), Outcome::Converged);
    assert_eq!((search.x(), search.value()), (&[2.0; 3][..], 1.0));
    // A function whose gradient is wrong makes the line search fail.
    let mut wrong = |_: &[f64], gradient: &mut [f64]| {
        gradient.fill(1.0);
        1.0
    };
    let mut search = Lbfgs::start(LbfgsParams::default(), vec![2.0; 3], &mut wrong);
    assert_eq!(search.step(&mut wrong), Outcome::Stuck);
}

#[test]
fn a_search_with_values_that_arrive_one_by_one_is_the_same_search() {
    // Rosenbrock's function, whose line searches try several points.
    let function = |x: &[f64], gradient: &mut [f64]| {
        let (a, b) = (1.0 - x[0], x[1] - x[0] * x[0]);
        gradient.copy_from_slice(&[-2.0 * a - 400.0 * x[0] * b, 200.0 * b]);
        a * a + 100.0 * b * b
    };
    for l1 in [0.0, 0.5] {
        let params = LbfgsParams { l1, ..LbfgsParams::default() };
        let mut expected = Lbfgs::start(params, vec![-1.2, 1.0], &mut { function });
        let mut found = expected.clone();
        let mut n_points = Vec::new();
        loop {
            let outcome = expected.step(&mut { function });
            let mut known: Vec<(f64, Vec<f64>)> = Vec::new();
            let again = loop {
                let (before, mut next, mut asked) = (found.clone(), known.iter(), None);
                let step =
                    found.try_step(&mut |x: &[f64], gradient: &mut [f64]| match next.next() {
                        Some((value, known)) => {
                            gradient.copy_from_slice(known);
                            Ok(*value)
                        }
                        None => {
                            asked = Some(x.to_vec());
                            Err(Unknown)
                        }
                    });
                let Some(point) = asked else { break step.unwrap() };
                assert_eq!((step, &found), (Err(Unknown), &before));
                let mut gradient = vec![0.0; 2];
                known.push((function(&point, &mut gradient), gradient));
            };
            n_points.push(known.len());
            assert_eq!((again, &found), (outcome, &expected));
            if outcome != Outcome::Improved {
                break;
            }
        }
        assert!(n_points.iter().any(|&n| n > 1), "{n_points:?}");
    }
}
