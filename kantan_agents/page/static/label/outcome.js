// What was hidden before the answer: the judge's score, and in the end the variants.

import { h, inline } from "../lib/dom.js";
import { address } from "../lib/route.js";

/** Return what the person and the judge say about a case. */
export function outcome(name, answered) {
  return h("div.label-outcome", {}, h("p", {}, inline(name), " · you: ", h("strong", {}, said(answered.given)), " · ", ...judged(answered)), remark(answered.judge), variants(answered.variants));
}

function judged({ judge, agrees }) {
  if (!judge) return ["no judge has scored it"];
  if (judge.value === null) return ["the judge has failed"];
  const verdict = agrees === null ? null : agrees ? h("span.ok", {}, " ✓ you agree") : h("span.failed", {}, " ✗ you disagree");
  return ["judge: ", h("strong", {}, said(judge)), verdict];
}

function said(score) {
  const value = String(Math.round(score.value * 100) / 100);
  return score.label ? [inline(score.label), ` (${value})`] : value;
}

function remark(judge) {
  const text = judge?.comment ?? judge?.error;
  return text ? h("p.note", {}, inline(text)) : null;
}

function variants(found) {
  if (found.length === 0) return null;
  return h("p.note", {}, found.map((one, place) => [place ? " · " : "", one.is_this ? "this was " : "the other was ", variant(one)]));
}

function variant(one) {
  return one.trace_id ? h("a", { href: address(["run", one.trace_id]) }, inline(one.name)) : inline(one.name);
}
