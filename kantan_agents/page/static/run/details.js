// What is known of one line of the timeline: of a model call, of a tool call, or of another span.

import { h, inline } from "../lib/dom.js";
import { count, duration, money } from "../lib/format.js";
import { facts, folded, longText, section } from "./text.js";

const ROLES = { call: "calls", result: "result", other: "item" };

/** Return the details of a line; `whole(line, part)` returns the address of a whole text, or null. */
export function details(data, line, whole) {
  const call = line.call === null ? null : data.calls[line.call];
  const tool = line.tool === null ? null : data.tools[line.tool];
  const parts = call ? ofModelCall(data, call) : tool ? ofToolCall(tool) : ofSpan(line, whole);
  return [
    h("h2", {}, inline(line.name)),
    line.error ? h("p.problem", {}, inline(line.error)) : null,
    parts,
    ofRubric(line.rubric),
    folded("As recorded by the SDK", recorded(line, call || tool, whole)),
  ];
}

function ofModelCall(data, call) {
  const { messages, instructions, tools } = data.contents;
  const offered = [...call.tools, ...call.handoffs].map((number) => tools[number]);
  return [
    facts([
      ["agent", call.agent],
      ["model", [call.provider, call.model].filter(Boolean).join("/")],
      ["API", call.api],
      ["address", call.url],
      ["took", duration(call.seconds)],
      ["tokens", tokens(call.usage)],
      ["cost", money(call.cost)],
      ["notes", notes(call)],
    ]),
    call.error ? h("p.problem", {}, h("strong", {}, inline(call.error.type)), " ", inline(call.error.message.text)) : null,
    section("Instructions", call.instructions === null ? null : longText(instructions[call.instructions])),
    section("Conversation", conversation(call.input.map((number) => messages[number]))),
    section("Answer", conversation(call.output.map((number) => messages[number]))),
    folded(`${count(offered.length)} ${offered.length === 1 ? "tool" : "tools"} offered`, offered.length ? offered.map(toolDefinition) : null),
    folded("Settings", settings(call)),
  ];
}

function notes(call) {
  return [
    call.is_streamed ? "streamed" : null,
    call.is_internal ? "made by a middleware" : null,
    call.broke_off ? "broke off" : null,
    call.cut_off ? `cut off at the ${call.cut_off === "length" ? "limit of its tokens" : "content filter"}` : null,
    call.from_cache ? "from the cache" : null,
    call.is_superseded ? "another request was faster" : null,
  ].filter(Boolean).join(", ");
}

function tokens(usage) {
  if (!usage || usage.total_tokens === undefined) return "";
  const cached = usage.cached_tokens ? `, ${count(usage.cached_tokens)} cached` : "";
  return `${count(usage.total_tokens)} (${count(usage.input_tokens)} in${cached}, ${count(usage.output_tokens)} out)`;
}

function settings(call) {
  const entries = Object.entries(call.settings);
  const asked = call.asked_for;
  if (!entries.length && !asked) return null;
  return [
    facts(entries.map(([name, value]) => [name, longText(value)])),
    asked ? section(`Structured output: ${asked.name}, ${asked.mode}`, longText(asked.schema)) : null,
  ];
}

/** Return messages as a conversation: who says what, calls and results. */
export function conversation(messages) {
  if (!messages.length) return null;
  return h(
    "ol.messages",
    {},
    messages.map((message) =>
      h(
        "li",
        { class: `message ${["user", "assistant", "system", "call", "result"].includes(message.role) ? message.role : "other"}` },
        h("span.role", {}, inline(ROLES[message.role] ?? message.role), message.name ? [" ", h("code", {}, inline(message.name))] : null),
        longText(message.text),
      ),
    ),
  );
}

function toolDefinition(tool) {
  const origin = tool.server ? ` (${tool.name_on_server} of MCP server ${tool.server})` : "";
  return h(
    "div.card.offered",
    {},
    h("p", {}, h("code", {}, inline(tool.name)), inline(origin), tool.kind === "function" ? null : h("span.note", {}, " ", inline(tool.kind))),
    tool.description?.text ? longText(tool.description) : null,
    folded("Parameters", longText(tool.parameters)),
  );
}

function ofToolCall(tool) {
  return [
    facts([
      ["agent", tool.agent],
      ["MCP server", tool.server],
      ["its name there", tool.server ? tool.name_on_server : null],
      ["took", duration(tool.seconds)],
    ]),
    decided(tool.decision),
    section("Arguments", longText(tool.arguments)),
    tool.error ? section("Error", failure(tool.error)) : null,
    tool.failure ? section("Error of the tool", failure(tool.failure)) : null,
    section("Result", longText(tool.output)),
    section("Result before a middleware changed it", longText(tool.result)),
  ];
}

function failure(error) {
  return h("p.problem", {}, h("strong", {}, inline(error.type)), " ", inline(error.message.text));
}

function decided(decision) {
  if (!decision) return h("p.note", {}, "The tool rules were not asked.");
  const verdict = decision.is_allowed ? "allowed" : `denied ${decision.code ?? ""}`.trim();
  const rule = decision.rule ? [" by ", h("code", {}, inline(decision.rule))] : ": no rule is about this tool";
  const layers = decision.layers.length ? inline(` in ${decision.layers.join(" and ")}`) : null;
  return h("p.decision", { class: `decision ${decision.is_allowed ? "ok" : "denied"}` }, h("strong", {}, verdict), rule, layers);
}

function ofSpan(line, whole) {
  const isText = line.input || line.output;
  return [
    facts([["took", duration(line.seconds)], ["tokens", tokens(line.usage)]]),
    section("Input", longText(line.input, whole(line, "input"))),
    line.answer
      ? section("Answer", conversation(line.answer))
      : section("Output", longText(line.output, whole(line, "output"))),
    isText ? null : section("Data", longText(line.data)),
  ];
}

function recorded(line, call, whole) {
  if (!call && !line.answer) return null;
  const parts = [
    section("Input", longText(line.input, whole(line, "input"))),
    section("Output", longText(line.output, whole(line, "output"))),
  ].filter(Boolean);
  return parts.length ? parts : null;
}

function ofRubric(rubric) {
  if (!rubric) return null;
  const comments = Array.isArray(rubric.comments) ? rubric.comments : [rubric.comment].filter(Boolean);
  return section(
    "Verdict",
    h("p", {}, "score ", h("strong", {}, inline(rubric.score))),
    comments.length ? h("ul", {}, comments.map((comment) => h("li", {}, inline(comment)))) : null,
  );
}
