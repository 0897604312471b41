// The table of runs: filtered as one types, endless, and live.

import { fill, h, inline } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { count } from "../lib/format.js";
import { listen } from "../lib/keys.js";
import { address, go } from "../lib/route.js";
import { filterForm } from "../runs/filter.js";
import { RunTable, sortedBy } from "../runs/table.js";

const WAIT = 200;
const POLL = 1000;
const TOP = 40;

// The view that is shown, for changes of the address; and the last one, so that going back restores it.
let shown = null;
let last = null;

export function title() {
  return "Runs";
}

export async function show(root, parts, query, signal) {
  shown = new View(root, signal);
  await shown.open(query);
}

export function update(query) {
  shown.changedAddress(query);
}

class View {
  constructor(root, signal) {
    this.signal = signal;
    this.runs = [];
    this.next = null;
    this.waiting = [];
    this.sort = null;
    this.request = null;
    this.version = null;
    this.filter = filterForm((query) => this.typed(query));
    this.table = new RunTable(
      (column) => this.sortBy(column),
      (run) => this.enter(run),
      () => this.more(),
    );
    this.note = h("p.note", { role: "status" });
    this.problem = h("div", { role: "alert" });
    this.fresh = h("button.fresh", { type: "button", hidden: true, onclick: () => this.showFresh() });
    this.empty = h("div.empty");
    fill(root, h("h1", {}, "Runs"), this.filter.form, this.problem, h("p.bar", {}, this.fresh), this.note, this.table.table, this.empty);
    window.addEventListener("scroll", () => this.table.draw(), { signal, passive: true });
    window.addEventListener("resize", () => this.table.draw(), { signal, passive: true });
    listen(
      {
        j: () => this.table.select(this.table.selected + 1),
        k: () => this.table.select(Math.max(0, this.table.selected - 1)),
        ArrowDown: () => this.table.select(this.table.selected + 1),
        ArrowUp: () => this.table.select(Math.max(0, this.table.selected - 1)),
        Enter: (event) => this.enterSelected(event),
        "/": () => this.filter.words.focus(),
        Escape: () => this.leave(),
      },
      signal,
    );
    signal.addEventListener("abort", () => {
      clearTimeout(this.timer); // it would write the address of these runs over that of the next view
      this.remember();
    });
  }

  async open(query) {
    this.query = new URLSearchParams(query);
    this.filter.set(this.query);
    // Before the runs, so that what is written in between is noticed.
    this.version = await get("version", {}, this.signal).then((found) => found.version, () => null);
    this.watch();
    get("choices", {}, this.signal).then(this.filter.offer, () => {});
    if (last && last.query === this.query.toString()) {
      [this.runs, this.next, this.table.selected] = [last.runs, last.next, last.selected];
      this.isLoaded = true;
      this.shows();
      window.scrollTo(0, last.scroll);
      this.table.draw();
      await this.refresh();
    } else await this.load();
  }

  /** Remember what is shown, so that Back from a run leads to the same place. */
  remember() {
    if (!this.isLoaded) return;
    const { runs, next } = this;
    last = { query: this.query.toString(), runs, next, selected: this.table.selected, scroll: window.scrollY };
  }

  changedAddress(query) {
    clearTimeout(this.timer);
    if (query.toString() === this.query.toString()) return;
    this.query = new URLSearchParams(query);
    this.filter.set(this.query);
    this.load();
  }

  typed(query) {
    clearTimeout(this.timer);
    const at = location.hash;
    this.timer = setTimeout(() => {
      if (location.hash !== at) return; // the event of the new address comes next
      this.query = query;
      // Replaced, so that Back leads out of the view and not through each letter.
      go(address(["runs"], query), true);
      this.load();
    }, WAIT);
  }

  /** Load the first page; an earlier request is given up, so that results never come out of order. */
  async load() {
    this.request?.abort();
    this.request = new AbortController();
    const { signal } = this.request;
    this.table.table.setAttribute("aria-busy", "true");
    try {
      const { runs, before } = await get("runs", Object.fromEntries(this.query), signal);
      [this.runs, this.next, this.sort, this.waiting] = [runs, before, null, []];
      this.table.selected = -1;
      this.isLoaded = true;
      fill(this.problem);
      this.shows();
    } catch (error) {
      if (!signal.aborted) this.fails(error);
    } finally {
      if (!signal.aborted) this.table.table.removeAttribute("aria-busy");
    }
  }

