// Curves of training runs, which grow while the runs go on.

import { texts } from "./texts.js";
import { h, section, table } from "./dom.js";
import { ask, isLive } from "./data.js";
import { exportable } from "./export.js";
import { colorOf, legend, lines } from "./charts.js";

const EVERY = 2000;

/** One picture per metric; the logs that are chosen share them. */
export async function logPanel({ item, items, route, keep, whileShown }) {
  const t = texts.log;
  const logs = items.map((one, index) => ({ ...one, index })).filter((one) => one.kind === "log");
  const chosen = new Set([item, ...(route.get("with") ?? "").split(".").filter(Boolean).map(Number)]);
  const place = h("div");
  let before = "";
  const show = async () => {
    const runs = logs.filter((one) => chosen.has(one.index));
    const answers = await Promise.all(runs.map((one) => ask(one.index, "log")));
    const now = JSON.stringify(answers);
    if (now !== before) place.replaceChildren(...pictures(runs, answers));
    before = now;
  };
  const choose = (index, isChosen) => {
    if (isChosen) chosen.add(index); else chosen.delete(index);
    keep({ with: [...chosen].filter((one) => one !== item).join(".") || undefined });
    show();
  };
  const boxes = logs.filter((one) => one.index !== item).map((one) => h("label", { class: "check" },
    h("input", { type: "checkbox", checked: chosen.has(one.index), onchange: (event) => choose(one.index, event.target.checked) }), one.name));
  await show();
  if (isLive) whileShown(show, EVERY);
  return h("div", {}, boxes.length > 0 && h("fieldset", {}, h("legend", {}, t.together), h("div", { class: "checks" }, boxes)), isLive && h("p", { class: "help" }, t.live), place);
}

function pictures(runs, answers) {
  const t = texts.log;
  const metrics = [...new Set(answers.flatMap((answer) => answer.curves.map((curve) => curve.name)))];
  if (!metrics.length) return [h("p", {}, t.waiting)];
  return metrics.map((metric) => {
    const found = runs.map((run, i) => ({ run, curve: answers[i].curves.find((curve) => curve.name === metric) })).filter((one) => one.curve);
    const series = found.map(({ run, curve }) => ({ name: run.name, color: colorOf(run.index), points: curve.points }));
    const svg = lines(t.title(metric), series, { xName: t.iteration });
    const rows = table(t.title(metric), [
      { name: t.run, of: (one) => one.run.name, head: true },
      { name: t.last, of: (one) => one.curve.last, number: true },
      { name: t.points, of: (one) => one.curve.n_points, number: true },
    ], found);
    const points = h("div", {}, Object.assign(h("table"), { csv: [["run", "iteration", metric], ...series.flatMap((one) => one.points.map((point) => [one.name, ...point]))] }));
    return exportable(section(t.title(metric), svg, legend(series), rows), metric, { svg, table: points });
  });
}
