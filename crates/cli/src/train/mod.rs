//! `latens train`: one module per model, which maps flags to parameters.

mod training;
mod documents;
mod cost;
mod brown;
mod fhmm;
mod glda;
mod hmm;
mod lda;
mod lds;
mod neural;
mod ngram;
mod word2vec;

pub(crate) use cost::{CostArgs, show_cost};
pub(crate) use documents::DocumentWordArgs;
pub(crate) use hmm::{DistillArgs, TAG_COLUMN, run_distill};
pub(crate) use training::{TrainResult, find_checkpoint, open_log, save_model};

use crate::args::Common;
use crate::output::Output;
use anyhow::Result;
use clap::{Args, Subcommand};

/// Train a model on text
///
/// Reads text and writes a model, which is a single self-contained file. Ctrl-C interrupts training; models that are
/// trained in iterations save a checkpoint, from which `--resume` continues.
#[derive(Args)]
pub(crate) struct TrainArgs {
    #[command(subcommand)]
    model: ModelArgs,
}

#[derive(Subcommand)]
enum ModelArgs {
    Brown(brown::BrownArgs),
    Ff(Box<neural::FfArgs>),
    Fhmm(Box<fhmm::FhmmArgs>),
    Glda(Box<glda::GldaArgs>),
    Hmm(Box<hmm::HmmArgs>),
    Lda(lda::LdaArgs),
    Lds(Box<lds::LdsArgs>),
    Lstm(Box<neural::LstmArgs>),
    Ngram(ngram::NgramArgs),
    Rnn(Box<neural::RnnArgs>),
    Word2vec(word2vec::Word2vecArgs),
}

pub(crate) fn run(args: &TrainArgs, common: &Common, output: &Output) -> Result<()> {
    match &args.model {
        ModelArgs::Brown(args) => brown::run(args, output),
        ModelArgs::Ff(args) => neural::run_ff(args, common, output),
        ModelArgs::Fhmm(args) => fhmm::run(args, common, output),
        ModelArgs::Glda(args) => glda::run(args, common, output),
        ModelArgs::Hmm(args) => hmm::run(args, common, output),
        ModelArgs::Lda(args) => lda::run(args, common, output),
        ModelArgs::Lds(args) => lds::run(args, common, output),
        ModelArgs::Lstm(args) => neural::run_lstm(args, common, output),
        ModelArgs::Ngram(args) => ngram::run(args, output),
        ModelArgs::Rnn(args) => neural::run_rnn(args, common, output),
        ModelArgs::Word2vec(args) => word2vec::run(args, common, output),
    }
}
