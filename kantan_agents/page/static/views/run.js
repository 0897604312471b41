// One run: its timeline, its model calls and its tool calls.

import { fill, h, visible } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { listen } from "../lib/keys.js";
import { address, go } from "../lib/route.js";
import { RunBoard } from "../run/board.js";

const POLL = 1000;

let shown = null;

export function title(parts) {
  return `Run ${(parts[0] ?? "").slice(-8)}`;
}

export async function show(root, parts, query, signal) {
  const [id] = parts;
  const data = await get(`run/${encodeURIComponent(id)}`, {}, signal);
  const board = draw(root, data, query.get("span"));
  shown = { id, board };
  listen(
    {
      ...Object.fromEntries(Object.keys(board.keys()).map((key) => [key, (event) => shown.board.keys()[key](event)])),
      Escape: (event) => leave(event),
    },
    signal,
  );
  if (data.status === "unfinished") follow(root, id, signal);
}

/** Select the span that the address names, as after Back. */
export function update(query) {
  const id = query.get("span");
  if (id && id !== chosenIn(shown.board)) shown.board.timeline.chooseId(id);
}

function draw(root, data, span) {
  const board = new RunBoard(root, data, {
    buttons: buttons(data),
    whole: (line, part) => `api/${spanPath(data, line)}${part ? `?part=${part}` : ""}`,
    json: (line) => get(spanPath(data, line)),
    actions: (line) =>
      line.call === null
        ? null
        : h("p.buttons", {}, copyButton("Copy as curl", data, `call/${line.call}/curl`, (found) => found.text, "curl command")),
    chosen: (line) => go(address(["run", data.id], { span: line.id }), true),
  });
  if (span) board.timeline.chooseId(span);
  return board;
}

function spanPath(data, line) {
  return `run/${encodeURIComponent(data.id)}/span/${encodeURIComponent(line.id)}`;
}

function chosenIn(board) {
  return board.timeline.visible[board.timeline.place]?.line.id ?? null;
}

function leave(event) {
  if (event.target.tagName === "INPUT") event.target.blur();
  else location.hash = address(["runs"]).slice(1);
}

function buttons(data) {
  return h(
    "div.buttons",
    {},
    h("a", { href: address(["runs"]) }, "All runs"),
    " ",
    copyButton("Copy as recording", data, "recording", (found) => JSON.stringify(found, null, 2)),
    " ",
    copyButton("Copy as case", data, "case", (found) => found.text),
    beside(data),
  );
}

/** A link to the comparison with the recorded run that this one is a replay of, and a form for any other. */
function beside(data) {
  const replayed = data.metadata.kantan_agents_replayed_run?.text;
  const other = h("input", { type: "text", "aria-label": "Id of another run", placeholder: "id of another run", size: "24" });
  const compare = (event) => {
    event.preventDefault();
    if (other.value.trim()) location.hash = address(["diff", data.id, other.value.trim()]).slice(1);
  };
  return [
    replayed ? h("a", { href: address(["diff", replayed, data.id]) }, "Beside the recorded run") : null,
    h("form.beside", { onsubmit: compare }, other, " ", h("button", { type: "submit" }, "Compare")),
  ];
}

function copyButton(label, data, path, textOf, what = path) {
  const copied = async () => say(await copy(`run/${encodeURIComponent(data.id)}/${path}`, what, textOf));
  return h("button", { type: "button", onclick: copied }, label);
}

/** Copy what an endpoint returns; return what is to be said about it. */
async function copy(path, what, textOf) {
  try {
    const text = textOf(await get(path));
    await navigator.clipboard.writeText(text);
    return `The ${what} is in the clipboard.`;
  } catch (error) {
    return typeof error.code === "string" ? visible(error.message) : `It could not be copied: ${error.message}`;
  }
}

/** Say something where it is seen, and where screen readers hear it. */
function say(text) {
  fill(document.getElementById("status"), text);
}

/** Show a run that is not finished again whenever the file has changed. */
function follow(root, id, signal) {
  let version = null; // what was added before the first look is not known
  const timer = setInterval(async () => {
    try {
      const found = (await get("version", {}, signal)).version;
      if (found !== version) {
        const data = await get(`run/${encodeURIComponent(id)}`, {}, signal);
        shown.board = draw(root, data, chosenIn(shown.board));
        if (data.status !== "unfinished") clearInterval(timer);
      }
      version = found;
    } catch {
      // The next second tries again; what is shown stays.
    }
  }, POLL);
  signal.addEventListener("abort", () => clearInterval(timer));
}
