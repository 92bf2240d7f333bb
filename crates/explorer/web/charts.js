// Pictures, as SVG: maps, bars, heat maps, flows and curves. Scales and paths are those of D3.

import { d3 } from "./d3.js";
import { figure, h, percent, s } from "./dom.js";

/** Number of colors; topics beyond it share them, and always show their number. */
const N_COLORS = 10;

export function colorOf(index) {
  return `var(--c${index % N_COLORS})`;
}

function picture(width, height, label, ...children) {
  const attributes = { viewBox: `0 0 ${width} ${height}`, class: "picture", role: "img", "aria-label": label, style: { maxWidth: `${width * 1.1}px` } };
  return s("svg", attributes, ...children);
}

/** Maps the range of values to pixels. */
function scale(values, low, high) {
  return d3.scaleLinear(d3.extent(values), [low, high]);
}

function shorten(text, n) {
  return text.length > n ? `${text.slice(0, n - 1)}…` : text;
}

/** Lets arrow keys move through the buttons of a picture, of which one is in the tab order. */
function roving(buttons, selected) {
  buttons.forEach((button, i) => {
    button.setAttribute("tabindex", i === Math.max(selected, 0) ? "0" : "-1");
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        const other = buttons[(i + step + buttons.length) % buttons.length];
        buttons.forEach((any) => any.setAttribute("tabindex", any === other ? "0" : "-1"));
        other.focus();
      }
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        button.dispatchEvent(new MouseEvent("click"));
      }
    });
  });
}

/** Circles with numbers: `points` are `{id, x, y, size, label}` with sizes that sum to one. */
export function circleMap(label, points, { selected, marked = new Set(), onselect }) {
  const [width, height, margin] = [560, 430, 58];
  const [x, y] = [scale(points.map((p) => p.x), margin, width - margin), scale(points.map((p) => p.y), height - margin, margin)];
  // All circles together cover about a fifth of the map, however many there are.
  const total = points.reduce((sum, p) => sum + p.size, 0) || 1;
  const area = d3.scaleSqrt([0, total], [0, Math.sqrt((0.2 * width * height) / Math.PI)]);
  const radius = (size) => Math.min(Math.max(6, area(size)), 54);
  const ordered = [...points].sort((a, b) => b.size - a.size);
  const buttons = ordered.map((p) => {
    const [r, cx, cy] = [radius(p.size), x(p.x), y(p.y)];
    const state = [p.id === selected && "selected", marked.size > 0 && !marked.has(p.id) && "faded"].filter(Boolean).join(" ");
    return s("g", { class: `node ${state}`, role: "button", "aria-label": p.label, "aria-pressed": String(p.id === selected), onclick: () => onselect(p.id) },
      s("title", {}, p.label),
      s("circle", { cx, cy, r, class: "area", style: { fill: colorOf(p.id) } }),
      s("text", { x: cx, y: cy, class: "number", "font-size": r > 12 ? 14 : 11 }, p.id));
  });
  roving(buttons, ordered.findIndex((p) => p.id === selected));
  const svg = picture(width, height, label,
    s("line", { x1: width / 2, x2: width / 2, y1: 8, y2: height - 8, class: "axis" }),
    s("line", { y1: height / 2, y2: height / 2, x1: 8, x2: width - 8, class: "axis" }),
    buttons);
  svg.setAttribute("role", "group");
  return svg;
}

