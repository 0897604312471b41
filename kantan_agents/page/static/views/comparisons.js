// Evaluations and replays with something changed, and what they say.

import { fill, h, inline, visible } from "../lib/dom.js";
import { get } from "../lib/api.js";
import { count, time } from "../lib/format.js";
import { address } from "../lib/route.js";
import { table } from "../lib/table.js";
import { pairedChart, short } from "../comparisons/paired.js";
import { longText } from "../run/text.js";

const SIGNS = { better: "▲", worse: "▼", "cannot tell": "●" };
const MOST_ROWS = 100;

export function title(parts) {
  return parts.length ? "Comparison" : "Comparisons";
}

export async function show(root, parts, query, signal) {
  const [kind] = parts;
  if (kind === "evaluation") await showEvaluation(root, query, signal);
  else if (kind === "experiment") await showExperiment(root, query, signal);
  else await showAll(root, signal);
}

async function showAll(root, signal) {
  const { evaluations, experiments } = await get("comparisons", {}, signal);
  fill(
    root,
    h("h1", {}, "Comparisons"),
    h("h2", {}, "Evaluations"),
    evaluations.length ? allEvaluations(evaluations) : h("p.empty", {}, "There are none. ", h("code", {}, "kantan-agents eval run"), " makes one."),
    h("h2", {}, "Replays with something changed"),
    experiments.length ? allExperiments(experiments) : h("p.empty", {}, "There are none. ", h("code", {}, "kantan-agents replay cohort"), " makes one."),
  );
}

function allEvaluations(evaluations) {
  const rows = evaluations.map((one) => [
    one.variants.length > 1 ? h("a", { href: address(["comparisons", "evaluation"], { name: one.name }) }, inline(one.name)) : inline(one.name),
    inline(one.dataset),
    inline(one.variants.join(", ")),
    time(one.created_at),
  ]);
  return table("Evaluations", ["Name", "Dataset", "Variants", "Started"], rows);
}

function allExperiments(experiments) {
  const rows = experiments.map((one) => [
    h("a", { href: address(["comparisons", "experiment"], { name: one.name }) }, inline(one.name)),
    inline(one.agent),
    `${count(one.runs)} of ${count(one.planned)}`,
    counts(one.counts),
    time(one.created_at),
  ]);
  return table("Replays", ["Name", "Agent", "Runs", "What became of them", "Started"], rows);
}

function counts(found) {
  return Object.entries(found).filter(([, number]) => number).map(([status, number]) => `${count(number)} ${status}`).join(", ");
}

async function showEvaluation(root, query, signal) {
  const name = query.get("name") ?? "";
  const data = await get("comparisons/evaluation", { name, a: query.get("a"), b: query.get("b") }, signal);
  const [a, b] = data.chosen;
  const metric = data.metrics.find((one) => one.metric === query.get("metric")) ?? data.metrics[0];
  const link = (values) => address(["comparisons", "evaluation"], { name, a, b, ...values });
  fill(
    root,
    h("h1", {}, inline(data.name)),
    data.variants.length > 2 ? choice(data, link) : null,
    h("p", {}, inline(b), " compared with ", inline(a), `, ${count(data.cases)} cases`, h("span.note", {}, visible(` ${failures(data)}`))),
    h("ul.verdicts", {}, data.metrics.map((one) => h("li", { class: one.verdict.replace(" ", "-") }, h("span", { "aria-hidden": "true" }, `${SIGNS[one.verdict]} `), inline(one.text)))),
    h("p.note", {}, visible(data.note)),
    metrics(data, link),
    data.all.length ? allVariants(data, link) : null,
    metric ? ofMetric(metric, data.chosen) : h("p.empty", {}, "There are no scores to compare."),
  );
}

function failures(data) {
  return Object.entries(data.failed).filter(([, number]) => number).map(([name, number]) => `${number} failed runs of ${name}`).join(", ");
}

