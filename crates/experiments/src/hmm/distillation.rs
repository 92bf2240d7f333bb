//! Hidden Markov models distilled from an LSTM: perplexity on the Penn Treebank.
//!
//! The references are measurements of a prototype with the same teacher and sizes, not of a paper.

use super::kept_models::{Earlier, KeptModels, Training};
use crate::corpora::penn_treebank::PennTreebank;
use crate::experiment::{Effort, Experiment, Row};
use anyhow::Result;
use latens::brown::{Algorithm, Brown};
use latens::corpus::Sentences;
use latens::hmm::{HmmParams, Memory, Teacher};
use latens::model::{Fit, LanguageModel};
use latens::neural::{NeuralParams, usable_device};
use latens::tasks::{perplexity, perplexity_on};
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "hmm-distill",
    about: "perplexity of HMMs distilled from an LSTM on the Penn Treebank",
    run: |data, effort, note| distill(data, effort, Earlier::Ignore, note),
};

/// A student.
struct Student {
    params: HmmParams,
    /// Number of tokens to draw.
    n_tokens: usize,
    /// How many times each epoch reads the real text.
    text_weight: usize,
}

pub(crate) fn distill(
    data: &Path,
    effort: Effort,
    earlier: Earlier,
    note: &mut dyn FnMut(&str),
) -> Result<Vec<Row>> {
    let ptb = PennTreebank::read(data)?;
    let kept = KeptModels::new(earlier);
    let parts = [("PTB valid", &ptb.valid), ("PTB test", &ptb.test)];
    let mut teacher_params = NeuralParams::regularized_lstm();
    if effort.is_quick() {
        let small = teacher_params.dim(32).hidden_dim(48).n_layers(2).epochs(2);
        teacher_params = small.batch_size(200).learning_rate(1e-2).average(0.05);
    }
    let NeuralParams { n_layers, hidden_dim, .. } = teacher_params;
    let name = format!("LSTM of {n_layers} layers, {hidden_dim}, regularized");
    note(&name);
    let network = kept.network(&teacher_params, (&ptb.train, &ptb.valid), note)?;
    let mut rows = scored(&name, &network, &parts, note);
    let students = if effort.is_quick() { vec![quick_student()] } else { students() };
    for Student { params, n_tokens, text_weight } in students {
        let mut name = format!("HMM, {} states, distilled", params.n_states);
        if params.memory == Memory::Carry {
            name.push_str(", running text");
        }
        note(&name);
        let clusters = Brown::params().n_clusters(params.n_clusters).algorithm(Algorithm::Exchange);
        let brown = clusters.fit(&ptb.train)?;
        // The parameters of the teacher and its seed identify it.
        let identity = serde_json::to_string(&teacher_params)?;
        let identity = latens::model::fingerprint(identity.bytes().map(u32::from));
        let teacher = Teacher::new(&network, identity, n_tokens)
            .text_weight(text_weight)
            .device(usable_device());
        let training = Training {
            corpus: &ptb.train,
            valid: &ptb.valid,
            clusters: Some(brown.clusters()),
            teacher: Some(&teacher),
        };
        let names = parts.map(|(column, _)| column);
        let figures = kept.figures((&params, &training), names, note, |hmm, note| {
            let rows = scored(&name, hmm, &parts, note);
            [rows[0].ours, rows[1].ours]
        })?;
        rows.extend(
            names
                .into_iter()
                .zip(figures)
                .map(|(column, ours)| Row::new(name.clone(), column, None, ours)),
        );
    }
    Ok(rows)
}

/// The larger one first: it takes most of the time.
fn students() -> Vec<Student> {
    // The cost of a step is mostly that of the transitions, whatever the number of tokens, so that large mini-batches use
    // more samples in the same time.
    let params =
        HmmParams::default().n_clusters(128).learning_rate(0.004).batch_tokens(4096).epochs(4);
    // With fresh samples in every epoch, a student of this size underfits rather than overfits: less dropout than for the
    // text alone, 0.625, although each step takes 1.4 times as long.
    let larger = params.clone().n_states(65536).state_dropout(0.5).memory(Memory::Carry).epochs(5);
    let smaller = params.n_states(32768).state_dropout(0.5);
    vec![
        Student { params: larger, n_tokens: 350_000_000, text_weight: 3 },
        Student { params: smaller, n_tokens: 140_000_000, text_weight: 3 },
    ]
}

/// A student that is small enough for the CPU.
fn quick_student() -> Student {
    let params = HmmParams::default().n_states(256).n_clusters(32).dim(64).epochs(2);
    let params = params.state_dropout(0.0);
    Student { params: params.batch_tokens(2048), n_tokens: 200_000, text_weight: 0 }
}

fn scored(
    name: &str,
    model: &dyn LanguageModel,
    parts: &[(&str, &Sentences); 2],
    note: &mut dyn FnMut(&str),
) -> Vec<Row> {
    let device = usable_device();
    let row = |(column, text): &(&str, &Sentences)| {
        // A large student does not fit in the memory of every device.
        let scored = perplexity_on(device, model, text).unwrap_or_else(|error| {
            note(&format!("  scoring on the CPU: {error}"));
            perplexity(model, text)
        });
        let ours = scored.perplexity();
        note(&format!("  {column}: {ours:.2}"));
        Row::new(name, *column, None, ours)
    };
    parts.iter().map(row).collect()
}
