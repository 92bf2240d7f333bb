// Topics: the map, words by relevance, search, comparison, prevalence.

import { texts } from "./texts.js";
import { debounced, field, figure, h, percent, section, table } from "./dom.js";
import { ask, isLive } from "./data.js";
import { exportable } from "./export.js";
import { bars, circleMap, colorOf, legend, lines } from "./charts.js";
import { documentsOfTopic } from "./documents.js";

/** The map with the list of topics on one side, and one topic on the other. */
export async function topicsPanel(context) {
  const { item, route, go } = context;
  const t = texts.topics;
  const { topics } = await ask(item, "topics");
  const biggest = topics.reduce((a, b) => (b.prevalence > a.prevalence ? b : a));
  const selected = Number(route.get("topic") ?? biggest.topic);
  const select = (topic) => go({ topic });
  const mapSection = section(t.map, h("p", { class: "help" }, t.mapHelp));
  const mapPlace = h("div");
  mapSection.append(mapPlace);
  const draw = (marked) => {
    const points = topics.map((one) => ({ id: one.topic, x: one.x, y: one.y, size: one.prevalence, label: `${t.topic(one.topic)}, ${percent(one.prevalence)}: ${one.words.join(" ")}` }));
    const svg = circleMap(t.map, points, { selected, marked, onselect: select });
    mapPlace.replaceChildren(svg);
    exportable(mapSection, t.map, { svg });
  };
  draw(new Set());
  const listed = [...topics].sort((a, b) => b.prevalence - a.prevalence);
  const list = table(t.list, [
    { name: t.number, of: (one) => one.topic, number: true, head: true, view: (one) => h("a", { href: context.link({ topic: one.topic }) }, one.topic) },
    { name: t.share, of: (one) => one.prevalence, number: true, view: (one) => percent(one.prevalence) },
    { name: t.words, of: (one) => one.words.join(" ") },
  ], listed, { selected: (one) => one.topic === selected });
  const listSection = exportable(section(t.list, list), t.list, { table: list });
  const left = h("div", {}, mapSection, isLive && searchSection(context, draw), listSection);
  const right = h("div", {}, h("div", { "aria-live": "polite" }));
  right.append(await topicSection(context, selected), ...(await documentsOfTopic(context, selected)));
  return h("div", { class: "two" }, left, right);
}

async function topicSection({ item, route, keep }, topic) {
  const t = texts.topics;
  let lambda = Number(route.get("lambda") ?? 0.6);
  const element = section(t.topic(topic));
  const share = h("p");
  const picture = h("div");
  const details = h("details", {}, h("summary", {}, t.wordTable(topic)));
  const output = h("output", {}, lambda.toFixed(2));
  const slider = h("input", { type: "range", min: 0, max: 1, step: isLive ? 0.01 : 0.1, id: "lambda", value: lambda });
  const show = async () => {
    const answer = await ask(item, "topic", { topic, lambda });
    share.replaceChildren(t.ofTokens(percent(answer.prevalence)));
    const rows = answer.words.map((word) => ({ label: word.word, value: word.count, total: word.total, text: `${figure(word.count)} / ${figure(word.total)}` }));
    const svg = bars(t.wordTable(topic), rows, { names: [t.inTopic, t.elsewhere], color: colorOf(topic) });
    const words = table(t.wordTable(topic), [
      { name: t.word, of: (word) => word.word, head: true },
      { name: t.inTopic, of: (word) => word.count, number: true },
      { name: t.total, of: (word) => word.total, number: true },
      { name: t.weight, of: (word) => word.weight, number: true },
      { name: t.relevance, of: (word) => word.relevance, number: true },
    ], answer.words);
    picture.replaceChildren(svg);
    details.replaceChildren(details.firstChild, words);
    exportable(element, t.topic(topic), { svg, table: words });
  };
  const changed = debounced(() => { keep({ lambda }); show(); }, 60);
  slider.addEventListener("input", () => {
    lambda = Number(slider.value);
    output.value = lambda.toFixed(2);
    changed();
  });
  element.append(share, field(t.relevance, slider, t.relevanceHelp), output, picture, details);
  slider.after(output);
  await show();
  return element;
}

function searchSection({ item, link, route, keep }, mark) {
  const t = texts.topics;
  const input = h("input", { type: "search", autocomplete: "off", id: "topic-search", value: route.get("word") ?? "" });
  const result = h("div", { "aria-live": "polite" });
  const search = async () => {
    keep({ word: input.value || undefined });
    if (!input.value.trim()) {
      result.replaceChildren();
      return mark(new Set());
    }
    const { n_found: n, words } = await ask(item, "search", { word: input.value });
    mark(new Set(words.slice(0, 1).flatMap((word) => word.topics.map((one) => one.topic))));
    const list = table(t.found(n), [
      { name: t.word, of: (word) => word.word, head: true },
      { name: t.total, of: (word) => word.total, number: true },
      { name: texts.panel.topics, of: (word) => word.topics.map((one) => one.topic).join(" "),
        view: (word) => word.topics.map((one) => [h("a", { href: link({ topic: one.topic }), class: "chip", style: { borderColor: colorOf(one.topic) } }, `${one.topic} · ${percent(one.share)}`), " "]) },
    ], words);
    result.replaceChildren(h("p", {}, t.found(n)), n ? list : "");
  };
  input.addEventListener("input", debounced(search, 150));
  if (input.value) search();
  return section(t.search, field(t.search, input, t.searchHelp), result);
}

