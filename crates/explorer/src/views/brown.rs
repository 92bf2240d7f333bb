//! Brown clusters: the tree, folded below a node.

use super::args::{WordArgs, parse};
use super::text::Typed;
use crate::error::ViewError;
use latens::brown::Brown;
use latens::corpus::WordId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::sync::OnceLock;

/// The words in the order of the tree.
#[derive(Default)]
pub(crate) struct BrownCache {
    /// Path, frequency and word, sorted by path: the words below a node are neighbors.
    words: OnceLock<Vec<(String, u64, WordId)>>,
}

impl BrownCache {
    fn words(&self, brown: &Brown) -> &[(String, u64, WordId)] {
        self.words.get_or_init(|| {
            let (clusters, vocab) = (brown.clusters(), &brown.lexicon().vocab);
            let path = |(word, cluster): (usize, &Option<u32>)| {
                let id = WordId::from(word);
                let path = clusters.path((*cluster)?).to_owned();
                Some((path, vocab.count(id), id))
            };
            let words = clusters.of_word().iter().enumerate().filter_map(path);
            let mut words: Vec<(String, u64, WordId)> = words.collect();
            words.sort_unstable();
            words
        })
    }

    /// The words below a node.
    fn below(&self, brown: &Brown, path: &str) -> &[(String, u64, WordId)] {
        let words = self.words(brown);
        let begin = words.partition_point(|(own, _, _)| own.as_str() < path);
        let n = words[begin..].partition_point(|(own, _, _)| own.starts_with(path));
        &words[begin..begin + n]
    }
}

#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct NodeArgs {
    path: String,
}

/// Answers `node` and `cluster_of_word`; `None` for other views.
pub(crate) fn answer(
    brown: &Brown,
    cache: &BrownCache,
    view: &str,
    args: &Value,
) -> Option<Result<Value, ViewError>> {
    Some(match view {
        "node" => parse::<NodeArgs>(args).and_then(|args| node(brown, cache, &args.path)),
        "cluster_of_word" => {
            parse::<WordArgs>(args).and_then(|args| of_word(brown, cache, &args.word))
        }
        _ => return None,
    })
}

/// The paths of all inner nodes with at most `n` of them, the ones near the root first.
pub(crate) fn inner_nodes(brown: &Brown, cache: &BrownCache, n: usize) -> Vec<String> {
    let mut nodes = vec![String::new()];
    let mut next = 0;
    while next < nodes.len() && nodes.len() < n {
        let children = ["0", "1"].map(|bit| format!("{}{bit}", nodes[next]));
        next += 1;
        nodes.extend(children.into_iter().filter(|path| {
            let words = cache.below(brown, path);
            words.first().is_some_and(|(own, _, _)| own.len() > path.len())
        }));
    }
    nodes
}

/// A node of the tree and its children, each with its most frequent words.
fn node(brown: &Brown, cache: &BrownCache, path: &str) -> Result<Value, ViewError> {
    /// Longer paths are not in any tree.
    const MAX_DEPTH: usize = 10_000;
    if path.len() > MAX_DEPTH || !path.bytes().all(|bit| bit == b'0' || bit == b'1') {
        return Err(ViewError::arguments("a path must consist of the digits 0 and 1"));
    }
    if cache.below(brown, path).is_empty() {
        return Err(ViewError::no_answer(format!("there is no node `{path}`")));
    }
    let mut answer = summary(brown, cache, path, 12);
    let children = ["0", "1"].map(|bit| format!("{path}{bit}"));
    let children = children.iter().filter(|path| !cache.below(brown, path).is_empty());
    answer["children"] = children.map(|path| summary(brown, cache, path, 12)).collect();
    if answer["leaf"] == true {
        answer["words"] = summary(brown, cache, path, 200)["words"].take();
    }
    Ok(answer)
}

fn summary(brown: &Brown, cache: &BrownCache, path: &str, n: usize) -> Value {
    let mut words: Vec<&(String, u64, WordId)> = cache.below(brown, path).iter().collect();
    let (n_words, n_tokens) = (words.len(), words.iter().map(|word| word.1).sum::<u64>());
    let is_leaf = words.iter().all(|(own, _, _)| own == path);
    words.sort_by_key(|&&(_, count, word)| (Reverse(count), word));
    let word = |&&(_, count, word): &&(String, u64, WordId)| json!({ "word": brown.lexicon().vocab.word(word), "count": count });
    json!({
        "path": path,
        "leaf": is_leaf,
        "n_words": n_words,
        "n_tokens": n_tokens,
        "words": words.iter().take(n).map(word).collect::<Vec<_>>(),
    })
}

fn of_word(brown: &Brown, cache: &BrownCache, word: &str) -> Result<Value, ViewError> {
    let typed = Typed::new(brown, word, 1)?;
    let Some(path) = typed.words.first().and_then(|word| brown.path(word)) else {
        return Err(ViewError::no_answer(format!("`{}` has no cluster", word.trim())));
    };
    let mut answer = node(brown, cache, path)?;
    answer["word"] = json!(typed.words[0]);
    Ok(answer)
}
