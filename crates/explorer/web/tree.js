// The tree of Brown clusters, which unfolds node by node.

import { texts } from "./texts.js";
import { field, figure, h, section, table } from "./dom.js";
import { ask, hasAnswer, isLive } from "./data.js";
import { exportable } from "./export.js";

/** The tree from its root, unfolded along the path of the URL. */
export async function treePanel(context) {
  const { item, route, go, keep } = context;
  const t = texts.tree;
  const path = route.get("path") ?? "";
  const root = await ask(item, "node", { path: "" });
  const list = h("ul", { class: "tree", "aria-label": t.title }, await nodeElement(item, root, path, t.root));
  const message = h("div", { "aria-live": "polite" });
  const input = h("input", { type: "text", id: "tree-word", maxlength: 200, value: route.get("word") ?? "" });
  const find = async (event) => {
    event.preventDefault();
    try {
      const found = await ask(item, "cluster_of_word", { word: input.value });
      go({ path: found.path, word: input.value });
    } catch (error) {
      keep({ word: input.value });
      message.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  const form = isLive && h("form", { class: "row", onsubmit: find }, field(t.find, input), h("button", { type: "submit" }, texts.words.show));
  const tree = section(t.title, h("p", { class: "help" }, t.help), form, message, list);
  if (!path || !hasAnswer(item, "node", { path })) return tree;
  const node = await ask(item, "node", { path });
  const words = table(t.cluster(path), [
    { name: t.word, of: (one) => one.word, head: true }, { name: t.count, of: (one) => one.count, number: true },
  ], node.words);
  const detail = exportable(section(t.cluster(path), h("p", {}, t.node(figure(node.n_words), figure(node.n_tokens))), words), t.cluster(path), { table: words });
  return h("div", { class: "two" }, h("div", {}, tree), h("div", {}, detail));
}

/** A node that loads its children when it is unfolded. */
async function nodeElement(item, node, open, name) {
  const t = texts.tree;
  const label = [h("code", {}, name ?? node.path), h("span", { class: "words" }, ` ${node.words.slice(0, 8).map((one) => one.word).join(" ")}`), h("span", { class: "dim" }, ` ${t.node(figure(node.n_words), figure(node.n_tokens))}`)];
  const isOpen = open.startsWith(node.path);
  if (node.leaf || !hasAnswer(item, "node", { path: node.path })) {
    return h("li", { class: open === node.path ? "current leaf" : "leaf" }, label);
  }
  const inner = h("ul");
  const details = h("details", { open: isOpen }, h("summary", {}, label), inner);
  let loaded = false;
  const load = async () => {
    if (loaded) return;
    loaded = true;
    const { children } = await ask(item, "node", { path: node.path });
    inner.append(...(await Promise.all(children.map((child) => nodeElement(item, child, open)))));
  };
  if (isOpen) await load();
  details.addEventListener("toggle", load);
  return h("li", {}, details);
}
