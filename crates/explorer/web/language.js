// Language models and taggers: text with its surprisal, next words, samples, tags.

import { texts } from "./texts.js";
import { debounced, field, figure, h, percent, section, table } from "./dom.js";
import { ask, isLive } from "./data.js";
import { exportable } from "./export.js";
import { bars, colorOf } from "./charts.js";

/** Bits from which a word has the strongest color. */
const MAX_BITS = 16;
/** Number of generated sentences. */
const N_SENTENCES = 5;
/** Milliseconds between the words of a sample. */
const PACE = 40;

/** Words on a color that tells their surprisal. */
export function surprisalWords(tokens) {
  const t = texts.states;
  return h("p", { class: "tokens" }, tokens.map((token) => {
    const strength = token.bits === null ? 1 : Math.min(token.bits / MAX_BITS, 1);
    const title = `${figure(token.bits)} ${t.bits}${token.known ? "" : `, ${t.unknown}`}`;
    return [h("span", { class: `token bits${token.known ? "" : " unknown"}`, title, "data-bits": token.bits ?? "" }, tint(strength), token.word, h("sub", {}, figure(token.bits === null ? null : Number(token.bits.toFixed(1))))), " "];
  }));
}

/** A layer of color behind a word; it does not change the contrast of the text much. */
function tint(strength) {
  return h("span", { class: "tint", "aria-hidden": "true", style: { opacity: (0.55 * strength).toFixed(3) } });
}

