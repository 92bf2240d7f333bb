//! Emission probabilities.

use crate::kit::{
    Done, EXACT, Framed, Rng, SINGLE, Sum, TF32, Tolerance, assert_near, device, framed, get, put,
    sums, twice,
};
use latens_cuda::{ClusterOrder, ClusterSize, Device, Emissions, Precision, Shape};
use std::ops::Range;

/// Slots of clusters, states per cluster, and dimension of vectors. Tiles have 64 slots, states or dimensions, and products
/// take 32 terms at a time.
const SHAPES: &[(&[usize], usize, usize)] = &[
    (&[1], 1, 1),
    (&[5], 3, 2),
    (&[1, 2, 3], 5, 7),
    (&[64], 64, 64),
    (&[65], 65, 65),
    (&[63, 1, 64], 31, 33),
    (&[10, 0, 70, 33], 32, 31),
    (&[129, 31], 33, 100),
    (&[40, 300], 130, 32),
    (&[200, 7], 256, 130),
];

/// The slots of clusters of these sizes.
pub(crate) fn ranges(sizes: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let ranges = sizes.iter().map(|size| {
        end += size;
        end - size..end
    });
    ranges.collect()
}

/// An order of clusters, of which the last third is not used.
#[derive(Debug)]
struct Order {
    places: Vec<u32>,
    n_used: usize,
}

impl Order {
    fn draw(n_clusters: usize, rng: &mut Rng) -> Order {
        Order { places: rng.shuffled(n_clusters), n_used: n_clusters - n_clusters / 3 }
    }

    /// The index of the first state of a cluster, or `None` if the cluster is not used.
    fn first(&self, cluster: usize, k: usize) -> Option<usize> {
        let place = self.places[cluster] as usize;
        (place < self.n_used).then_some(place * k)
    }

    /// The kept states of all clusters: the last k of their `n_own` states, in reverse order.
    fn kept(&self, k: usize, n_own: usize) -> Vec<u32> {
        let mut kept = vec![0; self.places.len() * k];
        for (cluster, &place) in self.places.iter().enumerate() {
            for z in 0..k {
                kept[place as usize * k + z] = (cluster * n_own + n_own - 1 - z) as u32;
            }
        }
        kept
    }

    fn put(&self, device: &Device) -> Framed<u32> {
        framed(device, &self.places)
    }

    fn on<'a>(&self, places: &'a Framed<u32>) -> ClusterOrder<'a> {
        let (ints, places) = places.part();
        ClusterOrder { ints, places, n_used: self.n_used }
    }
}

/// Weights that contain word vectors and biases.
#[derive(Debug)]
struct Weights {
    all: Vec<f32>,
    words: Range<usize>,
    bias: Range<usize>,
}

impl Weights {
    /// Word vectors and biases, with `rest` around them.
    fn new(words: Vec<f32>, bias: Vec<f32>, rest: f32) -> Weights {
        // The vectors are not aligned for reads of four numbers, and there is a gap before the biases.
        let (first, gap) = (3, 2);
        let (n_words, n_bias) = (words.len(), bias.len());
        let end = first + n_words;
        let all = [vec![rest; first], words, vec![rest; gap], bias].concat();
        Weights { all, words: first..end, bias: end + gap..end + gap + n_bias }
    }

    /// The vector of a word.
    fn word(&self, slot: usize, dim: usize) -> &[f32] {
        &self.all[self.words.start + slot * dim..][..dim]
    }

    fn bias_of(&self, slot: usize) -> f64 {
        f64::from(self.all[self.bias.start + slot])
    }

    fn put(&self, device: &Device) -> Framed<f32> {
        put(device, &self.all)
    }
}

/// Draws factors. Fast products do not round those with few bits.
type Draw = fn(&mut Rng, usize) -> Vec<f32>;

/// Precision, factors, and the tolerances of emissions and derivatives.
const WAYS: [(Precision, Draw, Tolerance, Tolerance); 3] = [
    (Precision::Full, Rng::normals, OF_LOGITS, SINGLE),
    (Precision::Fast, Rng::shorts, OF_LOGITS, SINGLE),
    // 2⁻¹⁰ of both factors of products whose absolute values sum to about 5.
    (Precision::Fast, Rng::normals, Tolerance { of_value: 0.0, of_terms: 2e-2 }, TF32),
];

