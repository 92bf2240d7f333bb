//! The files of the page, embedded in the program.

/// A file of the page.
pub(crate) struct Asset {
    /// Its name in the URL.
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! asset {
    ($name:literal, $media_type:literal) => {
        Asset {
            name: $name,
            media_type: $media_type,
            text: include_str!(concat!("../web/", $name)),
        }
    };
}

macro_rules! script {
    ($name:literal) => {
        asset!($name, "text/javascript; charset=utf-8")
    };
}

pub(crate) const INDEX: Asset = asset!("index.html", "text/html; charset=utf-8");
pub(crate) const STYLE: Asset = asset!("style.css", "text/css; charset=utf-8");
pub(crate) const ICON: Asset = asset!("icon.svg", "image/svg+xml");

/// The modules, each after those that it imports.
pub(crate) const SCRIPTS: [Asset; 14] = [
    script!("d3.js"),
    script!("texts.js"),
    script!("dom.js"),
    script!("data.js"),
    script!("export.js"),
    script!("charts.js"),
    script!("topics.js"),
    script!("documents.js"),
    script!("states.js"),
    script!("language.js"),
    script!("words.js"),
    script!("tree.js"),
    script!("log.js"),
    script!("app.js"),
];

/// The file with this name.
pub(crate) fn find(name: &str) -> Option<Asset> {
    let all = [INDEX, STYLE, ICON].into_iter().chain(SCRIPTS);
    all.into_iter().find(|asset| asset.name == name)
}
