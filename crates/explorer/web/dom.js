// Elements. Data enters the page as text nodes and attribute values only, so that a word is never markup.

const SVG = "http://www.w3.org/2000/svg";

function add(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(element.style, value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return element;
}

/** An HTML element with attributes, listeners (`onclick`) and children. */
export function h(name, attributes = {}, ...children) {
  return add(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function s(name, attributes = {}, ...children) {
  return add(document.createElementNS(SVG, name), attributes, children);
}

/** Calls `run` when a user pauses for a moment. */
export function debounced(run, milliseconds = 250) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...args), milliseconds);
  };
}

/** A field with a label. */
export function field(label, input, help) {
  const id = input.id || (input.id = `field-${field.n++}`);
  const described = help && h("p", { class: "help", id: `${id}-help` }, help);
  if (described) input.setAttribute("aria-describedby", `${id}-help`);
  return h("div", { class: "field" }, h("label", { for: id }, label), input, described);
}
field.n = 0;

/** A section with a heading; `tools` are buttons next to it. */
export function section(title, ...children) {
  const tools = h("div", { class: "tools" });
  const id = `section-${section.n++}`;
  const element = h("section", { "aria-labelledby": id },
    h("div", { class: "section-head" }, h("h2", { id }, title), tools), ...children);
  element.tools = tools;
  return element;
}
section.n = 0;

export function percent(x) {
  if (x === 0) return "0 %";
  const digits = x >= 0.1 ? 0 : x >= 0.01 ? 1 : x >= 0.001 ? 2 : 3;
  return `${(100 * x).toFixed(digits)} %`;
}

/** A number with about four significant digits. */
export function figure(x) {
  if (x === null || x === undefined) return "∞";
  if (Number.isInteger(x)) return x.toLocaleString("en-US");
  const size = Math.abs(x);
  if (size >= 1000) return x.toFixed(0);
  if (size >= 0.001) return String(Number(x.toPrecision(4)));
  return x.toExponential(2);
}

/** A table: columns are `{name, of, number, view}`; `of` gives the value, `view` optionally what is shown for it. */
export function table(caption, columns, rows, options = {}) {
  const head = columns.map((column) => h("th", { scope: "col", class: column.number && "number" }, column.name));
  const cell = (column, row) => {
    const shown = column.view ? column.view(row) : column.number ? figure(column.of(row)) : column.of(row);
    return h(column.head ? "th" : "td", { class: column.number && "number", scope: column.head && "row" }, shown);
  };
  const body = rows.map((row) => {
    const line = h("tr", {}, columns.map((column) => cell(column, row)));
    if (options.selected?.(row)) line.setAttribute("aria-current", "true");
    return line;
  });
  const element = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
  element.csv = [columns.map((column) => column.name), ...rows.map((row) => columns.map((column) => column.of(row)))];
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption }, element);
}