/** Which topic of another model is which. */
export async function comparePanel({ item, items, route, go, link }) {
  const t = texts.topics;
  const others = items.map((other, index) => ({ ...other, index })).filter((other) => other.index !== item && other.panels.includes("topics"));
  if (!others.length) return section(texts.panel.compare, h("p", {}, t.compareNone));
  const other = Number(route.get("other") ?? others[0].index);
  const answer = await ask(item, "compare", { other });
  const choice = h("select", { onchange: (event) => go({ other: event.target.value }) },
    others.map((one) => h("option", { value: one.index, selected: one.index === other }, one.name)));
  const side = (which) => (pair) => [h("a", { href: which === "first" ? link({ panel: "topics", topic: pair.first.topic }) : link({ model: other, panel: "topics", topic: pair.second.topic }) }, pair[which].topic), ` ${pair[which].words.join(" ")}`];
  const pairs = table(texts.panel.compare, [
    { name: t.similarity, of: (pair) => pair.similarity, number: true, view: (pair) => pair.similarity.toFixed(2) },
    { name: t.first, of: (pair) => `${pair.first.topic} ${pair.first.words.join(" ")}`, view: side("first") },
    { name: t.second, of: (pair) => `${pair.second.topic} ${pair.second.words.join(" ")}`, view: side("second") },
  ], answer.pairs);
  const alone = [...answer.only_first.map((one) => [t.first, one]), ...answer.only_second.map((one) => [t.second, one])];
  const element = section(texts.panel.compare, field(t.compareWith, choice, t.compareHelp), h("p", {}, t.stability(answer.stability.toFixed(3))), pairs,
    alone.length > 0 && [h("h3", {}, t.alone), h("ul", {}, alone.map(([where, one]) => h("li", {}, `${where}: ${one.topic} ${one.words.join(" ")}`)))]);
  return exportable(element, texts.panel.compare, { table: pairs });
}

/** The prevalence of topics per value of a column. */
export async function trendPanel({ item, route, keep }) {
  const t = texts.topics;
  const [{ column, groups }, { topics }] = await Promise.all([ask(item, "trend"), ask(item, "topics")]);
  const order = [...topics].sort((a, b) => b.prevalence - a.prevalence).map((one) => one.topic);
  const chosen = new Set((route.get("topics") ?? order.slice(0, 3).join(".")).split(".").filter(Boolean).map(Number));
  const isOrdered = groups.every((group) => /^-?[0-9]/.test(group.value));
  const element = section(t.trend(column), h("p", { class: "help" }, t.trendHelp));
  const place = h("div");
  const name = (topic) => `${topic}: ${topics[topic].words.slice(0, 4).join(" ")}`;
  const draw = () => {
    const series = [...chosen].map((topic) => ({
      name: name(topic), color: colorOf(topic),
      points: groups.map((group, i) => [i, group.topics[topic].mean]),
      band: groups.map((group, i) => [i, group.topics[topic].low, group.topics[topic].high]),
    }));
    const rows = groups.flatMap((group) => [...chosen].map((topic) => ({ value: group.value, topic, n: group.n_documents, ...group.topics[topic] })));
    const numbers = table(t.trend(column), [
      { name: column, of: (row) => row.value, head: true },
      { name: t.number, of: (row) => row.topic, number: true },
      { name: t.share, of: (row) => row.mean, number: true },
      { name: "low", of: (row) => row.low, number: true },
      { name: "high", of: (row) => row.high, number: true },
      { name: texts.panel.documents, of: (row) => row.n, number: true },
    ], rows);
    const svg = series.length && lines(t.trend(column), series, { labels: groups.map((group) => group.value), xName: column, joined: isOrdered });
    place.replaceChildren(...(svg ? [svg, legend(series)] : []), h("details", {}, h("summary", {}, t.trend(column)), numbers));
    exportable(element, t.trend(column), { svg, table: numbers });
  };
  const boxes = order.map((topic) => h("label", { class: "check" },
    h("input", { type: "checkbox", checked: chosen.has(topic), onchange: (event) => {
      if (event.target.checked) chosen.add(topic); else chosen.delete(topic);
      keep({ topics: [...chosen].join(".") });
      draw();
    } }), name(topic)));
  draw();
  element.append(place, h("fieldset", {}, h("legend", {}, t.shown), h("div", { class: "checks" }, boxes)));
  return element;
}
