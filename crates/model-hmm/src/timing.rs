use crate::*;
use std::time::Instant;
#[test]
fn timing() {
    use crate::{
        expectations::*, neural::Neural, parameters::Parameters, support::Support, tables::*,
    };
    let params = HmmParams { n_states: 1024, n_clusters: 4, ..HmmParams::default() };
    let n_words = 10000;
    let clusters: Vec<u32> = (0..n_words).map(|w| (w % 4) as u32).collect();
    let support = Support::new(256, 4, clusters);
    let spellings = vec!["a"; n_words];
    let mut neural = Neural::<f32>::new(&params, &support, &spellings, 0);
    let mut w = vec![0f32; neural.layout().len()];
    let mut rng = latens_math::Rng::new(1);
    neural.init(&mut w, &mut rng);
    let sentences: Vec<Vec<latens_corpus::WordId>> = (0..27)
        .map(|_| (0..22).map(|_| latens_corpus::WordId((rng.uniform() * 10000.0) as u32)).collect())
        .collect();
    let batch = Batch { sentences: sentences.iter().map(|s| &s[..]).collect(), tags: vec![] };
    let kept = Kept::all(&support);
    let mut tables = Tables::default();
    let mut expected = Expected::default();
    let mut engine = Engine::default();
    let mut g = vec![0f32; w.len()];
    let mut opt = latens_nn::AdamW::new(Default::default(), w.len());
    for _ in 0..4 {
        let t = Instant::now();
        neural.forward_to_factors(&w, &support, &kept, None, &mut tables);
        let a = t.elapsed();
        let t = Instant::now();
        crate::transition::forward(tables.factors.as_mut().unwrap(), &mut tables.transition);
        let b = t.elapsed();
        let t = Instant::now();
        engine.expectations(&support, &tables, &batch, &mut expected);
        let c = t.elapsed();
        let t = Instant::now();
        g.fill(0.0);
        neural.backward(&w, &support, &kept, &mut tables, &expected, &mut g);
        let d = t.elapsed();
        let t = Instant::now();
        let n = latens_nn::norm(&g);
        opt.update(&mut w, &g, 0.001, 1.0 / n);
        let e = t.elapsed();
        eprintln!("nets+emission {a:?} transition {b:?} recursion {c:?} backward {d:?} adam {e:?}");
    }
}