/// Logits of up to 15 have rounding errors of 10⁻⁶, and sums of several of them multiples of that.
const OF_LOGITS: Tolerance = Tolerance { of_value: 0.0, of_terms: 2e-5 };

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

#[test]
fn emission_probabilities_agree_with_the_cpu() {
    let Some(device) = device(&["emission_logits", "emission_softmax"]) else { return };
    let mut rng = Rng::new(50);
    for &(sizes, k, dim) in SHAPES {
        for (precision, draw, tolerance, _) in WAYS {
            let what = format!(
                "Emissions::logits and normalize {precision:?}: {sizes:?} slots, {k} states, dimension {dim}"
            );
            let clusters = ranges(sizes);
            let n_slots: usize = sizes.iter().sum();
            let (words, bias) = (draw(&mut rng, n_slots * dim), rng.normals(n_slots));
            let weights = Weights::new(words, bias, f32::NAN);
            // Division by a power of 2 keeps the number of bits, and the logits small.
            let states = draw(&mut rng, sizes.len() * k * dim);
            let states: Vec<f32> = states.iter().map(|x| x / 16.0).collect();
            let (order, before) = (Order::draw(sizes.len(), &mut rng), rng.normals(n_slots * k));
            let got = twice(&what, || {
                let emissions = Emissions::new(&device, &clusters).done(&what);
                let (on_device, states) = (weights.put(&device), put(&device, &states));
                let (mut table, places) = (put(&device, &before), order.put(&device));
                let parts = (&on_device.array, weights.words.clone(), weights.bias.clone());
                let (out, states) = (&mut table.array, (&states.array, &order.on(&places)));
                emissions
                    .logits(&device, out, parts, states, Shape { rows: k, columns: dim }, precision)
                    .done(&what);
                let kept = put(&device, &order.kept(k, k));
                let kept = (&kept.array, &order.on(&places));
                emissions.normalize(&device, &mut table.array, kept, k).done(&what);
                get(&device, &what, &table)
            });
            let mut expected = sums(&before);
            for (cluster, slots) in clusters.iter().enumerate() {
                let Some(first) = order.first(cluster, k) else { continue };
                for z in 0..k {
                    let state = &states[(first + z) * dim..][..dim];
                    let logit = |x| dot(weights.word(x, dim), state) + weights.bias_of(x);
                    let logits: Vec<f64> = slots.clone().map(logit).collect();
                    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let sum: f64 = logits.iter().map(|x| (x - max).exp()).sum();
                    for (x, logit) in slots.clone().zip(logits) {
                        expected[x * k + z] = ((logit - max).exp() / sum).into();
                    }
                }
            }
            assert_near(&what, &got, &expected, tolerance);
        }
    }
}

/// The states that may emit each slot: all for the first word of a cluster, and random ones for the others.
pub(crate) fn limits(clusters: &[Range<usize>], n_own: usize, rng: &mut Rng) -> Vec<Vec<u32>> {
    let mut limits = vec![];
    for (cluster, slots) in clusters.iter().enumerate() {
        let states = cluster * n_own..(cluster + 1) * n_own;
        for x in slots.clone() {
            let may = |_: &usize| x == slots.start || rng.below(3) > 0;
            limits.push(states.clone().filter(may).map(|state| state as u32).collect());
        }
    }
    limits
}

#[test]
fn states_emit_only_allowed_words() {
    let Some(device) = device(&["mask_emissions", "emission_softmax"]) else { return };
    let mut rng = Rng::new(53);
    for &(sizes, k, _) in SHAPES {
        let (n_own, clusters) = (k + 3, ranges(sizes));
        let what = format!("Emissions::normalize: {sizes:?} slots, {k} of {n_own} states");
        let n_slots: usize = sizes.iter().sum();
        let mut limits = limits(&clusters, n_own, &mut rng);
        let order = Order::draw(sizes.len(), &mut rng);
        let (logits, kept) = (rng.logits(n_slots, k), order.kept(k, n_own));
        // One state may emit nothing.
        limits.iter_mut().for_each(|states| states.retain(|&state| state != kept[0]));
        let got = twice(&what, || {
            let mut emissions = Emissions::new(&device, &clusters).done(&what);
            emissions.limit(&device, sizes.len() * n_own, |slot| &limits[slot]).done(&what);
            let (mut table, kept) = (put(&device, &logits), put(&device, &kept));
            let places = order.put(&device);
            let kept = (&kept.array, &order.on(&places));
            emissions.normalize(&device, &mut table.array, kept, k).done(&what);
            get(&device, &what, &table)
        });
        let mut expected = sums(&logits);
        for (cluster, slots) in clusters.iter().enumerate() {
            let Some(first) = order.first(cluster, k) else { continue };
            expected[slots.start * k..slots.end * k].fill(Sum::default());
            for z in 0..k {
                let may = |x: &usize| limits[*x].contains(&kept[first + z]);
                let score = |x: usize| f64::from(logits[x * k + z]).exp();
                let sum: f64 = slots.clone().filter(may).map(score).sum();
                for x in slots.clone().filter(may) {
                    expected[x * k + z] = (score(x) / sum).into();
                }
            }
        }
        assert_near(&what, &got, &expected, OF_LOGITS);
    }
}

