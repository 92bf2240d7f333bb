// Documents: those of a topic, one with its words colored, and one that a user types.

import { texts } from "./texts.js";
import { field, figure, h, percent, section, table } from "./dom.js";
import { ask, hasAnswer, isLive } from "./data.js";
import { exportable } from "./export.js";
import { bars, colorOf } from "./charts.js";

/** The documents with the largest shares of a topic, if there are documents. */
export async function documentsOfTopic({ item, items, link }, topic) {
  const t = texts.topics;
  if (!items[item].has_documents || !hasAnswer(item, "documents", { topic })) return [];
  const { documents } = await ask(item, "documents", { topic });
  const rows = table(t.documents, [
    { name: t.share, of: (one) => one.share, number: true, view: (one) => percent(one.share) },
    { name: t.document, of: (one) => one.id, head: true, view: (one) => (isLive ? h("a", { href: link({ panel: "documents", document: one.document }) }, one.id) : one.id) },
    { name: t.label, of: (one) => one.label },
    { name: t.beginning, of: (one) => one.words.join(" ") },
  ], documents);
  return [exportable(section(t.documents, rows), t.documents, { table: rows })];
}

/** The words of a document on the color of their topics. */
function coloredWords(answer, highlighted) {
  const words = answer.words.map((one) => {
    if (one.topic === null) return [h("span", { class: "token unknown" }, one.word), " "];
    const faded = highlighted !== undefined && highlighted !== one.topic ? " faded" : "";
    return [h("span", { class: `token topic${faded}`, title: texts.topics.topic(one.topic), style: { "borderColor": colorOf(one.topic) }, "data-topic": one.topic }, one.word, h("sub", {}, one.topic)), " "];
  });
  return h("p", { class: "tokens" }, words);
}

function mixtureBars(answer) {
  const rows = answer.mixture.filter((one) => one.share > 0.001).map((one) => ({ label: texts.topics.topic(one.topic), value: one.share, text: percent(one.share) }));
  return bars(texts.topics.mixture, rows);
}

function showDocument(element, name, answer) {
  const t = texts.topics;
  const svg = mixtureBars(answer);
  const skipped = answer.n_skipped > 0 ? [h("p", { class: "help" }, t.skipped(figure(answer.n_skipped)))] : [];
  element.append(h("h3", {}, t.colored), coloredWords(answer), ...skipped, h("h3", {}, t.mixture), svg);
  return exportable(element, name, { svg });
}

/** A typed document, or one of the documents of the model. */
export async function documentsPanel({ item, items, route, keep }) {
  const t = texts.topics;
  const parts = [];
  if (route.has("document") && hasAnswer(item, "document", { document: Number(route.get("document")) })) {
    const answer = await ask(item, "document", { document: Number(route.get("document")) });
    const name = `${t.document} ${answer.id}`;
    parts.push(showDocument(section(name, answer.label && h("p", {}, `${t.label}: ${answer.label}`)), name, answer));
  }
  if (!isLive) return parts.length ? h("div", {}, parts) : h("p", {}, texts.needsProgram);
  const input = h("textarea", { rows: 7, id: "document-text", maxlength: 50000, value: route.get("text") ?? "" });
  const result = h("div", { "aria-live": "polite" });
  const show = async () => {
    if (input.value.length < 2000) keep({ text: input.value || undefined });
    if (!input.value.trim()) return result.replaceChildren();
    try {
      result.replaceChildren(showDocument(section(t.result), t.result, await ask(item, "color", { text: input.value })));
    } catch (error) {
      result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  const form = h("form", { onsubmit: (event) => { event.preventDefault(); show(); } },
    field(t.type, input), h("button", { type: "submit" }, t.color));
  if (input.value) await show();
  parts.push(section(t.type, form, result));
  if (!items[item].has_documents) parts.push(h("p", { class: "help" }, t.noDocuments));
  return h("div", {}, parts);
}
