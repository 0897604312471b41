// The timeline: a tree of lines with a bar for the time of each. Lines can be folded, selected and searched.

import { h, inline } from "../lib/dom.js";
import { duration } from "../lib/format.js";

const KINDS = {
  agent: "agent",
  model: "model",
  tool: "tool",
  handoff: "hand-off",
  refusal: "denied",
  cut: "cut off",
  verdict: "verdict",
  guardrail: "guardrail",
  custom: "",
  mcp_tools: "MCP",
};
const NARROWEST = 0.4;

/** Return the lines as a reader sees them: each below the line around it, with its depth. */
export function arranged(lines) {
  const below = new Map();
  for (const line of lines) {
    const key = line.parent ?? null;
    if (!below.has(key)) below.set(key, []);
    below.get(key).push(line);
  }
  const found = [];
  // Not recursive, as a damaged or very deep run may have thousands of levels.
  const waiting = (below.get(null) ?? []).map((line) => [line, 0]).reverse();
  while (waiting.length) {
    const [line, depth] = waiting.pop();
    const children = below.get(line.id) ?? [];
    found.push({ line, depth, children: children.length });
    for (const child of [...children].reverse()) waiting.push([child, depth + 1]);
  }
  return found;
}

/** The timeline; `selected(line)` is called when another line is selected. */
export class Timeline {
  constructor(data, selected) {
    this.data = data;
    this.lines = arranged(data.lines);
    this.selected = selected;
    this.folded = new Set();
    this.place = -1;
    this.total = Math.max(...data.lines.map((line) => (line.offset ?? 0) + (line.seconds ?? 0)), data.seconds ?? 0, 1e-6);
    this.element = h("div.timeline", { role: "tree", "aria-label": "Timeline of the run" });
    this.draw();
  }

  /** Return the lines that are not inside a folded one. */
  shown() {
    const found = [];
    let hiddenBelow = Infinity;
    for (const entry of this.lines) {
      if (entry.depth > hiddenBelow) continue;
      hiddenBelow = this.folded.has(entry.line.id) ? entry.depth : Infinity;
      found.push(entry);
    }
    return found;
  }

  draw() {
    this.visible = this.shown();
    this.rows = this.visible.map((entry) => this.row(entry));
    this.element.replaceChildren(...this.rows);
    this.mark();
  }

  row({ line, depth, children }) {
    const isFolded = this.folded.has(line.id);
    const fold = children
      ? h("button.fold", { type: "button", tabindex: "-1", "aria-label": isFolded ? "Unfold" : "Fold", onclick: (event) => this.fold(event, line) }, isFolded ? "▸" : "▾")
      : h("span.fold");
    const state = this.state(line);
    const bar = h("span.bar", { class: `bar ${line.kind} ${state}` });
    const start = Math.min(100 - NARROWEST, (100 * (line.offset ?? 0)) / this.total);
    bar.style.insetInlineStart = `${start}%`;
    bar.style.inlineSize = `${Math.max(NARROWEST, Math.min(100 - start, (100 * (line.seconds ?? 0)) / this.total))}%`;
    const name = h("span.name", {}, fold, h("span.kind", {}, KINDS[line.kind] ?? line.kind), " ", inline(line.name), this.marks(line));
    name.style.paddingInlineStart = `${Math.min(depth, 12) * 14}px`;
    return h(
      "div.line",
      {
        class: `line ${state}`,
        role: "treeitem",
        tabindex: "-1",
        "aria-level": depth + 1,
        "aria-expanded": children ? String(!isFolded) : null,
        "data-id": line.id,
        onclick: () => this.choose(this.visible.findIndex((entry) => entry.line === line)),
      },
      name,
      h("span.track", { "aria-hidden": "true" }, bar),
      h("span.took", {}, duration(line.seconds)),
    );
  }

  /** Return how a line ended, which colours it. */
  state(line) {
    if (line.kind === "refusal" || this.decision(line)?.is_allowed === false) return "denied";
    return line.error || (line.call !== null && this.data.calls[line.call]?.error) ? "failed" : "";
  }

  decision(line) {
    return line.tool === null ? null : this.data.tools[line.tool]?.decision;
  }

  marks(line) {
    const state = this.state(line);
    const marks = [];
    if (state === "denied" && line.kind !== "refusal") marks.push(h("span.mark.denied", {}, "denied"));
    if (state === "failed") marks.push(h("span.mark.failed", {}, "error"));
    if (line.call !== null && this.data.calls[line.call]?.cut_off) marks.push(h("span.mark.cut", {}, "cut off"));
    if (line.rubric && typeof line.rubric.score === "number") marks.push(h("span.mark", {}, `score ${line.rubric.score}`));
    return marks.map((mark) => [" ", mark]);
  }

  fold(event, line) {
    event.stopPropagation();
    this.setFolded(line, !this.folded.has(line.id));
  }

  setFolded(line, isFolded) {
    if (isFolded) this.folded.add(line.id);
    else this.folded.delete(line.id);
    const chosen = this.visible[this.place]?.line;
    this.draw();
    this.place = this.visible.findIndex((entry) => entry.line === chosen);
    this.mark();
  }

  /** Fold the selected line; if it is folded or has nothing inside, select the line around it. */
  leave() {
    const entry = this.visible[this.place];
    if (!entry) return;
    if (entry.children && !this.folded.has(entry.line.id)) this.setFolded(entry.line, true);
    else {
      const around = this.visible.slice(0, this.place).findLastIndex((one) => one.depth < entry.depth);
      if (around >= 0) this.choose(around);
    }
    this.rows[this.place]?.focus({ preventScroll: true });
  }

  /** Unfold the selected line; if it is unfolded, select the first line inside. */
  enter() {
    const entry = this.visible[this.place];
    if (!entry?.children) return;
    if (this.folded.has(entry.line.id)) this.setFolded(entry.line, false);
    else this.choose(this.place + 1);
    this.rows[this.place].focus({ preventScroll: true });
  }

  /** Select the line at a place among those in view. */
  choose(place, isFocused = true) {
    if (!this.visible.length) return;
    this.place = Math.max(0, Math.min(place, this.visible.length - 1));
    this.mark();
    if (isFocused) this.rows[this.place].focus({ preventScroll: true });
    this.rows[this.place].scrollIntoView({ block: "nearest" });
    this.selected(this.visible[this.place].line);
  }

  /** Select the line with an id; return whether there is one. */
  chooseId(id) {
    const place = this.visible.findIndex((entry) => entry.line.id === id);
    if (place >= 0) this.choose(place, false);
    return place >= 0;
  }

  mark() {
    this.rows.forEach((row, place) => {
      row.setAttribute("aria-selected", String(place === this.place));
      row.setAttribute("tabindex", place === Math.max(0, this.place) ? "0" : "-1");
    });
  }
}