function choice(data, link) {
  const select = (field, place) => {
    const changed = (event) => (location.hash = link({ [field]: event.target.value }).slice(1));
    const options = data.variants.map((one) => h("option", { value: one, selected: one === data.chosen[place] }, visible(one)));
    return h("label", {}, place ? "with " : "Compare ", h("select", { onchange: changed }, options));
  };
  return h("p.choice", {}, select("a", 0), select("b", 1));
}

function metrics(data, link) {
  const rows = data.metrics.map((one) => [
    h("a", { href: link({ metric: one.metric }) }, inline(one.metric)),
    short(one.means[0]),
    short(one.means[1]),
    short(one.difference),
    one.low === null ? "-" : `${short(one.low)} to ${short(one.high)}`,
    short(one.p),
    `${count(one.wins)} / ${count(one.ties)} / ${count(one.losses)}`,
  ]);
  return table("Metrics", ["Metric", `Mean of ${data.chosen[0]}`, `Mean of ${data.chosen[1]}`, "Difference", "95 % interval", "p", "Win / tie / loss"], rows);
}

function allVariants(data, link) {
  const rows = data.all.map((one) => [
    h("a", { href: link({ b: one.variant, metric: one.metric }) }, inline(one.variant)),
    inline(one.metric),
    short(one.difference),
    one.low === null ? "" : `${short(one.low)} to ${short(one.high)}`,
    short(one.p),
    h("span", { class: one.verdict.replace(" ", "-") }, `${SIGNS[one.verdict]} ${one.verdict}`),
  ]);
  return table(`All compared with ${data.chosen[0]}`, ["Variant", "Metric", "Difference", "95 % interval", "p", "Verdict"], rows);
}

function ofMetric(metric, names) {
  const changed = metric.cases.filter((one) => one.values[0] !== one.values[1]);
  const rows = changed.slice(0, MOST_ROWS).map((one) => [caseLink(one), short(one.values[0]), short(one.values[1])]);
  return h(
    "section",
    {},
    h("h2", {}, "Cases: ", inline(metric.metric)),
    metric.cases.length ? pairedChart(metric, names) : null,
    metric.left_out ? h("p.note", {}, `${count(metric.left_out)} more cases differ less and are left out.`) : null,
    rows.length ? table("Cases that differ", ["Case", names[0], names[1]], rows) : h("p.empty", {}, "No case differs."),
    changed.length > rows.length ? h("p.note", {}, `${count(changed.length - rows.length)} more cases differ.`) : null,
  );
}

function caseLink(one) {
  const [a, b] = one.traces;
  return a && b ? h("a", { href: address(["diff", a, b]) }, inline(one.id)) : inline(one.id);
}

async function showExperiment(root, query, signal) {
  const data = await get("comparisons/experiment", { name: query.get("name") ?? "" }, signal);
  const wanted = query.get("status");
  const outcomes = data.outcomes.filter((one) => !wanted || one.status === wanted);
  const link = (status) => address(["comparisons", "experiment"], { name: data.name, status });
  fill(
    root,
    h("h1", {}, inline(data.name)),
    h("p", {}, inline(data.agent), `, ${count(data.runs)} of ${count(data.planned)} runs`),
    data.changes.map(longText),
    h(
      "p.choice",
      {},
      h("a", { href: link(null) }, `all ${count(data.runs)}`),
      Object.entries(data.counts).filter(([, number]) => number).map(([status, number]) => [" ", h("a", { href: link(status), "aria-current": status === wanted ? "true" : null }, `${count(number)} ${status}`)]),
    ),
    outcomeTable(outcomes),
  );
}

function outcomeTable(outcomes) {
  const rows = outcomes.slice(0, 10 * MOST_ROWS).map((one) => {
    const [a, b] = one.traces;
    const shown = a && b ? h("a", { href: address(["diff", a, b]) }, one.status) : one.status;
    return [shown, inline(one.why?.text ?? ""), one.tokens.map(count).join(" / "), inline(first(one.outputs[0])), inline(first(one.outputs[1]))];
  });
  return table("Runs", ["Outcome", "Why", "Tokens before / after", "Output before", "Output after"], rows);
}

function first(cut) {
  return (cut?.text ?? "").replace(/\s+/g, " ").slice(0, 120);
}