  async more() {
    if (this.next === null || this.isLoading || this.sort) return;
    this.isLoading = true;
    const query = this.query.toString();
    try {
      const { runs, before } = await get("runs", { ...Object.fromEntries(this.query), before: this.next }, this.signal);
      if (query !== this.query.toString()) return;
      this.runs = [...this.runs, ...runs];
      this.next = before;
    } catch (error) {
      if (!this.signal.aborted) this.fails(error);
      this.next = null;
    } finally {
      this.isLoading = false;
    }
    this.shows();
  }

  shows() {
    const { sort } = this;
    this.table.mark(sort?.column, sort?.isDescending);
    this.table.show(sort ? sortedBy(this.runs, sort.column, sort.isDescending) : this.runs);
    this.table.table.hidden = !this.runs.length;
    this.fresh.hidden = !this.waiting.length;
    fill(this.fresh, `${count(this.waiting.length)} new ${this.waiting.length === 1 ? "run" : "runs"}`);
    const number = `${count(this.runs.length)}${this.next === null ? "" : "+"} ${this.runs.length === 1 ? "run" : "runs"}`;
    fill(this.note, sort ? `sorted: the ${count(this.runs.length)} runs loaded so far` : this.runs.length ? number : "");
    fill(this.empty, this.runs.length ? null : this.nothing());
  }

  nothing() {
    if (this.query.size) {
      const clear = h("button", { type: "button", onclick: () => (location.hash = address(["runs"]).slice(1)) }, "Clear the filter");
      return [h("p", {}, "No run matches this filter."), clear];
    }
    return h("p", {}, "There are no runs in this database yet. ", h("code", {}, "kantan-agents run"), " records one, and so does a program after ", h("code", {}, "record_traces(...)"), ".");
  }

  fails(error) {
    fill(this.problem, h("p.problem", {}, error.code ? h("strong", {}, `${error.code} `) : null, inline(error.message)));
  }

  sortBy(column) {
    const { sort } = this;
    if (sort?.column !== column) this.sort = { column, isDescending: true };
    else this.sort = sort.isDescending ? { column, isDescending: false } : null;
    this.shows();
  }

  /** Look every second whether the file has changed, while somebody can see it. */
  watch() {
    const timer = setInterval(() => document.visibilityState === "visible" && this.poll(), POLL);
    this.signal.addEventListener("abort", () => clearInterval(timer));
  }

  async poll() {
    if (this.isPolling) return;
    this.isPolling = true;
    try {
      const { version } = await get("version", {}, this.signal);
      const isBack = this.isGone;
      this.isGone = false;
      if (isBack) await this.load();
      else if (this.version !== null && version !== this.version) await this.refresh();
      this.version = version;
    } catch (error) {
      if (this.signal.aborted) return;
      this.isGone = true;
      this.fails(error);
    } finally {
      this.isPolling = false;
    }
  }

  /** Take over what is new or has changed in the newest page, without moving what somebody reads. */
  async refresh() {
    const query = this.query.toString();
    const { runs } = await get("runs", Object.fromEntries(this.query), this.signal);
    if (query !== this.query.toString()) return;
    const found = new Map(runs.map((run) => [run.id, run]));
    this.runs = this.runs.map((run) => found.get(run.id) ?? run);
    const known = new Set([...this.runs, ...this.waiting].map((run) => run.id));
    this.waiting = [...runs.filter((run) => !known.has(run.id)), ...this.waiting.map((run) => found.get(run.id) ?? run)];
    if (window.scrollY < TOP && this.table.selected < 0 && !this.sort) this.showFresh();
    else this.shows();
  }

  showFresh() {
    if (this.table.selected >= 0) this.table.selected += this.waiting.length;
    this.runs = [...this.waiting, ...this.runs];
    this.waiting = [];
    this.shows();
  }

  enter(run) {
    clearTimeout(this.timer);
    location.hash = address(["run", run.id]).slice(1);
  }

  enterSelected(event) {
    const focused = event.target.closest?.("a, button");
    if (focused) focused.click();
    else if (this.table.selected >= 0) this.enter(this.table.rows[this.table.selected]);
  }

  leave() {
    if (this.filter.form.contains(document.activeElement)) document.activeElement.blur();
    else this.table.select(-1);
  }
}
