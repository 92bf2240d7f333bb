// The frame of the page: the list of models, views, the theme, and links to any view.

import { texts } from "./texts.js";
import { figure, h, section, table } from "./dom.js";
import { ask, isLive, items, reportTitle } from "./data.js";
import { exportable } from "./export.js";
import { comparePanel, topicsPanel, trendPanel } from "./topics.js";
import { documentsPanel } from "./documents.js";
import { layersPanel, sentencePanel, stateSamplesPanel, statesPanel } from "./states.js";
import { tagsPanel, textPanel, textSamplesPanel } from "./language.js";
import { contextPanel, pairsPanel, wordsPanel } from "./words.js";
import { treePanel } from "./tree.js";
import { logPanel } from "./log.js";

const PANELS = {
  topics: topicsPanel, documents: documentsPanel, trend: trendPanel, compare: comparePanel, states: statesPanel,
  layers: layersPanel, sentence: sentencePanel, text: textPanel, tags: tagsPanel, tree: treePanel, words: wordsPanel,
  pairs: pairsPanel, context: contextPanel, log: logPanel, about: aboutPanel,
  samples: (context) => (context.items[context.item].panels.includes("text") ? textSamplesPanel : stateSamplesPanel)(context),
};

/** Views that need typed text; a report has no answers to it. */
const TYPED = new Set(["documents", "sentence", "text", "tags", "context"]);

async function aboutPanel({ item, items: all }) {
  const t = texts.about;
  const answer = await ask(item, "about");
  const part = (title, values) => {
    const flat = Object.entries(values ?? {}).map(([name, value]) => ({ name, value: typeof value === "object" ? JSON.stringify(value) : value }));
    if (!flat.length) return null;
    const rows = table(title, [
      { name: t.name, of: (one) => one.name, head: true },
      { name: t.value, of: (one) => one.value, view: (one) => (typeof one.value === "number" ? figure(one.value) : String(one.value)) },
    ], flat);
    return exportable(section(title, rows), title, { table: rows });
  };
  return h("div", {}, h("p", {}, `${all[item].name}: ${all[item].description}. ${t.vocabulary(figure(answer.n_words))}.`),
    part(t.parameters, answer.parameters), part(t.facts, answer.facts), part(t.preprocessing, answer.preprocessing));
}

function readRoute() {
  return new URLSearchParams(location.hash.slice(1));
}

/** The address of a view: changes to the current one; `undefined` removes a part. */
function linkTo(route, changes) {
  const next = new URLSearchParams(route);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) next.delete(name); else next.set(name, value);
  }
  return `#${next}`;
}

function currentPanel(all, route) {
  const item = Math.min(Math.max(Number(route.get("model") ?? 0) || 0, 0), all.length - 1);
  const hasOther = all.some((other, index) => index !== item && other.panels.includes("compare"));
  const panels = all[item].panels.filter((panel) => (isLive || !TYPED.has(panel)) && (panel !== "compare" || hasOther));
  const panel = panels.includes(route.get("panel")) ? route.get("panel") : panels[0];
  return { item, panel, panels };
}

let shownNumber = 0;

async function show(all, frame) {
  const route = readRoute();
  const { item, panel, panels } = currentPanel(all, route);
  const number = ++shownNumber;
  const isShown = () => number === shownNumber;
  const base = new URLSearchParams(route);
  if (base.has("model") || item) base.set("model", item);
  const context = {
    item, items: all, route, isShown,
    link: (changes) => linkTo(base, changes.model !== undefined ? { ...cleared(base), ...changes } : changes.panel ? { ...cleared(base), model: item, ...changes } : { panel, ...changes }),
    go: (changes) => { location.hash = linkTo(readRoute(), { panel, ...changes }); },
    // Keeps what was typed in the address without showing the view again.
    keep: (changes) => history.replaceState(null, "", linkTo(readRoute(), changes)),
    whileShown: (run, every) => {
      const timer = setInterval(() => (isShown() ? run().catch(() => {}) : clearInterval(timer)), every);
    },
  };
  drawNavigation(frame, all, item, panel, panels);
  document.title = `${all[item].name} · ${texts.panel[panel]} · ${reportTitle ?? texts.title}`;
  frame.main.setAttribute("aria-busy", "true");
  let content;
  try {
    content = await PANELS[panel](context);
  } catch (error) {
    content = h("p", { class: "error", role: "alert" }, error.message || texts.failed);
  }
  if (!isShown()) return;
  // The focus stays where it was: the same control of the new content.
  const focused = document.activeElement?.id;
  frame.main.replaceChildren(h("h1", {}, `${all[item].name}: ${texts.panel[panel]}`), content);
  frame.main.setAttribute("aria-busy", "false");
  if (focused) document.getElementById(focused)?.focus();
}

function cleared(route) {
  return Object.fromEntries([...route.keys()].map((name) => [name, undefined]));
}

function drawNavigation(frame, all, item, panel, panels) {
  frame.list.replaceChildren(...all.map((one, index) => h("li", {},
    h("a", { href: `#model=${index}`, "aria-current": index === item ? "page" : undefined },
      h("span", { class: "name" }, one.name), h("span", { class: "kind" }, texts.kinds[one.kind] ?? one.kind)))));
  frame.panels.replaceChildren(...panels.map((name) => h("li", {},
    h("a", { href: `#model=${item}&panel=${name}`, "aria-current": name === panel ? "page" : undefined }, texts.panel[name]))));
}

function themeChoice() {
  const stored = (() => { try { return localStorage.getItem("theme"); } catch { return null; } })();
  const set = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  };
  set(stored ?? "auto");
  const choice = h("select", { id: "theme", onchange: () => {
    set(choice.value);
    try { localStorage.setItem("theme", choice.value); } catch { /* A page from a file may not store anything. */ }
  } }, Object.entries(texts.themes).map(([value, name]) => h("option", { value, selected: value === (stored ?? "auto") }, name)));
  return h("div", { class: "theme" }, h("label", { for: "theme" }, texts.theme), choice);
}

async function start() {
  const page = document.getElementById("page");
  const frame = { list: h("ul"), panels: h("ul"), main: h("main", { id: "main", tabindex: "-1" }, h("p", {}, texts.loading)) };
  const skip = h("a", { class: "skip", href: "#", onclick: (event) => { event.preventDefault(); frame.main.focus(); } }, texts.skip);
  page.append(
    h("header", {}, skip, h("p", { class: "brand" }, reportTitle ?? texts.title), themeChoice()),
    h("nav", { class: "items", "aria-label": texts.items }, frame.list),
    h("nav", { class: "panels", "aria-label": texts.panels }, frame.panels),
    frame.main);
  try {
    const all = await items();
    addEventListener("hashchange", () => show(all, frame));
    await show(all, frame);
  } catch (error) {
    frame.main.replaceChildren(h("h1", {}, texts.failed), h("p", { class: "error", role: "alert" }, error.message));
  }
}

start();
