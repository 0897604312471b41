// Asks about one case after the other.

import { fill, h, inline } from "../lib/dom.js";
import { post } from "../lib/api.js";
import { count } from "../lib/format.js";
import { listen } from "../lib/keys.js";
import { address } from "../lib/route.js";
import { controls } from "./controls.js";
import { itemParts } from "./item.js";
import { outcome } from "./outcome.js";
import { goesOnAtOnce } from "./remembered.js";

const MOST_SKIPPED = 2000; // as many as a request can name

/** Show the queue of `asked`: evaluation, metric, by, scale, and optionally sample and seed. */
export async function ask(root, asked, signal) {
  const queue = new Queue(asked, signal);
  fill(root, queue.head, queue.told, queue.body, queue.foot);
  listen(queue.keys(), signal);
  await queue.next();
}

class Queue {
  constructor(asked, signal) {
    this.asked = asked;
    this.signal = signal;
    this.history = []; // what can be taken back: receipts of answers, and skipped cases
    this.item = null;
    this.isBusy = false;
    this.isAnswered = false;
    this.progress = h("p.label-progress", { role: "status" });
    this.title = h("h1", { tabindex: "-1" }, "Label");
    const back = h("a", { href: address(["label"]) }, "Choose another");
    this.head = h("div.label-head", {}, this.title, h("p.note", {}, inline(asked.metric), " of ", inline(asked.evaluation), ", by ", inline(asked.by), " · ", back), this.progress);
    this.told = h("div", { "aria-live": "polite" });
    this.body = h("div.label-item", {});
    this.controls = controls(asked.scale, this);
    this.foot = this.controls.root;
  }

  keys() {
    const given = Object.fromEntries(this.controls.keys.map(([key, value]) => [key, () => this.answer(value)]));
    return { ...given, s: () => this.skip(), u: () => this.undo(), c: () => this.controls.focusComment(), Escape: () => this.title.focus() };
  }

  /** Show the next case. */
  async next() {
    await this.work(async () => {
      const skipped = this.history.filter((one) => one.skipped).map((one) => one.skipped);
      const found = await post("labels/next", { ...this.asked, skipped: skipped.slice(-MOST_SKIPPED) });
      if (this.signal.aborted) return;
      this.item = found.item;
      this.isAnswered = false;
      this.showProgress(found.progress);
      fill(this.title, found.item ? inline(found.item.case ?? "Label") : "Done");
      fill(this.body, found.item ? itemParts(found.item) : ending(found));
      this.controls.show(this.item, this.history.length > 0);
      this.title.focus();
      window.scrollTo(0, 0);
    });
  }

  /** Store an answer, and show what the judge says. */
  async answer(value) {
    if (!this.item || this.item.problem || this.isAnswered) return;
    await this.work(async () => {
      const comment = this.controls.comment() || undefined;
      const answered = await post("labels", { ...this.asked, item: this.item.id, value, comment });
      this.history.push({ receipt: answered.receipt });
      this.isAnswered = true;
      fill(this.told, outcome(this.item.case, answered));
      this.showProgress({ ...this.last, labelled: this.last.labelled + 1 });
    });
    if (!this.isAnswered || this.signal.aborted) return;
    if (goesOnAtOnce()) await this.next();
    else this.controls.showNext();
  }

  /** Leave what the judge said, and show the next case. */
  async goOn() {
    if (this.isBusy) return;
    fill(this.told);
    await this.next();
  }

  async skip() {
    if (!this.item || this.isBusy || this.isAnswered) return;
    this.history.push({ skipped: this.item.id });
    fill(this.told);
    await this.next();
  }

  /** Take the last answer back, or show the case again that was skipped last. */
  async undo() {
    const last = this.history.at(-1);
    if (!last || this.isBusy) return;
    if (last.receipt) await this.work(() => post("labels/undo", { receipt: last.receipt }));
    this.history = this.history.filter((one) => one !== last);
    if (!this.failed) fill(this.told, h("p.note", {}, last.receipt ? "The last answer was taken back." : "The case that was skipped is back."));
    await this.next();
  }

  /** Do one thing at a time, so that no key answers about a case that is not shown yet; errors are told. */
  async work(action) {
    if (this.isBusy) return;
    this.setBusy(true);
    this.failed = false;
    try {
      await action();
    } catch (error) {
      if (!this.signal.aborted) this.tell(error);
    } finally {
      this.setBusy(false);
    }
  }

  setBusy(isBusy) {
    this.isBusy = isBusy;
    this.body.setAttribute("aria-busy", String(isBusy));
  }

  tell(error) {
    this.failed = true;
    fill(this.told, h("p.problem", { role: "alert" }, inline(error.message)));
    // Somebody has answered or deleted it meanwhile, so there is nothing left to ask about it.
    if (error.code === "labelled" || error.code === "deleted") this.isAnswered = true;
    if (this.isAnswered || !this.item) this.controls.showNext();
  }

  showProgress(progress) {
    this.last = progress;
    const skipped = progress.skipped ? `, ${count(progress.skipped)} skipped` : "";
    fill(this.progress, `${count(progress.labelled)} of ${count(progress.total)} labelled${skipped}`);
  }
}

function ending({ progress, agreement }) {
  if (progress.total === 0) return h("p.empty", {}, "There is no finished result to label.");
  const left = progress.total - progress.labelled;
  const skipped = left ? h("p", {}, `${count(left)} left: you have skipped them. `, h("a", { href: address(["label"]) }, "Start again"), " to see them.") : null;
  return h("section.card", {}, h("h2", {}, "Your answers and the judge's"), h("p", {}, agreed(agreement)), skipped);
}

function agreed({ compared, agree }) {
  if (compared === 0) return "The judge has scored none of the results that you have labelled.";
  const share = Math.round((100 * agree) / compared);
  return `You agree with the judge on ${count(agree)} of ${count(compared)} results (${share} %). Both pass a result from 0.5 on.`;
}