#[test]
fn logits_of_kept_states_are_gathered_and_added() {
    let Some(device) = device(&["gather_emissions", "add_to_emissions"]) else { return };
    let mut rng = Rng::new(54);
    // The last shape has more numbers than a grid has threads.
    for (sizes, k) in
        SHAPES.iter().map(|&(sizes, k, _)| (sizes, k)).chain([(&[40, 8_300][..], 256)])
    {
        let (n_own, clusters) = (k + 3, ranges(sizes));
        let shape = format!("{sizes:?} slots, {k} of {n_own} states");
        let n_slots: usize = sizes.iter().sum();
        let order = Order::draw(sizes.len(), &mut rng);
        let (weights, kept) = (rng.normals(n_slots * n_own), order.kept(k, n_own));
        let (before, derivatives) = (rng.normals(n_slots * k), rng.normals(n_slots * k));
        let (what, back) = (format!("Emissions::gather: {shape}"), format!("add_to: {shape}"));
        let (logits, gradient) = twice(&what, || {
            let emissions = Emissions::new(&device, &clusters).done(&what);
            let (mut on_device, kept) = (framed(&device, &weights), put(&device, &kept));
            let (mut table, derivatives) = (put(&device, &before), put(&device, &derivatives));
            let places = order.put(&device);
            let (out, part) = (&mut table.array, on_device.part());
            let kept = (&kept.array, &order.on(&places));
            emissions
                .gather(&device, out, part, kept, ClusterSize { kept: k, own: n_own })
                .done(&what);
            let (out, values) = (on_device.part_mut(), &derivatives.array);
            emissions
                .add_to(&device, out, values, kept, ClusterSize { kept: k, own: n_own })
                .done(&back);
            (get(&device, &what, &table), get(&device, &back, &on_device))
        });
        let (mut gathered, mut added) = (sums(&before), sums(&weights));
        for (cluster, slots) in clusters.iter().enumerate() {
            let Some(first) = order.first(cluster, k) else { continue };
            for (x, z) in slots.clone().flat_map(|x| (0..k).map(move |z| (x, z))) {
                let at = x * n_own + kept[first + z] as usize - cluster * n_own;
                gathered[x * k + z] = weights[at].into();
                added[at] += f64::from(derivatives[x * k + z]);
            }
        }
        assert_near(&what, &logits, &gathered, EXACT);
        assert_near(&back, &gradient, &added, SINGLE);
    }
}

