// A table of which only the rows in view are in the document, so that it may have any number of them.

import { h, inline, visible } from "../lib/dom.js";
import { count, duration, time } from "../lib/format.js";
import { address } from "../lib/route.js";

const AROUND = 20;
const SIGNS = { ok: "✓", failed: "✗", recovered: "!", unfinished: "…" };

// Name, heading, class, whether it can be sorted by, and the cell's content.
const COLUMNS = [
  ["started_at", "Started", "started", (run) => h("a", { href: address(["run", run.id]) }, time(run.started_at) || "-")],
  ["status", "Status", "status", (run) => status(run)],
  ["agent", "Agent", "agent", (run) => inline(run.agent ?? "")],
  ["prompt", "Prompt", "prompt", (run) => inline([run.prompt, run.version].filter(Boolean).join(" "))],
  ["input", "Input", "text", (run) => inline(firstLine(run.input))],
  ["output", "Output", "text", (run) => inline(firstLine(run.error ?? run.output))],
  ["score", "Score", "number", (run) => (run.score === null ? "" : String(Math.round(run.score * 100) / 100))],
  ["tokens", "Tokens", "number", (run) => (run.tokens ? count(run.tokens) : "")],
  ["seconds", "Took", "number", (run) => duration(run.seconds)],
];

function status(run) {
  const shown = h("span", { class: run.status, title: visible(run.error ?? run.status) }, `${SIGNS[run.status]} ${run.status}`);
  return run.cut_answers ? [shown, h("span.recovered", { title: "an answer was cut off" }, " cut off")] : shown;
}

function firstLine(text) {
  return (text ?? "").replace(/\s+/g, " ").trim();
}

/** The table; `sorted(column)` is called for a click on a heading, and `opened(run)` for one on a row. */
export class RunTable {
  constructor(sorted, opened, nearEnd) {
    this.rows = [];
    this.selected = -1;
    this.nearEnd = nearEnd;
    this.opened = opened;
    this.body = h("tbody");
    this.heads = COLUMNS.map(([name, label, kind]) =>
      h("th", { scope: "col", class: kind }, h("button", { type: "button", onclick: () => sorted(name) }, label)),
    );
    this.table = h("table.runs", {}, h("caption.quiet", {}, "Runs, newest first"), h("thead", {}, h("tr", {}, this.heads)), this.body);
  }

  /** Show other rows, or the same again after one has changed. */
  show(rows) {
    this.rows = rows;
    this.selected = Math.min(this.selected, rows.length - 1);
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    this.draw();
  }

  /** Mark the column that the rows are sorted by. */
  mark(column, isDescending) {
    COLUMNS.forEach(([name], place) => {
      if (name === column) this.heads[place].setAttribute("aria-sort", isDescending ? "descending" : "ascending");
      else this.heads[place].removeAttribute("aria-sort");
    });
  }

  /** Select a row, and scroll so that it is in view. */
  select(place) {
    if (!this.rows.length) return;
    this.selected = Math.max(-1, Math.min(place, this.rows.length - 1));
    if (this.selected >= 0) {
      const top = this.body.getBoundingClientRect().top + this.selected * this.height();
      const head = this.table.tHead.getBoundingClientRect().height;
      if (top < head) window.scrollBy(0, top - head);
      else if (top + this.height() > window.innerHeight) window.scrollBy(0, top + this.height() - window.innerHeight + 8);
    }
    this.draw();
  }

  height() {
    return window.matchMedia("(max-width: 700px)").matches ? 64 : 32;
  }

  /** Put the rows around the window into the document. */
  draw() {
    const height = this.height();
    const top = this.body.getBoundingClientRect().top;
    const first = Math.max(0, Math.floor(-top / height) - AROUND);
    const last = Math.min(this.rows.length, Math.ceil((window.innerHeight - top) / height) + AROUND);
    const focused = this.body.contains(document.activeElement) ? document.activeElement.closest("tr")?.dataset.id : null;
    const shown = [];
    for (let place = first; place < last; place += 1) shown.push(this.row(place));
    this.body.replaceChildren(space(first * height), ...shown, space((this.rows.length - last) * height));
    // The row with the focus was made anew, and a reader's place must not be lost.
    if (focused) this.body.querySelector(`tr[data-id="${CSS.escape(focused)}"] a`)?.focus({ preventScroll: true });
    if (last >= this.rows.length - AROUND) this.nearEnd();
  }

  row(place) {
    const run = this.rows[place];
    return h(
      "tr",
      {
        "data-id": run.id,
        "aria-rowindex": place + 2,
        "aria-selected": place === this.selected ? "true" : null,
        onclick: (event) => event.target.closest("a") || this.opened(run),
      },
      COLUMNS.map(([, label, kind, content]) => h("td", { class: kind, "data-label": label }, content(run))),
    );
  }
}

function space(height) {
  const row = h("tr.space", { "aria-hidden": "true" }, h("td", { colspan: COLUMNS.length }));
  row.style.height = `${Math.max(0, height)}px`;
  return row;
}

/** Return rows in the order of a column; rows without a value come last. */
export function sortedBy(rows, column, isDescending) {
  const known = rows.filter((row) => row[column] !== null && row[column] !== undefined);
  const others = rows.filter((row) => row[column] === null || row[column] === undefined);
  known.sort((one, other) => (one[column] < other[column] ? -1 : one[column] > other[column] ? 1 : 0));
  return [...(isDescending ? known.reverse() : known), ...others];
}
