// Word vectors: the map, neighbors, analogies, the pairs of a transition, words in context.

import { texts } from "./texts.js";
import { debounced, field, figure, h, percent, section, table } from "./dom.js";
import { ask, hasAnswer, isLive } from "./data.js";
import { exportable } from "./export.js";
import { bars, wordMap } from "./charts.js";

function neighborList(caption, words) {
  return table(caption, [
    { name: texts.words.word, of: (one) => one.word, head: true },
    { name: texts.words.similarity, of: (one) => one.similarity, number: true },
  ], words);
}

/** The map of words, and the neighbors of one. */
export async function wordsPanel(context) {
  const { item, route, go } = context;
  const t = texts.words;
  const projection = route.get("projection") === "tsne" ? "tsne" : "pca";
  const map = await ask(item, "map", mapArgs(projection));
  const word = route.get("word") ?? (map.words ?? (await ask(item, "map")).words)[0]?.word ?? "";
  const found = h("div", { "aria-live": "polite" });
  let near = [];
  if (word && hasAnswer(item, "neighbors", { word })) {
    try {
      const answer = await ask(item, "neighbors", { word });
      near = answer.neighbors;
      const rows = neighborList(t.neighbors(answer.word), near);
      const svg = bars(t.neighbors(answer.word), near.map((one) => ({ label: one.word, value: Math.max(one.similarity, 0), text: figure(one.similarity) })));
      found.append(exportable(section(t.neighbors(answer.word), svg), t.neighbors(answer.word), { svg, table: rows }));
    } catch (error) {
      found.append(h("p", { class: "error", role: "alert" }, error.message));
    }
  }
  const mapPart = h("div", {}, mapSection(context, map, { projection, word, near }));
  if (map.progress !== undefined) followMap(context, mapPart, { projection, word, near });
  const input = h("input", { type: "text", id: "word", maxlength: 200, value: word });
  const form = isLive && h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); go({ word: input.value }); } }, field(t.find, input), h("button", { type: "submit" }, t.show));
  return h("div", { class: "two" }, mapPart, h("div", {}, form, found, isLive && analogySection(context)));
}

/** The arguments of a map: none for the map that is shown first. */
function mapArgs(projection) {
  return projection === "pca" ? {} : { projection };
}

/** The map with the choice of its projection; a line that says how far it is while it is computed. */
function mapSection({ item, go }, map, { projection, word, near }) {
  const t = texts.words;
  const names = Object.entries(t.projections).filter(([name]) => hasAnswer(item, "map", mapArgs(name)));
  const choice = h("select", { id: "projection", onchange: () => go({ projection: choice.value }) }, names.map(([value, name]) => h("option", { value, selected: value === projection }, name)));
  const head = [h("p", { class: "help" }, t.mapHelp[projection]), names.length > 1 && field(t.projection, choice)];
  if (map.progress !== undefined) return section(t.map, head, h("p", { role: "status", id: "map-progress" }, t.computing(percent(map.progress))));
  const svg = wordMap(t.map, map.words, { selected: word, near: new Set(near.map((one) => one.word)), onselect: (other) => hasAnswer(item, "neighbors", { word: other }) && go({ word: other }) });
  const places = table(t.map, [
    { name: t.word, of: (one) => one.word, head: true }, { name: texts.tree.count, of: (one) => one.count, number: true },
    { name: "x", of: (one) => one.x, number: true }, { name: "y", of: (one) => one.y, number: true },
  ], map.words);
  return exportable(section(t.map, head, svg), t.map, { svg, table: places });
}

/** Asks again until the map is computed. */
function followMap(context, place, shown) {
  let isDone = false;
  context.whileShown(async () => {
    if (isDone) return;
    const map = await ask(context.item, "map", mapArgs(shown.projection));
    if (isDone) return;
    isDone = map.progress === undefined;
    if (isDone) place.replaceChildren(mapSection(context, map, shown));
    else place.querySelector("#map-progress").textContent = texts.words.computing(percent(map.progress));
  }, 500);
}

