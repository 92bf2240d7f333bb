//! Dropout, the softmax over the next word, and gradients of word vectors.

use crate::kit::{
    Done, ROUNDED, Rng, SINGLE, Sum, Tolerance, WIDE, assert_near, device, framed, get, gumbel,
    holes, is_dropped, log_sums, put, sums, twice,
};
use latens_cuda::{Dropout, Purpose, WordGroups};

#[test]
fn dropout_drops_the_same_numbers_as_on_the_cpu() {
    let Some(device) = device(&["dropout", "dropout_in_place"]) else { return };
    let mut rng = Rng::new(120);
    for n in [0, 1, 31, 1_000, WIDE.0 * WIDE.1] {
        for (rate, seed, period) in
            [(0.0f32, 5, None), (0.3, 77, None), (0.9, u64::MAX, None), (0.4, 3, Some(17))]
        {
            let what = format!("dropout: {n} numbers, rate {rate}, period {period:?}");
            let x = rng.normals(n);
            let (copied, in_place) = twice(&what, || {
                let (mut x, mut out) = (put(&device, &x), holes(&device, n));
                let drop = Dropout { rate, seed, period };
                device.dropout(&mut out.array, (&x.array, 0..n), drop).done(&what);
                device.dropout_in_place((&mut x.array, 0..n), drop).done(&what);
                (get(&device, &what, &out), get(&device, &what, &x))
            });
            let scale = 1.0 / (1.0 - f64::from(rate));
            let kept = |at: usize| match is_dropped(seed, at % period.unwrap_or(usize::MAX), rate) {
                true => 0.0,
                false => f64::from(x[at]) * scale,
            };
            let expected: Vec<Sum> = (0..n).map(|at| kept(at).into()).collect();
            assert_near(&what, &copied, &expected, ROUNDED);
            assert_near(&format!("{what} in place"), &in_place, &expected, ROUNDED);
        }
    }
}

#[test]
fn the_same_words_are_dropped_in_all_rows() {
    let Some(device) = device(&["drop_words"]) else { return };
    let mut rng = Rng::new(124);
    for (n, dim) in [(0, 3), (1, 1), (40, 33), (7, 515)] {
        let what = format!("drop_words: {n} rows of {dim}");
        let (rows, words) = (rng.normals(n * dim), rng.idxs(n, 6));
        let (rate, seed) = (0.4, 11);
        let got = twice(&what, || {
            let (mut rows, words) = (put(&device, &rows), framed(&device, &words));
            let drop = Dropout { rate, seed, period: None };
            device.drop_words(&mut rows.array, words.part(), dim, drop).done(&what);
            get(&device, &what, &rows)
        });
        let scale = 1.0 / (1.0 - f64::from(rate));
        let kept = |at: usize| match is_dropped(seed, words[at / dim] as usize, rate) {
            true => 0.0,
            false => f64::from(rows[at]) * scale,
        };
        let expected: Vec<Sum> = (0..n * dim).map(|at| kept(at).into()).collect();
        assert_near(&what, &got, &expected, ROUNDED);
    }
}