#[test]
fn derivatives_by_logits_of_emissions_agree_with_the_cpu() {
    let Some(device) = device(&["emission_gradient"]) else { return };
    let mut rng = Rng::new(51);
    // The last shape has more numbers than a grid has threads.
    for (sizes, k) in
        SHAPES.iter().map(|&(sizes, k, _)| (sizes, k)).chain([(&[40, 8_300][..], 256)])
    {
        let what = format!("logit_gradient: {sizes:?} slots, {k} states");
        let clusters = ranges(sizes);
        let n_slots: usize = sizes.iter().sum();
        let (table, visits) = (rng.positives(n_slots * k), rng.positives(sizes.len() * k));
        // Every third slot has no counts.
        let n_rows = n_slots - n_slots / 3;
        let mut rows = rng.shuffled(n_rows).into_iter();
        let row = |x: usize| if x % 3 == 2 { None } else { rows.next() };
        let count_of: Vec<u32> = (0..n_slots).map(row).map(|x| x.unwrap_or(u32::MAX)).collect();
        let (counts, order) = (rng.positives(n_rows * k), Order::draw(sizes.len(), &mut rng));
        let got = twice(&what, || {
            let emissions = Emissions::new(&device, &clusters).done(&what);
            let (mut table, visits) = (put(&device, &table), put(&device, &visits));
            let (counts, count_of) = (put(&device, &counts), framed(&device, &count_of));
            let (counted, places) = ((&counts.array, count_of.part()), order.put(&device));
            let (out, visits) = (&mut table.array, (&visits.array, &order.on(&places)));
            emissions.logit_gradient(&device, out, counted, visits, k).done(&what);
            get(&device, &what, &table)
        });
        let mut expected = sums(&table);
        for (cluster, slots) in clusters.iter().enumerate() {
            let Some(first) = order.first(cluster, k) else { continue };
            for (x, z) in slots.clone().flat_map(|x| (0..k).map(move |z| (x, z))) {
                let count = match count_of[x] {
                    u32::MAX => 0.0,
                    row => f64::from(counts[row as usize * k + z]),
                };
                let visits = f64::from(visits[first + z]);
                expected[x * k + z] = Sum::of([count, -visits * f64::from(table[x * k + z])]);
            }
        }
        assert_near(&what, &got, &expected, SINGLE);
    }
}

#[test]
fn derivatives_of_word_and_state_vectors_agree_with_the_cpu() {
    let Some(device) = device(&["emission_to_words", "emission_to_states", "emission_to_bias"])
    else {
        return;
    };
    let mut rng = Rng::new(52);
    for &(sizes, k, dim) in SHAPES {
        for (precision, draw, _, tolerance) in WAYS {
            let what = format!(
                "Emissions::backward {precision:?}: {sizes:?} slots, {k} states, dimension {dim}"
            );
            let clusters = ranges(sizes);
            let n_slots: usize = sizes.iter().sum();
            let (words, bias) = (draw(&mut rng, n_slots * dim), rng.normals(n_slots));
            let weights = Weights::new(words, bias, f32::NAN);
            let before = Weights::new(rng.normals(n_slots * dim), rng.normals(n_slots), 7.0);
            let (g, states) = (draw(&mut rng, n_slots * k), draw(&mut rng, sizes.len() * k * dim));
            let order = Order::draw(sizes.len(), &mut rng);
            let d_before = rng.normals(sizes.len() * k * dim);
            let (gradient, d_states) = twice(&what, || {
                let emissions = Emissions::new(&device, &clusters).done(&what);
                let (on_device, mut gradient) = (weights.put(&device), before.put(&device));
                let (g, states) = (put(&device, &g), put(&device, &states));
                let (mut d_states, places) = (put(&device, &d_before), order.put(&device));
                let inputs = (&on_device.array, &states.array);
                let out = (&mut gradient.array, weights.words.clone(), weights.bias.clone());
                let (to_states, g) = (&mut d_states.array, (&g.array, &order.on(&places)));
                let shape = Shape { rows: k, columns: dim };
                emissions
                    .backward(&device, g, inputs, out, to_states, shape, precision)
                    .done(&what);
                let gradient = get(&device, &what, &gradient);
                (gradient, get(&device, &what, &d_states))
            });
            let mut d_weights = sums(&before.all);
            let mut expected = sums(&d_before);
            for (cluster, slots) in clusters.iter().enumerate() {
                let Some(first) = order.first(cluster, k) else { continue };
                expected[first * dim..(first + k) * dim].fill(Sum::default());
                for (x, z) in slots.clone().flat_map(|x| (0..k).map(move |z| (x, z))) {
                    let (g, at) = (f64::from(g[x * k + z]), (first + z) * dim);
                    d_weights[weights.bias.start + x] += g;
                    for d in 0..dim {
                        let d_word = &mut d_weights[weights.words.start + x * dim + d];
                        *d_word += g * f64::from(states[at + d]);
                        expected[at + d] += g * f64::from(weights.word(x, dim)[d]);
                    }
                }
            }
            assert_near(&format!("{what}, words and biases"), &gradient, &d_weights, tolerance);
            assert_near(&format!("{what}, states"), &d_states, &expected, tolerance);
        }
    }
}
