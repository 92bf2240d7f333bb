use crate::args::Common;
use crate::commands::language::drawing::{UnkArg, share, temperature};
use crate::commands::roles::language_model;
use crate::errors::hinted;
use crate::output::{Output, print, print_json, shown_words};
use anyhow::Result;
use clap::Args;
use latens::control::{
    Alphabet, Automaton, Constraint, Generated, Guide, Lengths, Lookahead, LookaheadOptions,
    Steerer, check_vocabulary,
};
use latens::corpus::{Lexicon, WordId};
use latens::hmm::{Expectations, Hmm};
use latens::math::Rng;
use latens::model::{Bytes, Cost, Device, Model};
use latens::tasks::SampleOptions;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Generate text that satisfies constraints
///
/// Draws sentences from a language model under constraints and prints one sentence per line. A hidden Markov model, the
/// guide, computes exactly how probable it is that the constraints will be met after each possible next word. The
/// probability of a word under the model is multiplied by it, so every sentence satisfies all constraints. A hidden Markov
/// model is its own guide; its sentences are exact samples of those that satisfy the constraints.
#[derive(Args)]
pub(crate) struct GenerateArgs {
    /// Language model
    model: PathBuf,
    /// Hidden Markov model that guides the language model, with the same vocabulary [default: MODEL, if it is one]
    #[arg(long, value_name = "HMM")]
    guide: Option<PathBuf>,
    /// Phrase that must occur; repeat the option for several phrases
    #[arg(long, value_name = "PHRASE", help_heading = "Constraints")]
    must: Vec<String>,
    /// Require the phrases of `--must` in the given order, without overlap
    #[arg(long, requires = "must", help_heading = "Constraints")]
    in_order: bool,
    /// Phrase that must not occur; repeat the option for several phrases
    #[arg(long, value_name = "PHRASE", help_heading = "Constraints")]
    must_not: Vec<String>,
    /// Pattern of words that the whole sentence must match: `.` is any word, `[a b]` one of two, `/[0-9]+/` a word by
    /// its characters; `*`, `+`, `?`, `{2,5}`, `|` and `( )` as usual; `"."` is the word `.`
    #[arg(long, visible_alias = "pattern", value_name = "PATTERN", help_heading = "Constraints")]
    regex: Vec<String>,
    /// Regular expression that the characters of the whole sentence must match; words are separated by single spaces
    #[arg(long, value_name = "PATTERN", help_heading = "Constraints")]
    char_regex: Vec<String>,
    /// Words at the end of the sentence
    #[arg(long, value_name = "TEXT", help_heading = "Constraints")]
    ends_with: Option<String>,
    /// Beginning of each sentence
    #[arg(long, value_name = "TEXT", help_heading = "Constraints")]
    prefix: Option<String>,
    /// End of each sentence, after the words that are drawn
    #[arg(long, value_name = "TEXT", conflicts_with = "ends_with", help_heading = "Constraints")]
    suffix: Option<String>,
    /// Minimum number of words to draw per sentence, not counting `--prefix` and `--suffix`
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Constraints")]
    min_words: usize,
    /// Maximum number of words to draw per sentence, not counting `--prefix` and `--suffix`
    #[arg(long, value_name = "N", default_value_t = 30, help_heading = "Constraints")]
    max_words: usize,
    /// Maximum number of states of the automaton of the constraints
    #[arg(long, value_name = "N", default_value_t = latens::control::MAX_STATES, help_heading = "Constraints")]
    max_states: usize,
    /// Number of sentences
    #[arg(short, value_name = "N", default_value_t = 5, value_parser = positive)]
    n: usize,
    /// Exponent of the guide's probability: above 1 for a stronger guide; 0 only excludes words that rule out the constraints
    #[arg(long, value_name = "W", default_value_t = 1.0, value_parser = temperature)]
    weight: f64,
    /// Find the most likely sentences by beam search with this many hypotheses, instead of drawing sentences
    #[arg(long, value_name = "K", value_parser = positive, conflicts_with_all = ["temperature", "top_k", "top_p"])]
    beam: Option<usize>,
    /// Find the most likely sentence together with its hidden states; needs a hidden Markov model without a guide
    #[arg(long, conflicts_with_all = ["beam", "guide", "temperature", "top_k", "top_p", "weight"])]
    viterbi: bool,
    /// Temperature T: probabilities are raised to the power 1/T. Below 1 favors likely words, above 1 gives more
    /// variety, 0 always takes the most likely word
    #[arg(long, value_name = "T", default_value_t = 1.0, value_parser = temperature)]
    temperature: f64,
    /// Draw only from the K most likely words
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    top_k: Option<u32>,
    /// Draw only from the smallest set of most likely words with a total probability of at least P (0 < P ≤ 1)
    #[arg(long, value_name = "P", value_parser = share)]
    top_p: Option<f64>,
    /// Whether `<unk>`, which stands for all unknown words, is drawn
    #[arg(long, value_enum, default_value_t)]
    unk: UnkArg,
    /// Device that computes the tables: `cpu` or `cuda`; models of up to 1,024 states always use the CPU
    #[arg(long, value_name = "DEVICE", default_value_t = Device::Cpu)]
    device: Device,
    /// Print the size of the automaton and the memory of the tables, without generating text
    #[arg(long)]
    dry_run: bool,
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&n| n > 0).ok_or_else(|| "expected a number of at least 1".into())
}