#[test]
fn multiples_are_added() {
    let Some(device) = device(&["add_scaled"]) else { return };
    let mut rng = Rng::new(125);
    for n in [0, 1, 1_000, WIDE.0 * WIDE.1] {
        let what = format!("add_scaled: {n} numbers");
        let (x, y) = (rng.normals(n), rng.normals(n));
        let got = twice(&what, || {
            let (x, mut y) = (put(&device, &x), put(&device, &y));
            device.add_scaled(&mut y.array, &x.array, n, -0.3).done(&what);
            get(&device, &what, &y)
        });
        let sum = |i: usize| Sum::of([f64::from(y[i]), f64::from(-0.3f32) * f64::from(x[i])]);
        let expected: Vec<Sum> = (0..n).map(sum).collect();
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn drawn_words_have_the_largest_sums_with_gumbel_numbers() {
    let Some(device) = device(&["draw_words"]) else { return };
    let mut rng = Rng::new(126);
    for n_words in [1, 2, 33, 511, 513, 10_001] {
        for n in [0, 1, 50] {
            let what = format!("draw_words: {n} rows, {n_words} words");
            let (logits, bias) = (rng.normals(n * n_words), rng.normals(n_words));
            let seed = 12 + n as u64;
            let words = twice(&what, || {
                let (logits, bias) = (put(&device, &logits), framed(&device, &bias));
                let mut words = holes::<u32>(&device, n);
                let out = &mut words.array;
                device.draw_words(out, &logits.array, bias.part(), n, seed).done(&what);
                get(&device, &what, &words)
            });
            for (r, &word) in words.iter().enumerate() {
                let sum = |w: usize| {
                    let at = r * n_words + w;
                    f64::from(logits[at]) + f64::from(bias[w]) + gumbel(seed, at)
                };
                let largest = (0..n_words).map(sum).fold(f64::MIN, f64::max);
                assert!(sum(word as usize) > largest - 1e-4, "{what}: word {word} of row {r}");
            }
        }
    }
}

#[test]
fn words_are_drawn_with_their_probabilities() {
    let Some(device) = device(&["draw_words"]) else { return };
    let (n, probabilities) = (200_000, [0.5f64, 0.3, 0.15, 0.049, 0.001]);
    let logits: Vec<f32> = (0..n).flat_map(|_| probabilities.map(|p| p.ln() as f32)).collect();
    let (logits, bias) = (put(&device, &logits), put(&device, &[0.0f32; 5]));
    let mut words = holes::<u32>(&device, n);
    let what = "draw_words";
    device.draw_words(&mut words.array, &logits.array, bias.part(), n, 8).done(what);
    let words = get(&device, what, &words);
    for (w, p) in probabilities.into_iter().enumerate() {
        let drawn = words.iter().filter(|&&word| word as usize == w).count() as f64;
        let (mean, variance) = (p * n as f64, p * (1.0 - p) * n as f64);
        assert!((drawn - mean).abs() < 5.0 * variance.sqrt(), "{drawn} times word {w} of {mean}");
    }
}

#[test]
fn probabilities_of_next_words_agree_with_the_cpu() {
    let Some(device) = device(&["next_words"]) else { return };
    let mut rng = Rng::new(121);
    for n_words in [1, 2, 31, 33, 511, 512, 513, 1_025, 10_001] {
        for (n, learns) in [(0, true), (1, true), (1, false), (7, true), (7, false)] {
            let what = format!("next_words: {n} rows, {n_words} words, learns: {learns}");
            let (mut logits, bias) = (rng.logits(n, n_words), rng.normals(n_words));
            // Its exponential overflows unless the maximum is subtracted.
            logits.iter_mut().take(n_words).skip(n_words - 1).for_each(|x| *x += 200.0);
            let mut targets = rng.idxs(n, n_words);
            // The first rows have the last and the first word.
            for (target, word) in targets.iter_mut().zip([n_words as u32 - 1, 0]) {
                *target = word;
            }
            let (after, log_probs) = twice(&what, || {
                let (mut logits, bias) = (put(&device, &logits), framed(&device, &bias));
                let (mut log_probs, targets) =
                    (holes::<f64>(&device, n), framed(&device, &targets));
                let (out, ln_p) = (&mut logits.array, &mut log_probs.array);
                let purpose = if learns { Purpose::Learn } else { Purpose::Score };
                device.next_words(out, ln_p, bias.part(), targets.part(), n, purpose).done(&what);
                (get(&device, &what, &logits), get(&device, &what, &log_probs))
            });
            let with_bias = |at: usize| f64::from(logits[at]) + f64::from(bias[at % n_words]);
            let scores: Vec<f64> = (0..n * n_words).map(with_bias).collect();
            let log_sums = log_sums(&scores, n_words);
            let is_target = |at: usize| targets[at / n_words] as usize == at % n_words;
            let ln_p = |r: usize| {
                let score = scores[r * n_words + targets[r] as usize];
                let value = score - log_sums[r].value;
                Sum { value, size: score.abs() + log_sums[r].size }
            };
            let expected: Vec<Sum> = (0..n).map(ln_p).collect();
            let tolerance = Tolerance { of_value: 0.0, of_terms: 3e-6 };
            assert_near(&format!("{what}, ln p"), &log_probs, &expected, tolerance);
            let derivative = |at: usize| {
                let p = (scores[at] - log_sums[at / n_words].value).exp();
                Sum::of([if is_target(at) { 1.0 } else { 0.0 }, -p])
            };
            let expected: Vec<Sum> =
                if learns { (0..n * n_words).map(derivative).collect() } else { sums(&logits) };
            assert_near(&format!("{what}, logits"), &after, &expected, SINGLE);
        }
    }
}

#[test]
fn nan_among_the_logits_propagates() {
    let Some(device) = device(&["next_words"]) else { return };
    let mut rng = Rng::new(122);
    // Threads with several words, and with a single one.
    for (n_words, place) in
        [(1_500, 0), (1_500, 1), (1_500, 700), (1_500, 1_499), (300, 0), (300, 299)]
    {
        let mut logits = rng.logits(2, n_words);
        logits[n_words + place] = f32::NAN;
        let (mut logits, bias) = (put(&device, &logits), put(&device, &vec![0.0; n_words]));
        let (mut log_probs, targets) = (holes::<f64>(&device, 2), put(&device, &[3, 3]));
        let (out, ln_p, what) = (&mut logits.array, &mut log_probs.array, "next_words");
        device.next_words(out, ln_p, bias.part(), targets.part(), 2, Purpose::Learn).done(what);
        let log_probs = get(&device, what, &log_probs);
        assert!(log_probs[0].is_finite(), "ln p {} of a row without NaN", log_probs[0]);
        assert!(log_probs[1].is_nan(), "ln p {} of a row with NaN at {place}", log_probs[1]);
    }
}

#[test]
fn rows_are_added_to_their_words() {
    let Some(device) = device(&["add_rows_of_words"]) else { return };
    let mut rng = Rng::new(123);
    for (n, dim) in [(0, 3), (1, 1), (2, 5), (9, 31), (30, 64), (100, 33), (3, 515)] {
        let what = format!("add_rows_of_words: {n} words, rows of {dim}");
        let words = rng.shuffled(n + 3)[..n].to_vec();
        let mut starts = vec![0];
        for g in 0..n {
            let size = if g % 4 == 3 { 0 } else { 1 + rng.below(6) as u32 };
            starts.push(starts[g] + size);
        }
        let n_rows = starts[n] as usize;
        let places = rng.shuffled(n_rows);
        let (rows, before) = (rng.normals(n_rows * dim), rng.normals((n + 3) * dim));
        let got = twice(&what, || {
            let ints = framed(&device, &[&words[..], &starts, &places].concat());
            let at = ints.range.start;
            let groups = WordGroups {
                ints: &ints.array,
                words: at..at + n,
                starts: at + n..at + 2 * n + 1,
                places: at + 2 * n + 1..at + 2 * n + 1 + n_rows,
            };
            let (mut table, rows) = (framed(&device, &before), put(&device, &rows));
            device.add_rows_of_words(table.part_mut(), &rows.array, &groups, dim).done(&what);
            get(&device, &what, &table)
        });
        let mut expected = sums(&before);
        for (g, &word) in words.iter().enumerate() {
            for &place in &places[starts[g] as usize..starts[g + 1] as usize] {
                for c in 0..dim {
                    let x = rows[place as usize * dim + c];
                    expected[word as usize * dim + c] += f64::from(x);
                }
            }
        }
        assert_near(&what, &got, &expected, SINGLE);
    }
}
