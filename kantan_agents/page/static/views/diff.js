// Two runs side by side: where they part, and what each did.

import { add, fill, h, inline } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { changes } from "../lib/changes.js";
import { count, duration, time } from "../lib/format.js";
import { listen } from "../lib/keys.js";
import { address } from "../lib/route.js";
import { longText } from "../run/text.js";

const SIDES = ["A", "B"];

export function title() {
  return "Two runs";
}

export async function show(root, parts, query, signal) {
  const [one, other] = parts;
  const data = await get(`diff/${encodeURIComponent(one)}/${encodeURIComponent(other ?? "")}`, {}, signal);
  const steps = stepsOf(data);
  fill(
    root,
    h("h1", {}, "Two runs"),
    h("p", {}, h("a", { href: address(["diff", other, one]) }, "Swap the sides")),
    h("div.sides", {}, data.runs.map(runFacts)),
    verdict(data),
    parting(data.parting),
    h("h2", {}, "Step by step"),
    steps,
  );
  const places = [...steps.querySelectorAll("[data-differs]")];
  let place = -1;
  const go = (to) => {
    place = Math.max(0, Math.min(to, places.length - 1));
    places[place]?.focus();
    places[place]?.scrollIntoView({ block: "center" });
  };
  listen({ n: () => go(place + 1), p: () => go(place - 1) }, signal);
  places[0]?.scrollIntoView({ block: "center" });
}

function runFacts(run, side) {
  return h(
    "section.card",
    {},
    h("h2", {}, `${SIDES[side]}: `, h("a", { href: address(["run", run.id]) }, inline(run.agent ?? "run"))),
    h(
      "p",
      {},
      h("span", { class: run.status }, run.status),
      " ",
      inline([run.prompt, run.version].filter(Boolean).join(" ")),
      " ",
      time(run.started_at),
      ` ${duration(run.seconds)} ${run.tokens ? `${count(run.tokens)} tokens` : ""}`,
    ),
    run.missing.length ? h("p.note", {}, "Not recorded completely: ", inline(run.missing.join("; ")), ".") : null,
  );
}

function verdict(data) {
  const differing = data.steps.filter((step) => !step.is_same).length;
  if (!differing && !data.parting) return h("p.ok", { role: "status" }, "Both runs did the same.");
  const text = `${count(differing)} of ${count(data.steps.length)} steps differ.`;
  return h("p", { role: "status" }, text, " ", h("span.note", {}, "n and p go to the next one and back."));
}

function parting(found) {
  if (!found) return null;
  const call = `model call ${found.call + 1}`;
  const where = {
    end: `Only one run has a ${call}; everything before it is the same.`,
    request: `They part at the request of ${call}; everything before it is the same.`,
    answer: `They part at the answer of ${call}; everything before it is the same.`,
  };
  return h(
    "section",
    {},
    h("h2", {}, "Where they part"),
    h("p", {}, where[found.what]),
    found.differences.slice(0, 10).map((one) => [
      h("h3", {}, inline(one.part), " ", h("span.note", {}, inline(one.kind))),
      one.lines.length ? changes(one.lines) : null,
    ]),
  );
}

/** Steps in two columns; those that are the same are folded where several follow one another. */
function stepsOf(data) {
  const made = h("div.steps", {});
  let same = [];
  const flush = () => {
    if (!same.length) return;
    const label = `${count(same.length)} equal ${same.length === 1 ? "step" : "steps"}`;
    add(made, [h("details", {}, h("summary", {}, label), same.map((step) => row(step, false)))]);
    same = [];
  };
  for (const step of data.steps) {
    if (step.is_same) same.push(step);
    else {
      flush();
      add(made, [row(step, true)]);
    }
  }
  flush();
  return made;
}

function row(step, differs) {
  return h(
    "section.step",
    { "data-differs": differs, tabindex: differs ? "-1" : null, class: differs ? "step differs" : "step" },
    h("h3", {}, inline(step.name), differs ? h("span.mark", {}, "differs") : null),
    h("div.sides", {}, step.texts.map((text, side) => h("div", {}, h("p.role", {}, SIDES[side]), text ? longText(text) : h("p.note", {}, "No such step.")))),
  );
}