pub(crate) fn run(args: &GenerateArgs, common: &Common, output: &Output) -> Result<()> {
    let model = &*latens::open(&args.model)?;
    let language_model = language_model(model, &args.model)?;
    let opened = args.guide.as_ref().map(latens::open).transpose()?;
    let hmm = match (&opened, &args.guide) {
        (Some(guide), Some(path)) => hmm_of(&**guide, path)?,
        _ => model.downcast_ref::<Hmm>().ok_or_else(|| no_guide(model, &args.model))?,
    };
    let lexicon = model.lexicon();
    check_vocabulary(&hmm.lexicon().vocab, &lexicon.vocab)?;
    let suffix = args.n_suffix_words(lexicon);
    let compiled = args.constraint().compile_with(&Alphabet::Words(lexicon), args.max_states)?;
    let lengths = Lengths {
        min: args.min_words.saturating_add(suffix),
        max: args.max_words.saturating_add(suffix),
    };
    let options = LookaheadOptions::new(lengths).keep_unk(args.unk == UnkArg::Keep);
    if args.dry_run {
        let cost = match args.viterbi {
            true => Lookahead::cost_with_most_probable(hmm, &compiled.automaton, &options),
            false => Lookahead::cost(hmm, &compiled.automaton, &options),
        };
        return show_cost(&compiled.automaton, &cost, output);
    }
    args.warn(lexicon, output);
    let prefix = lexicon.ids(args.prefix.as_deref().unwrap_or(""));
    // The memory of the device is free again before text is generated.
    let lookahead = {
        let expectations = Expectations::on(hmm, args.device)?;
        Lookahead::with(&expectations, compiled.automaton, options)?
    };
    let guide = Guide::new(hmm, &lookahead);
    let steerer = match &args.guide {
        None => Steerer::alone(guide, &prefix),
        Some(_) => Steerer::new(language_model, guide, &prefix),
    };
    let steerer = steerer?.weight(args.weight);
    let shown = Shown { args, lexicon, automaton: lookahead.automaton(), prefix: &prefix };
    let mut sentences = Vec::new();
    args.generate(&steerer, guide, &prefix, common, |words, log_prob| {
        if output.is_json() {
            sentences.push(shown.row(&words, log_prob));
            return Ok(());
        }
        let words = shown.words(&words);
        print(|out| writeln!(out, "{}", shown_words(words.iter().map(String::as_str))))
    })?;
    if !output.is_json() {
        return Ok(());
    }
    print_json(&json!({ "sentences": sentences, "constraint_log_prob": steerer.log_prob() }))
}

fn hmm_of<'a>(guide: &'a dyn Model, path: &Path) -> Result<&'a Hmm> {
    guide.downcast_ref::<Hmm>().ok_or_else(|| {
        hinted(
            format!(
                "`{}` is {}, and only a hidden Markov model can be a guide",
                path.display(),
                guide.description()
            ),
            "train one, e.g., `latens train hmm news.txt -o news.hmm`",
        )
    })
}

fn no_guide(model: &dyn Model, path: &Path) -> anyhow::Error {
    hinted(
        format!(
            "`{}` is {}, which needs a guide to satisfy constraints",
            path.display(),
            model.description()
        ),
        "pass `--guide` with a hidden Markov model that has the same vocabulary",
    )
}