/** A typed text: surprisal and next words. */
export async function textPanel({ item, route, keep }) {
  const t = texts.text;
  if (!isLive) return h("p", {}, texts.needsProgram);
  const input = h("textarea", { rows: 4, id: "text", maxlength: 50000, value: route.get("text") ?? t.example });
  const result = h("div", { "aria-live": "polite" });
  let asked = 0;
  const show = async () => {
    const own = ++asked;
    if (input.value.length < 2000) keep({ text: input.value });
    try {
      const answer = await ask(item, "text", { text: input.value });
      if (own !== asked) return;
      const svg = bars(texts.states.nextWords, answer.next.map((word) => ({ label: word.word, value: word.prob, text: percent(word.prob) })));
      const bits = table(t.colored, [
        { name: texts.states.word, of: (token) => token.word, head: true },
        { name: `${texts.states.surprisal} (${texts.states.bits})`, of: (token) => token.bits, number: true },
      ], answer.tokens);
      const next = table(texts.states.nextWords, [
        { name: texts.states.word, of: (word) => word.word, head: true }, { name: texts.states.prob, of: (word) => word.prob, number: true },
      ], answer.next);
      const perplexity = h("p", { id: "perplexity" }, texts.states.perplexity(figure(answer.perplexity)));
      result.replaceChildren(h("div", { class: "two" },
        exportable(section(t.colored, h("p", { class: "help" }, texts.states.surprisalHelp), surprisalWords(answer.tokens), perplexity), t.colored, { table: bits }),
        exportable(section(texts.states.nextWords, svg), texts.states.nextWords, { svg, table: next })));
    } catch (error) {
      if (own === asked) result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  input.addEventListener("input", debounced(show, 120));
  await show();
  return h("div", {}, section(t.type, field(t.type, input)), result);
}

/** Adds words one after the other, as they are drawn; at once in a report, and for users who ask for less motion. */
export async function reveal(place, words, isShown) {
  const isStill = !isLive || matchMedia("(prefers-reduced-motion: reduce)").matches;
  for (const word of words) {
    if (!isShown()) return;
    place.append(...[word].flat());
    if (!isStill) await new Promise((done) => { setTimeout(done, PACE); });
  }
}

/** Generated sentences of a language model. */
export async function textSamplesPanel({ item, route, go, isShown }) {
  const t = texts.states;
  const [seed, temperature, prompt] = [Number(route.get("seed") ?? 1), Number(route.get("temperature") ?? 1), route.get("prompt") ?? ""];
  // With a server, each sentence is shown before the next one is drawn.
  const drawPart = (first) => ask(item, "sample", { prompt, seed, temperature, ...(isLive && { first, n: 1 }) });
  const answer = await drawPart(0);
  const begin = h("input", { type: "text", id: "prompt", maxlength: 2000, value: prompt });
  const heat = h("input", { type: "number", id: "temperature", min: 0, max: 10, step: 0.1, value: temperature });
  const draw = (event) => {
    event.preventDefault();
    go({ prompt: begin.value || undefined, temperature: heat.value, seed: seed + 1 });
  };
  const form = isLive && h("form", { onsubmit: draw, class: "row" }, field(t.prompt, begin), field(t.temperature, heat), h("button", { type: "submit" }, t.again));
  const list = h("ol", { class: "samples" });
  const follow = async () => {
    const sentences = [...answer.sentences];
    for (let i = 0; i < N_SENTENCES && isShown(); i += 1) {
      const words = sentences[i] ?? (await drawPart(i)).sentences[0];
      const line = h("li", {}, answer.prompt.length > 0 && h("b", {}, `${answer.prompt.join(" ")} `));
      list.append(line);
      await reveal(line, words.map((word) => `${word} `), isShown);
    }
  };
  follow().catch((error) => list.after(h("p", { class: "error", role: "alert" }, error.message)));
  return section(t.samples, form, list);
}

/** A typed sentence with its tags, and the weights behind them. */
export async function tagsPanel({ item, route, keep }) {
  const t = texts.tags;
  if (!isLive) return h("p", {}, texts.needsProgram);
  const input = h("input", { type: "text", id: "tag-text", autocomplete: "off", maxlength: 5000, value: route.get("text") ?? t.example });
  const [result, weights] = [h("div", { "aria-live": "polite" }), h("div", { "aria-live": "polite" })];
  let asked = 0;
  const explain = async (at) => weights.replaceChildren(await weightSection(item, input.value, at));
  const show = async () => {
    const own = ++asked;
    keep({ text: input.value });
    try {
      const answer = await ask(item, "tags", { text: input.value });
      if (own !== asked) return;
      weights.replaceChildren();
      result.replaceChildren(...taggedSections(answer, answer.has_weights ? explain : undefined));
    } catch (error) {
      if (own === asked) result.replaceChildren(h("p", { class: "error", role: "alert" }, error.message));
    }
  };
  input.addEventListener("input", debounced(show));
  await show();
  return h("div", {}, section(t.type, field(t.type, input)), result, weights);
}

function taggedSections(answer, explain) {
  const t = texts.tags;
  const kinds = answer.spans.length ? [...new Set(answer.spans.map((span) => span.kind))] : answer.tags;
  const spanAt = (at) => answer.spans.find((span) => at >= span.first && at < span.end);
  const tagged = h("p", { class: "tokens tagged" }, answer.tokens.map((token, at) => {
    const kind = spanAt(at)?.kind ?? token.tag;
    const color = kinds.includes(kind) ? colorOf(kinds.indexOf(kind)) : "transparent";
    const content = [token.word, h("sub", {}, token.tag)];
    const attributes = { class: "token topic", style: { borderColor: color } };
    return [explain ? h("button", { type: "button", ...attributes, onclick: () => explain(at) }, content) : h("span", attributes, content), " "];
  }));
  const rows = table(t.tagged, [
    { name: texts.states.word, of: (token) => token.word, head: true },
    { name: t.tag, of: (token) => token.tag },
    { name: t.seen, of: (token) => token.seen, number: true },
    { name: t.probabilities, of: (token) => (token.probs ?? []).map((one) => `${one.tag} ${figure(one.prob)}`).join(" "),
      view: (token) => (token.probs ?? []).filter((one) => one.prob >= 0.0005).map((one) => [h("span", { class: "chip" }, `${one.tag} ${percent(one.prob)}`), " "]) },
  ], answer.tokens);
  return [exportable(section(t.tagged, tagged, rows), t.tagged, { table: rows }), explain && h("p", { class: "help" }, t.weightsHelp)].filter(Boolean);
}

async function weightSection(item, text, at) {
  const t = texts.tags;
  const answer = await ask(item, "weights", { text, at });
  if (!answer.n_parts) return h("p", {}, t.noWeights);
  const rows = table(t.weights(answer.word), [
    { name: t.feature, of: (part) => part.name, head: true },
    ...answer.tags.map((tag, i) => ({ name: tag, of: (part) => part.scores[i], number: true })),
  ], answer.parts);
  return exportable(section(t.weights(answer.word), rows), t.weights(answer.word), { table: rows });
}
