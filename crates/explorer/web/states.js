// Hidden states: of a hidden Markov model, and of the layers of a factorial one.

import { texts } from "./texts.js";
import { debounced, field, figure, h, percent, section, table } from "./dom.js";
import { ask, isLive } from "./data.js";
import { exportable } from "./export.js";
import { bars, flow, heatMap } from "./charts.js";
import { reveal, surprisalWords } from "./language.js";

const PAGE = isLive ? 50 : 300;

/** The list of states, and one state with its transitions. */
export async function statesPanel(context) {
  const { item, route, go, link } = context;
  const t = texts.states;
  const first = Number(route.get("first") ?? 0);
  const answer = await ask(item, "states", { first, n: PAGE });
  const selected = Number(route.get("state") ?? answer.states[0]?.state ?? 0);
  const list = table(t.list, [
    { name: t.number, of: (one) => one.state, number: true, head: true, view: (one) => h("a", { href: link({ state: one.state }) }, one.state) },
    { name: t.share, of: (one) => one.share, number: true, view: (one) => percent(one.share) },
    { name: t.words, of: (one) => one.words.join(" ") },
  ], answer.states, { selected: (one) => one.state === selected });
  const listSection = section(t.list, h("p", { class: "help" }, t.shareHelp, answer.estimated && ` ${t.estimated}`),
    isLive && wordSearch(context), list, pager(first, answer.states.length, answer.n_states, (at) => go({ first: at })));
  exportable(listSection, t.list, { table: list });
  return h("div", { class: "two" }, h("div", {}, listSection), h("div", {}, await stateSections(context, selected)));
}

function pager(first, n, all, open) {
  if (n >= all) return null;
  const button = (label, at, enabled) => h("button", { type: "button", class: "small", disabled: !enabled, onclick: () => open(at) }, label);
  return h("div", { class: "pager" },
    button(texts.previous, Math.max(0, first - PAGE), isLive && first > 0),
    h("span", {}, texts.range(first + 1, first + n, figure(all))),
    button(texts.next, first + PAGE, isLive && first + n < all));
}

