// Where answers come from: the server, or the data block of a report.

import { texts } from "./texts.js";

const block = document.getElementById("data");
const report = block && JSON.parse(block.textContent);

/** Whether the page can ask about typed text. */
export const isLive = !report;

export const reportTitle = report?.title;

/** The models and logs. */
export async function items() {
  if (report) return report.items;
  return read(await fetch("api/items"));
}

/** The key of an answer in a report, as `report.rs` computes it. */
function answerKey(item, view, args) {
  const parts = Object.keys(args).sort().map((name) => `${name}=${args[name]}`);
  return `${item} ${view} ${parts.join("&")}`;
}

/** Whether `ask` has an answer: always with a server. */
export function hasAnswer(item, view, args = {}) {
  return isLive || answerKey(item, view, args) in report.answers;
}

/** Asks a question; throws an error with a message for the user. */
export async function ask(item, view, args = {}) {
  if (report) {
    const answer = report.answers[answerKey(item, view, args)];
    if (!answer) throw new Error(texts.needsProgram);
    return answer;
  }
  const body = JSON.stringify({ item, view, args });
  const headers = { "Content-Type": "application/json" };
  let response;
  try {
    response = await fetch("api/query", { method: "POST", headers, body });
  } catch {
    throw new Error(texts.offline);
  }
  return read(response);
}

async function read(response) {
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error ?? texts.failed);
  return answer;
}
