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
  const map = await ask(item, "map");
  const word = route.get("word") ?? map.words[0]?.word ?? "";
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
  const svg = wordMap(t.map, map.words, { selected: word, near: new Set(near.map((one) => one.word)), onselect: (other) => hasAnswer(item, "neighbors", { word: other }) && go({ word: other }) });
  const places = table(t.map, [
    { name: t.word, of: (one) => one.word, head: true }, { name: texts.tree.count, of: (one) => one.count, number: true },
    { name: "x", of: (one) => one.x, number: true }, { name: "y", of: (one) => one.y, number: true },
  ], map.words);
  const mapSection = exportable(section(t.map, h("p", { class: "help" }, t.mapHelp), svg), t.map, { svg, table: places });
  const input = h("input", { type: "text", id: "word", maxlength: 200, value: word });
  const form = isLive && h("form", { class: "row", onsubmit: (event) => { event.preventDefault(); go({ word: input.value }); } }, field(t.find, input), h("button", { type: "submit" }, t.show));
  return h("div", { class: "two" }, h("div", {}, mapSection), h("div", {}, form, found, isLive && analogySection(context)));
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

/** A typed sentence: neighbors of its words alone and in context, and the next words. */
export async function contextPanel({ item, route, keep }) {
  const t = texts.words;
  if (!isLive) return h("p", {}, texts.needsProgram);
  const input = h("input", { type: "text", id: "context-text", autocomplete: "off", maxlength: 5000, value: route.get("text") ?? t.example });
  const result = h("div", { "aria-live": "polite" });
  let asked = 0;
  const list = (words) => (words ?? []).map((one) => `${one.word} ${one.similarity.toFixed(2)}`).join(", ");
  const show = async () => {
    const own = ++asked;
    keep({ text: input.value });
    try {
      const answer = await ask(item, "embed", { text: input.value });
      if (own !== asked) return;
      const rows = table(t.inContext, [
        { name: t.word, of: (token) => token.word, head: true },
        { name: t.alone, of: (token) => list(token.alone) },
        { name: t.inContext, of: (token) => list(token.in_context) },
      ], answer.tokens);
      const svg = bars(t.next, answer.next.map((word) => ({ label: word.word, value: word.prob, text: percent(word.prob) })));
      result.replaceChildren(
        exportable(section(t.inContext, rows), t.inContext, { table: rows }),
        exportable(section(t.next, svg), t.next, { svg }));
    } catch (error) {
      if (own === asked) result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  input.addEventListener("input", debounced(show));
  await show();
  return h("div", {}, section(t.type, field(t.type, input)), result);
}