function analogySection({ item, route, keep }) {
  const t = texts.words;
  const names = ["a", "b", "c"];
  const inputs = names.map((name) => h("input", { type: "text", id: `analogy-${name}`, maxlength: 200, size: 10, value: route.get(name) ?? "" }));
  const result = h("div", { "aria-live": "polite" });
  const show = async () => {
    const args = Object.fromEntries(names.map((name, i) => [name, inputs[i].value]));
    keep(args);
    try {
      const answer = await ask(item, "analogy", args);
      result.replaceChildren(neighborList(t.analogyOf(...answer.words), answer.nearest));
      result.prepend(h("p", {}, t.analogyOf(...answer.words)));
    } catch (error) {
      result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  const form = h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); show(); } }, names.map((name, i) => field(name, inputs[i])), h("button", { type: "submit" }, t.show));
  if (inputs.every((input) => input.value)) show();
  return section(t.analogy, h("p", { class: "help" }, t.analogyHelp), form, result);
}

/** The singular pairs of a transition. */
export async function pairsPanel({ item }) {
  const t = texts.words;
  const { pairs } = await ask(item, "pairs");
  const side = (words) => words.map((one) => one.word).join(" ");
  const rows = table(t.pairs, [
    { name: t.strength, of: (pair) => pair.strength, number: true, head: true },
    { name: t.from, of: (pair) => side(pair.from) },
    { name: "→", of: () => "→" },
    { name: t.to, of: (pair) => side(pair.to) },
  ], pairs);
  return exportable(section(t.pairs, h("p", { class: "help" }, t.pairsHelp), rows), t.pairs, { table: rows });
}

/** A typed sentence. Models of sentences: neighbors of its words alone and in context, and the next words. Models of words: what
 * is near the mean of their vectors. */
export async function contextPanel({ item, route, keep }) {
  const t = texts.words;
  if (!isLive) return h("p", {}, texts.needsProgram);
  const input = h("input", { type: "text", id: "context-text", autocomplete: "off", maxlength: 5000, value: route.get("text") ?? t.example });
  const result = h("div", { "aria-live": "polite" });
  let asked = 0;
  const show = async () => {
    const own = ++asked;
    keep({ text: input.value });
    try {
      const answer = await ask(item, "embed", { text: input.value });
      if (own !== asked) return;
      result.replaceChildren(...(answer.next ? inContext(answer) : inMean(answer)));
    } catch (error) {
      if (own === asked) result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  input.addEventListener("input", debounced(show));
  await show();
  return h("div", {}, section(t.type, field(t.type, input)), result);
}

function inContext(answer) {
  const t = texts.words;
  const list = (words) => (words ?? []).map((one) => `${one.word} ${one.similarity.toFixed(2)}`).join(", ");
  const rows = table(t.inContext, [
    { name: t.word, of: (token) => token.word, head: true },
    { name: t.alone, of: (token) => list(token.alone) },
    { name: t.inContext, of: (token) => list(token.in_context) },
  ], answer.tokens);
  const svg = bars(t.next, answer.next.map((word) => ({ label: word.word, value: word.prob, text: percent(word.prob) })));
  return [exportable(section(t.inContext, rows), t.inContext, { table: rows }), exportable(section(t.next, svg), t.next, { svg })];
}

function inMean(answer) {
  const t = texts.words;
  const rows = table(t.ofSentence, [
    { name: t.word, of: (token) => token.word, head: true },
    { name: t.toMean, of: (token) => token.similarity, number: true, view: (token) => (token.similarity === null ? t.noVector : figure(token.similarity)) },
  ], answer.tokens);
  const svg = bars(t.nearMean, answer.sentence.map((one) => ({ label: one.word, value: Math.max(one.similarity, 0), text: figure(one.similarity) })));
  return [h("div", { class: "two" },
    exportable(section(t.ofSentence, h("p", { class: "help" }, t.meanHelp), rows), t.ofSentence, { table: rows }),
    exportable(section(t.nearMean, svg), t.nearMean, { svg, table: neighborList(t.nearMean, answer.sentence) }))];
}
