// One run on the screen: overview, timeline and details. The page and the report file show the same.

import { fill, h, inline } from "../lib/dom.js";
import { details } from "./details.js";
import { overview } from "./overview.js";
import { asJson } from "./raw.js";
import { Timeline } from "./timeline.js";

/**
 * Shows a run in an element. `options.chosen(line)` is called for each selection; `options.whole` is as in
 * details(), and `options.json` as `load` in asJson().
 */
export class RunBoard {
  constructor(root, data, options) {
    this.data = data;
    this.options = options;
    this.aside = h("div.details", { role: "region", "aria-label": "Details", tabindex: "-1" });
    this.timeline = new Timeline(data, (line) => this.choose(line));
    this.search = h("input", { type: "search", "aria-label": "Find in this run", placeholder: "find in this run" });
    this.search.addEventListener("keydown", (event) => event.key === "Enter" && this.find());
    fill(
      root,
      h("h1", {}, inline(data.agent ?? "Run")),
      options.buttons ?? null,
      overview(data),
      h("div.board", {}, h("div.lines", {}, this.search, this.timeline.element), this.aside),
    );
    fill(this.aside, h("p.note", {}, data.lines.length ? "Select a line to see its details." : "This run has no spans."));
  }

  choose(line) {
    const { whole, json, actions } = this.options;
    fill(this.aside, details(this.data, line, whole), asJson(this.data, line, json, whole), actions?.(line));
    this.options.chosen?.(line);
  }

  /** Select the next line that contains the text of the search field. */
  find() {
    const word = this.search.value.trim().toLowerCase();
    if (!word) return;
    const { visible, place } = this.timeline;
    const after = [...visible.keys()].map((step) => (step + place + 1) % visible.length);
    const found = after.find((one) => this.textOf(visible[one].line).includes(word));
    if (found === undefined) fill(this.aside, h("p.note", { role: "status" }, "Nothing in this run contains ", inline(word), "."));
    else this.timeline.choose(found, false);
  }

  textOf(line) {
    const { calls, tools, contents } = this.data;
    const call = line.call === null ? null : calls[line.call];
    const said = call ? [...call.input, ...call.output].map((number) => contents.messages[number]) : [];
    return JSON.stringify([line.name, line.error, line.input, line.output, line.data, said, line.tool === null ? null : tools[line.tool]]).toLowerCase();
  }

  /** The keys that move in the timeline. */
  keys() {
    const { timeline } = this;
    return {
      j: () => timeline.choose(timeline.place + 1),
      k: () => timeline.choose(timeline.place - 1),
      ArrowDown: () => timeline.choose(timeline.place + 1),
      ArrowUp: () => timeline.choose(timeline.place - 1),
      ArrowLeft: () => timeline.leave(),
      ArrowRight: () => timeline.enter(),
      Enter: (event) => this.enter(event),
      "/": () => this.search.focus(),
    };
  }

  enter(event) {
    const button = event.target.closest?.("a, button, summary");
    if (button) button.click();
    else this.aside.focus();
  }
}
