// The facts about a whole run, above its timeline.

import { h, inline } from "../lib/dom.js";
import { count, duration, money, time } from "../lib/format.js";
import { facts, folded, longText, part, section } from "./text.js";

/** Return the facts about a run. */
export function overview(data) {
  return [
    h(
      "p.summary",
      {},
      h("span", { class: data.status }, data.status),
      " ",
      inline([data.prompt, data.version].filter(Boolean).join(" ")),
      " ",
      time(data.started_at),
      " ",
      h("span", {}, duration(data.seconds)),
      h("span", {}, data.tokens ? `${count(data.tokens)} tokens` : ""),
      typeof data.cost === "number" ? h("span", {}, `cost ${money(data.cost)}`) : null,
      data.cut_answers ? h("span.mark.cut", {}, "cut off") : null,
      typeof data.score === "number" ? h("span.mark", {}, `score ${data.score}`) : null,
    ),
    data.error ? h("p.problem", {}, inline(data.error.text)) : null,
    data.missing.length
      ? h("p.note", {}, "Not recorded completely: ", inline(data.missing.join("; ")), ".")
      : null,
    h("div.ends", {}, part("Input", longText(data.input)), part("Output", longText(data.output))),
    part("Scores", scores(data.scores)),
    folded("Prompt, rules and metadata", [...data.runs.map(ofRun), section("Metadata", metadata(data))].filter(Boolean)),
  ];
}

function scores(given) {
  if (!given.length) return null;
  const shown = given.map((score) => [
    `${score.metric} (${score.by}, ${score.evaluation})`,
    [score.value, score.label?.text, score.comment?.text, score.error && `failed: ${score.error.text}`]
      .filter((one) => one !== null && one !== undefined && one !== "")
      .join(", "),
  ]);
  return facts(shown);
}

function metadata(data) {
  return facts([
    ["trace", data.id],
    ["workflow", data.workflow],
    ["group", data.group],
    ...Object.entries(data.metadata).map(([name, value]) => [name, longText(value)]),
  ]);
}

function ofRun(run) {
  return h(
    "div.card",
    {},
    h("h3", {}, inline(run.agent), " ", h("span.note", {}, run.outcome, " ", duration(run.seconds))),
    run.agents.map((agent) => [
      agent.prompt
        ? section(`Prompt ${[agent.prompt.name, agent.prompt.version].filter(Boolean).join(" ")}`, longText(agent.prompt.text))
        : null,
      Object.keys(agent.context).length
        ? section("Values from the context", facts(Object.entries(agent.context).map(([path, value]) => [path, longText(value)])))
        : null,
    ]),
    section("Tool rules", rules(run.rules)),
    section("Limits of the tool rules", rules(run.limits)),
  );
}

function rules(layers) {
  return layers.length ? facts(layers.map((layer) => [layer.name, longText(layer.rules)])) : null;
}
