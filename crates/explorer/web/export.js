// Pictures as SVG and PNG, tables as CSV.

import { texts } from "./texts.js";
import { h } from "./dom.js";

function save(name, blob) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

const STYLES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "font-size", "font-family", "font-weight", "text-anchor", "dominant-baseline"];

/** The picture as a document of its own: the colors of the page become attributes. */
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const [own, copied] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  own.forEach((element, i) => {
    const style = getComputedStyle(element);
    STYLES.forEach((name) => copied[i].setAttribute(name, style.getPropertyValue(name)));
    ["class", "style", "tabindex", "role"].forEach((name) => copied[i].removeAttribute(name));
  });
  const { width, height } = svg.viewBox.baseVal;
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  background.setAttribute("width", width);
  background.setAttribute("height", height);
  background.setAttribute("fill", getComputedStyle(document.body).backgroundColor);
  copy.prepend(background);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return { text: new XMLSerializer().serializeToString(copy), width, height };
}

function savePng(name, svg) {
  const { text, width, height } = standalone(svg);
  const image = new Image();
  image.onload = () => {
    const canvas = h("canvas", { width: 2 * width, height: 2 * height });
    const context = canvas.getContext("2d");
    context.scale(2, 2);
    context.drawImage(image, 0, 0, width, height);
    canvas.toBlob((blob) => save(`${name}.png`, blob));
    URL.revokeObjectURL(image.src);
  };
  image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
}

/** A cell as RFC 4180 has it. A cell that a spreadsheet would compute is quoted as text. */
function csvCell(value) {
  let text = String(value ?? "");
  if (typeof value === "string" && /^[=+\-@\t]/.test(text)) text = `'${text}`;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export function csvText(rows) {
  return rows.map((row) => row.map(csvCell).join(",")).join("\r\n") + "\r\n";
}

function tool(what, kind, run) {
  return h("button", { type: "button", class: "small", "aria-label": texts.exportLabel(what, kind), onclick: run }, kind);
}

/** Adds buttons for the picture and the table of a section. */
export function exportable(section, name, { svg, table }) {
  const file = name.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-");
  const tools = [];
  if (svg) {
    const saveSvg = () => save(`${file}.svg`, new Blob([standalone(svg).text], { type: "image/svg+xml" }));
    tools.push(tool(name, texts.exportSvg, saveSvg), tool(name, texts.exportPng, () => savePng(file, svg)));
  }
  if (table) {
    const rows = table.querySelector("table").csv;
    const saveCsv = () => save(`${file}.csv`, new Blob([csvText(rows)], { type: "text/csv" }));
    tools.push(tool(name, texts.exportCsv, saveCsv));
  }
  section.tools.replaceChildren(...tools);
  return section;
}