/** Horizontal bars: `rows` are `{label, value, total, text}`; `total` is drawn lightly behind `value`. */
export function bars(label, rows, { names, color = "var(--accent)", marked } = {}) {
  const [width, left, line] = [520, 140, 21];
  const top = names ? 26 : 4;
  const height = top + rows.length * line + 4;
  const largest = d3.max(rows, (row) => row.total ?? row.value) || 1;
  const x = d3.scaleLinear([0, largest], [0, width - left - 74]);
  const legend = names && names.map((name, i) => s("g", {},
    s("rect", { x: left + i * 150, y: 6, width: 12, height: 12, class: i ? "light" : "", style: i ? {} : { fill: color } }),
    s("text", { x: left + 18 + i * 150, y: 16, "font-size": 12 }, name)));
  const row = (r, i) => {
    const y = top + i * line;
    return s("g", { class: "bar" },
      s("title", {}, `${r.label}: ${r.text}`),
      s("text", { x: left - 8, y: y + 14, "text-anchor": "end", "font-size": 13, "font-weight": marked === r.label ? 700 : 400 }, shorten(r.label, 19)),
      r.total !== undefined && s("rect", { x: left, y: y + 3, width: Math.max(x(r.total), 1), height: line - 6, class: "light" }),
      s("rect", { x: left, y: y + 3, width: Math.max(x(r.value), 1), height: line - 6, style: { fill: color } }),
      s("text", { x: left + x(r.total ?? r.value) + 6, y: y + 14, "font-size": 11, class: "dim" }, r.text));
  };
  return picture(width, height, label, legend, rows.map(row));
}

/** Probabilities of rows (states) at columns (words). */
export function heatMap(label, columns, rows) {
  const [left, top, cell, line] = [190, 70, Math.max(26, Math.min(64, 700 / columns.length)), 20];
  const [width, height] = [left + columns.length * cell + 50, top + rows.length * line + 6];
  const head = columns.map((column, i) => s("text",
    { x: left + i * cell + cell / 2, y: top - 8, transform: `rotate(-35 ${left + i * cell + cell / 2} ${top - 8})`, "font-size": 12, class: column.known ? "" : "dim" },
    shorten(column.word, 14)));
  const body = rows.map((row, j) => s("g", {},
    s("text", { x: left - 8, y: top + j * line + 14, "text-anchor": "end", "font-size": 12 }, shorten(row.label, 25)),
    columns.map((column, i) => s("rect",
      { x: left + i * cell + 1, y: top + j * line + 1, width: cell - 2, height: line - 2, class: row.path.has(i) ? "cell path" : "cell", style: { fillOpacity: row.values[i] } },
      s("title", {}, `${column.word}, ${row.label}: ${figure(row.values[i])}`)))));
  const svg = picture(width, height, label, s("rect", { x: left, y: top, width: columns.length * cell, height: rows.length * line, class: "field-back" }), head, body);
  svg.style.minWidth = `${width}px`;
  return svg;
}

/** A state in the middle, those before it on the left, those after it on the right; wide lines are probable. */
export function flow(label, center, before, after, onselect) {
  const line = 44;
  const n = Math.max(before?.length ?? 0, after.length, 1);
  const [width, height, box] = [640, n * line + 20, 190];
  const middle = height / 2;
  const edgePath = d3.link(d3.curveBumpX);
  const side = (nodes, x, edge) => nodes.map((node, i) => {
    const y = 10 + (i + (n - nodes.length) / 2) * line + line / 2;
    const [from, to] = edge < 0 ? [x + box, width / 2 - 45] : [width / 2 + 45, x];
    const [y1, y2] = edge < 0 ? [y, middle] : [middle, y];
    const title = `${node.state}: ${node.words.join(" ")}, ${percent(node.prob)}`;
    return [
      s("path", { d: edgePath({ source: [from, y1], target: [to, y2] }), class: "edge", "stroke-width": Math.max(1, 26 * node.prob) }),
      s("g", { class: "node", role: "button", "aria-label": title, onclick: () => onselect(node.state) },
        s("title", {}, title),
        s("rect", { x, y: y - 17, width: box, height: 34, rx: 6, class: "box" }),
        s("text", { x: x + 8, y: y - 3, "font-size": 12, "font-weight": 600 }, `${node.state} · ${percent(node.prob)}`),
        s("text", { x: x + 8, y: y + 11, "font-size": 11 }, shorten(node.words.slice(0, 4).join(" "), 32))),
    ];
  });
  const svg = picture(width, height, label,
    side(before ?? [], 4, -1), side(after, width - box - 4, 1),
    s("rect", { x: width / 2 - 45, y: middle - 22, width: 90, height: 44, rx: 8, class: "box center" }),
    s("text", { x: width / 2, y: middle + 5, "text-anchor": "middle", "font-size": 15, "font-weight": 700 }, center));
  roving([...svg.querySelectorAll("[role=button]")], 0);
  svg.setAttribute("role", "group");
  return svg;
}