impl GenerateArgs {
    fn constraint(&self) -> Constraint {
        let mut parts = Vec::new();
        if self.in_order {
            parts.push(Constraint::contains_in_order(self.must.iter().map(String::as_str)));
        } else {
            parts.extend(self.must.iter().map(|phrase| Constraint::contains(phrase.as_str())));
        }
        if !self.must_not.is_empty() {
            parts.push(Constraint::excludes_all(self.must_not.iter().map(String::as_str)));
        }
        parts.extend(self.regex.iter().map(|pattern| Constraint::regex(pattern.as_str())));
        let char_regex = self.char_regex.iter();
        parts.extend(char_regex.map(|pattern| Constraint::char_regex(pattern.as_str())));
        let endings = self.ends_with.iter().chain(&self.suffix);
        parts.extend(endings.map(|text| Constraint::ends_with(text.as_str())));
        Constraint::all(parts)
    }

    fn n_suffix_words(&self, lexicon: &Lexicon) -> usize {
        lexicon.ids(self.suffix.as_deref().unwrap_or("")).len()
    }

    /// Warns about words that the model does not know where this is not an error.
    fn warn(&self, lexicon: &Lexicon, output: &Output) {
        for phrase in &self.must_not {
            lexicon.words(phrase, |word| {
                if lexicon.vocab.get(word).is_none() {
                    output.note(&format!(
                        "warning: `{word}` of `--must-not` is not in the vocabulary, so it never occurs"
                    ));
                }
            });
        }
        let prefix = lexicon.ids(self.prefix.as_deref().unwrap_or(""));
        let n_unknown = prefix.iter().filter(|&&word| word == WordId::UNK).count();
        if n_unknown > 0 {
            output.note(&format!(
                "warning: {n_unknown} of the {} words of the prefix are unknown to the model",
                prefix.len()
            ));
        }
    }

    fn generate(
        &self,
        steerer: &Steerer<'_>,
        guide: Guide<'_>,
        prefix: &[WordId],
        common: &Common,
        mut show: impl FnMut(Vec<WordId>, f64) -> Result<()>,
    ) -> Result<()> {
        if self.viterbi {
            let best = guide.most_probable(&guide.start_with(prefix)?)?;
            return best.map_or(Ok(()), |best| show(best.words, best.log_prob));
        }
        let mut show = |found: Generated| show(found.words, found.log_prob);
        if let Some(width) = self.beam {
            return steerer.beam(width.max(self.n), self.n)?.into_iter().try_for_each(show);
        }
        let mut options = SampleOptions::default();
        options.temperature = self.temperature;
        options.top_k = self.top_k.map(|k| k as usize);
        options.top_p = self.top_p;
        let mut rng = Rng::new(common.seed);
        (0..self.n).try_for_each(|_| show(steerer.sample(&options, &mut rng)?))
    }
}

/// How generated sentences are printed.
struct Shown<'a> {
    args: &'a GenerateArgs,
    lexicon: &'a Lexicon,
    automaton: &'a Automaton,
    prefix: &'a [WordId],
}

impl Shown<'_> {
    /// The words of a sentence. The prefix is as its reader wrote it: the model may know its words only as `<unk>`.
    fn words(&self, drawn: &[WordId]) -> Vec<String> {
        let mut words = Vec::new();
        let prefix = self.args.prefix.as_deref().unwrap_or("");
        self.lexicon.words(prefix, |word| words.push(word.to_owned()));
        words.extend(drawn.iter().map(|&word| self.lexicon.vocab.word(word).to_owned()));
        words
    }

    fn row(&self, drawn: &[WordId], log_prob: f64) -> Value {
        let all = self.prefix.iter().chain(drawn).map(|word| word.index());
        let satisfied = self.automaton.accepts(all);
        json!({ "text": self.words(drawn).join(" "), "log_prob": log_prob, "satisfied": satisfied })
    }
}

/// Prints the size of the automaton and the cost of the tables.
fn show_cost(automaton: &Automaton, cost: &Cost, output: &Output) -> Result<()> {
    let multiply_adds = cost.multiply_adds_per_iteration() * cost.n_iterations() as f64;
    let (n_states, n_classes) = (automaton.n_states(), automaton.n_classes());
    if !output.is_json() {
        return print(|out| {
            writeln!(out, "automaton {n_states} states, {n_classes} classes of words")?;
            writeln!(out, "memory {}", Bytes(cost.memory_bytes()))?;
            for part in cost.parts() {
                writeln!(out, "  {} {}", part.name, Bytes(part.bytes as u64))?;
            }
            writeln!(out, "multiply-adds {multiply_adds:.2e}")
        });
    }
    let result = json!({
        "automaton_states": n_states,
        "word_classes": n_classes,
        "memory_bytes": cost.memory_bytes(),
        "multiply_adds": multiply_adds,
    });
    print_json(&result)
}
