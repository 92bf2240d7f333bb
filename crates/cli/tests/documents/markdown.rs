//! The few parts of Markdown that the checks need.

/// A part of a document.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// A fenced block: its language, and its lines without common indentation.
    Block { language: &'a str, lines: Vec<&'a str> },
    /// Consecutive lines outside of blocks.
    Prose(Vec<&'a str>),
}

/// Splits a document at its fences.
pub(crate) fn parts(text: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut lines = text.lines();
    let mut prose = Vec::new();
    while let Some(line) = lines.next() {
        let Some(language) = line.trim_start().strip_prefix("```") else {
            prose.push(line);
            continue;
        };
        parts.push(Part::Prose(std::mem::take(&mut prose)));
        let body = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```"));
        parts.push(Part::Block { language: language.trim(), lines: body.map(str::trim).collect() });
    }
    parts.push(Part::Prose(prose));
    parts
}

/// The code spans of prose; a span may continue on the next line. Paragraphs end at blank lines.
pub(crate) fn code_spans(prose: &[&str]) -> Vec<String> {
    paragraphs(prose)
        .iter()
        .flat_map(|paragraph| {
            paragraph.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>()
        })
        .collect()
}

/// The prose without its code spans.
pub(crate) fn without_code(prose: &[&str]) -> Vec<String> {
    paragraphs(prose).iter().map(|paragraph| paragraph.split('`').step_by(2).collect()).collect()
}

/// Paragraphs, as one line each. Rows of tables and headings are paragraphs of their own.
fn paragraphs(prose: &[&str]) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in prose.iter().map(|line| line.trim()) {
        let stands_alone = line.is_empty() || line.starts_with(['|', '#']);
        if stands_alone {
            paragraphs.push(line.to_owned());
            paragraphs.push(String::new());
        } else {
            let paragraph = paragraphs.last_mut().expect("there is one at least");
            paragraph.push_str(line);
            paragraph.push(' ');
        }
    }
    paragraphs
}

/// The anchors of a document's headings, as GitHub makes them, and of `<a id="…">`.
pub(crate) fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for part in parts(text) {
        let Part::Prose(lines) = part else { continue };
        for line in lines {
            if line.starts_with('#') {
                let slug = slug(line.trim_start_matches('#').trim());
                let n_before = anchors.iter().filter(|other| **other == slug).count();
                anchors.push(if n_before == 0 { slug } else { format!("{slug}-{n_before}") });
            }
            let ids = line.split("<a id=\"").skip(1).filter_map(|rest| rest.split('"').next());
            anchors.extend(ids.map(str::to_owned));
        }
    }
    anchors
}

fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn anchors_are_those_of_github() {
    let text = "# The model\n## GPU: `--device cuda`\n## The model\n```sh\n# no heading\n```\n";
    assert_eq!(anchors(text), ["the-model", "gpu---device-cuda", "the-model-1"]);
}

#[test]
fn code_spans_continue_on_the_next_line() {
    let prose = ["Run `latens sample x.ngram -n", "5`, or `latens demo`.", "", "| `a` | b |"];
    assert_eq!(code_spans(&prose), ["latens sample x.ngram -n 5", "latens demo", "a"]);
}
