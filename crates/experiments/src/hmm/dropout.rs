//! State dropout: the default rate, which depends on the sizes of the model, and the fixed rate of Chiu & Rush (2020).

use super::kept_models::{Earlier, KeptModels, Training};
use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::hmm::HmmParams;
use latens::tasks::perplexity;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hmm-dropout",
    about: "HMMs with the default state dropout and with a rate of 0.5 on the Penn Treebank (perplexity)",
    run: |data, effort, note| compare(data, effort, Earlier::Ignore, note),
};

/// The fixed rate.
const FIXED: f64 = 0.5;

/// Numbers of states, clusters and epochs. The largest models take the most time per epoch and need the fewest epochs.
const FULL: [(usize, usize, usize); 9] = [
    (1024, 4, 25),
    (1024, 128, 25),
    (2048, 128, 25),
    (4096, 128, 25),
    (8192, 64, 25),
    (8192, 128, 25),
    (16_384, 128, 25),
    (32_768, 128, 22),
    (65_536, 128, 18),
];

const QUICK: [(usize, usize, usize); 2] = [(128, 4, 2), (512, 16, 2)];

/// Seeds of a full run.
const SEEDS: [u64; 3] = [1, 2, 3];

fn params(sizes: (usize, usize, usize), rate: Option<f64>, seed: u64, effort: Effort) -> HmmParams {
    let (n_states, n_clusters, epochs) = sizes;
    let params = HmmParams::default().n_states(n_states).n_clusters(n_clusters).epochs(epochs);
    let params = match rate {
        Some(rate) => params.state_dropout(rate),
        None => params,
    };
    let params = params.batch_tokens(1024).learning_rate(0.004).seed(seed);
    if effort.is_quick() { params.dim(64) } else { params }
}

fn name((n_states, n_clusters, _): (usize, usize, usize), rate: Option<f64>) -> String {
    let dropout = rate.map_or("default state dropout".to_owned(), |r| format!("state dropout {r}"));
    format!("{n_states} states, {n_clusters} clusters, {dropout}")
}

pub(crate) fn compare(
    data: &Path,
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let (ptb, kept) = (PennTreebank::read(data)?, KeptModels::new(earlier));
    let (sizes, seeds) =
        if effort.is_quick() { (&QUICK[..], &SEEDS[..1]) } else { (&FULL[..], &SEEDS[..]) };
    // Clusters are learned by exchange, the default of HMMs.
    let training =
        Training { corpus: &ptb.train, valid: &ptb.valid, clusters: None, teacher: None };
    let mut rows = Vec::new();
    for (&sizes, rate) in sizes.iter().flat_map(|sizes| [(sizes, None), (sizes, Some(FIXED))]) {
        let name = name(sizes, rate);
        let [mut valid, mut train] = [Vec::new(), Vec::new()];
        for &seed in seeds {
            note(&format!("{name}, seed {seed}"));
            let params = params(sizes, rate, seed, effort);
            let measured =
                kept.figures((&params, &training), ["valid", "train"], note, |hmm, _| {
                    // Perplexity of the mini-batches of the best epoch.
                    let train =
                        hmm.facts().get("train_perplexity").and_then(|value| value.as_f64());
                    [perplexity(hmm, &ptb.valid).perplexity(), train.unwrap_or(f64::NAN)]
                });
            let [of_valid, of_train] = measured?;
            valid.push(of_valid);
            train.push(of_train);
        }
        rows.push(Row::of_seeds(&name, "valid", None, valid));
        rows.push(Row::of_seeds(&name, "train", None, train));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use latens::model::Params;

    #[test]
    fn only_the_fixed_rate_is_set() {
        for (sizes, effort) in [(&FULL[..], Effort::Full), (&QUICK[..], Effort::Quick)]
            .into_iter()
            .flat_map(|(sizes, effort)| sizes.iter().map(move |&sizes| (sizes, effort)))
        {
            for rate in [None, Some(FIXED)] {
                let params = params(sizes, rate, 1, effort);
                assert!(params.check().is_ok(), "{}", name(sizes, rate));
                assert_eq!(params.state_dropout, rate);
            }
        }
    }
}