/** Words at places; labels that would overlap are left out, and the points stay. */
export function wordMap(label, words, { selected, near = new Set(), onselect }) {
  const [width, height] = [620, 520];
  const [x, y] = [scale(words.map((w) => w.x), 50, width - 70), scale(words.map((w) => w.y), height - 24, 24)];
  const taken = [];
  const isFree = (box) => taken.every((other) => box.right < other.left || box.left > other.right || box.bottom < other.top || box.top > other.bottom);
  const important = (w) => (w.word === selected ? 2 : near.has(w.word) ? 1 : 0);
  const ordered = [...words].sort((a, b) => important(b) - important(a) || b.count - a.count);
  const nodes = ordered.map((w) => {
    const [px, py] = [x(w.x), y(w.y)];
    const box = { left: px - 4, right: px + 8 + 6.6 * w.word.length, top: py - 8, bottom: py + 6 };
    const shown = important(w) > 0 || isFree(box);
    if (shown) taken.push(box);
    const state = w.word === selected ? "selected" : near.has(w.word) ? "near" : near.size ? "faded" : "";
    return s("g", { class: `word ${state}`, onclick: () => onselect(w.word) },
      s("title", {}, w.word),
      s("circle", { cx: px, cy: py, r: important(w) ? 4 : 2.4 }),
      shown && s("text", { x: px + 6, y: py + 4, "font-size": 12 }, w.word));
  });
  return picture(width, height, label, nodes.reverse());
}

/** Curves: `series` are `{name, color, points: [[x, y], …], band: [[x, low, high], …]}`; `labels` name the places of x; values that
 * have no order are not `joined`. */
export function lines(label, series, { xName, labels, joined = true } = {}) {
  const [width, height, left, right, top, bottom] = [640, 300, 62, 34, 12, 44];
  const points = series.flatMap((one) => [...one.points, ...(one.band ?? []).flatMap(([x, low, high]) => [[x, low], [x, high]])]);
  const x = scale(points.map((p) => p[0]), left, width - right);
  const y = scale(points.map((p) => p[1]), height - bottom, top);
  const path = d3.line(([px]) => x(px), ([, py]) => y(py));
  const band = d3.area(([px]) => x(px), ([, low]) => y(low), ([, , high]) => y(high));
  const every = labels && Math.ceil(labels.length / 12);
  const across = labels
    ? labels.map((text, i) => [i, shorten(text, 10)]).filter(([i]) => i % every === 0)
    : x.ticks(5).map((at) => [at, figure(at)]);
  return picture(width, height, label,
    y.ticks(5).map((at) => s("g", {},
      s("line", { x1: left, x2: width - right, y1: y(at), y2: y(at), class: "grid" }),
      s("text", { x: left - 6, y: y(at) + 4, "text-anchor": "end", "font-size": 11, class: "dim" }, figure(at)))),
    across.map(([at, text]) => s("text", { x: x(at), y: height - bottom + 16, "text-anchor": "middle", "font-size": 11, class: "dim" }, text)),
    xName && s("text", { x: (left + width) / 2, y: height - 8, "text-anchor": "middle", "font-size": 12, class: "dim" }, xName),
    series.map((one) => one.band && joined && s("path", { d: band(one.band), style: { fill: one.color }, class: "band" })),
    series.map((one) => !joined && one.band.map(([px, low, high]) => s("line", { x1: x(px), x2: x(px), y1: y(low), y2: y(high), class: "interval", style: { stroke: one.color } }))),
    series.map((one) => joined && s("path", { d: path(one.points), class: "curve", style: { stroke: one.color } }, s("title", {}, one.name))),
    series.map((one) => one.points.length < 60 && one.points.map(([px, py]) => s("circle", { cx: x(px), cy: y(py), r: joined ? 2.6 : 4, style: { fill: one.color } },
      s("title", {}, `${one.name}: ${labels ? labels[px] : figure(px)}, ${figure(py)}`)))));
}

/** The names of series with their colors. */
export function legend(series) {
  return h("ul", { class: "legend" }, series.map((one) => h("li", {}, h("span", { class: "swatch", style: { background: one.color } }), one.name)));
}