function wordSearch({ item, link, route, keep }) {
  const t = texts.states;
  const input = h("input", { type: "search", id: "state-search", autocomplete: "off", value: route.get("word") ?? "" });
  const result = h("div", { "aria-live": "polite" });
  const search = async () => {
    keep({ word: input.value || undefined });
    if (!input.value.trim()) return result.replaceChildren();
    try {
      const { word, states } = await ask(item, "states_of_word", { word: input.value });
      result.replaceChildren(table(`${t.find}: ${word}`, [
        { name: t.number, of: (one) => one.state, number: true, head: true, view: (one) => h("a", { href: link({ state: one.state }) }, one.state) },
        { name: t.prob, of: (one) => one.prob, number: true, view: (one) => percent(one.prob) },
        { name: t.words, of: (one) => one.words.join(" ") },
      ], states.slice(0, 8)));
    } catch (error) {
      result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  input.addEventListener("input", debounced(search));
  if (input.value) search();
  return h("div", {}, field(t.find, input), result);
}

async function stateSections({ item, go }, state) {
  const t = texts.states;
  const answer = await ask(item, "state", { state });
  const rows = answer.words.map((word) => ({ label: word.word, value: word.prob, text: percent(word.prob) }));
  const svg = bars(t.state(state), rows);
  const words = table(t.state(state), [{ name: t.word, of: (word) => word.word, head: true }, { name: t.prob, of: (word) => word.prob, number: true }], answer.words);
  const own = section(t.state(state), h("p", {}, `${t.share}: ${percent(answer.share)}. ${t.start(percent(answer.start))}.`), svg);
  const graph = flow(t.transitions, state, answer.before, answer.next, (other) => go({ state: other }));
  const transitions = section(t.transitions, h("div", { class: "columns" }, h("span", {}, answer.before ? t.before : ""), h("span", {}, t.after)), graph);
  return [exportable(transitions, `${t.transitions} ${state}`, { svg: graph }), exportable(own, t.state(state), { svg, table: words })];
}

/** The layers of a factorial model side by side. */
export async function layersPanel({ item, route, link }) {
  const t = texts.states;
  const answer = await ask(item, "layers");
  const [layer, state] = [Number(route.get("layer") ?? 0), Number(route.get("state") ?? 0)];
  const columns = answer.layers.map((states, m) => {
    const rows = table(t.layer(m), [
      { name: t.number, of: (one) => one.state, number: true, head: true, view: (one) => h("a", { href: link({ layer: m, state: one.state }) }, one.state) },
      { name: t.words, of: (one) => one.words.join(" ") },
    ], states, { selected: (one) => m === layer && one.state === state });
    return exportable(section(t.layer(m), rows), t.layer(m), { table: rows });
  });
  const one = await ask(item, "layer_state", { layer, state });
  const name = `${t.layer(layer)}, ${t.state(state)}`;
  const list = table(name, [
    { name: t.word, of: (word) => word.word, head: true }, { name: t.score, of: (word) => word.score, number: true },
  ], one.words);
  const next = table(`${name}: ${t.after}`, [
    { name: t.after, of: (other) => other.state, number: true, head: true, view: (other) => h("a", { href: link({ layer, state: other.state }) }, other.state) },
    { name: t.prob, of: (other) => other.prob, number: true, view: (other) => percent(other.prob) },
    { name: t.words, of: (other) => other.words.join(" ") },
  ], one.next);
  const detail = exportable(section(name, h("p", {}, t.start(percent(one.start))), next, list), name, { table: list });
  return h("div", {}, h("div", { class: "layers" }, columns), detail);
}

/** A sentence with the posterior of its states. */
export async function sentencePanel({ item, items, route, keep }) {
  const t = texts.states;
  if (!isLive) return h("p", {}, texts.needsProgram);
  const isFactorial = items[item].kind === "fhmm";
  const input = h("input", { type: "text", id: "sentence", autocomplete: "off", maxlength: 5000, value: route.get("text") ?? t.example });
  const result = h("div", { "aria-live": "polite" });
  let asked = 0;
  const show = async () => {
    const own = ++asked;
    keep({ text: input.value });
    try {
      const answer = await ask(item, "sentence", { text: input.value });
      if (own === asked) result.replaceChildren(...(isFactorial ? factorialSentence(answer) : markovSentence(answer)));
    } catch (error) {
      if (own === asked) result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  input.addEventListener("input", debounced(show));
  await show();
  return h("div", {}, section(t.type, field(t.type, input)), result);
}

function posteriorPart(title, tokens, states, path) {
  const t = texts.states;
  const rows = states.map((one) => ({
    label: `${one.state}  ${one.words.join(" ")}`,
    values: one.posterior,
    path: new Set(path.flatMap((state, i) => (state === one.state ? [i] : []))),
  }));
  const svg = heatMap(title, tokens, rows);
  const numbers = table(title, [
    { name: t.number, of: (one) => one.state, number: true, head: true },
    ...tokens.map((token, i) => ({ name: token.word, of: (one) => one.posterior[i], number: true })),
  ], states);
  const element = section(title, h("p", { class: "help" }, t.posteriorHelp), h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": title }, svg),
    h("details", {}, h("summary", {}, title), numbers));
  return exportable(element, title, { svg, table: numbers });
}

function markovSentence(answer) {
  const t = texts.states;
  if (!answer.tokens.length) return [];
  const path = table(t.path, [
    { name: t.word, of: (token) => token.word, head: true },
    { name: t.number, of: (token) => token.state, number: true },
    { name: `${t.surprisal} (${t.bits})`, of: (token) => token.bits, number: true },
  ], answer.tokens.map((token, i) => ({ ...token, state: answer.path[i] })));
  const next = bars(t.nextWords, answer.next.map((word) => ({ label: word.word, value: word.prob, text: percent(word.prob) })));
  return [
    section(t.surprisal, h("p", { class: "help" }, t.surprisalHelp), surprisalWords(answer.tokens), h("p", { id: "perplexity" }, t.perplexity(figure(answer.perplexity)))),
    posteriorPart(t.posterior, answer.tokens, answer.states, answer.path),
    h("div", { class: "two" },
      exportable(section(t.path, path), t.path, { table: path }),
      exportable(section(t.nextWords, next), t.nextWords, { svg: next })),
  ];
}

function factorialSentence(answer) {
  const t = texts.states;
  if (!answer.tokens.length) return [];
  return [
    h("p", {}, t.bound(figure(answer.bound_bits))),
    ...answer.layers.map((layer, m) => posteriorPart(`${t.posterior}: ${t.layer(m)}`, answer.tokens, layer.states, layer.path)),
  ];
}

/** Generated text with its states. */
export async function stateSamplesPanel({ item, items, route, go, link, isShown }) {
  const t = texts.states;
  const seed = Number(route.get("seed") ?? 1);
  const { tokens } = await ask(item, "sample_states", { seed });
  const isFactorial = items[item].kind === "fhmm";
  const words = tokens.map((token) => {
    if (token.word === "<eos>") return h("br");
    const states = isFactorial ? token.states.join("·") : token.state;
    const shown = h("span", { class: "token", title: t.state(states) }, token.word, h("sub", {}, states));
    return [isFactorial ? shown : h("a", { href: link({ panel: "states", state: token.state }), class: "plain" }, shown), " "];
  });
  const again = isLive && h("button", { type: "button", onclick: () => go({ seed: seed + 1 }) }, t.again);
  const place = h("p", { class: "tokens" });
  reveal(place, words, isShown);
  return section(t.samples, again, place);
}
