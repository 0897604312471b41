// A line of the timeline as JSON, with everything that is stored of it.

import { fill, h, inline } from "../lib/dom.js";
import { longText } from "./text.js";

const MOST = 200_000;
const WITHOUT_SPAN = /^(call|tool)-\d+$/;

/**
 * Return a closed section that shows a line as JSON once it is opened.
 *
 * `load(line)` returns the whole span. Without it, as in a report file, and for calls without a span, what the
 * page has is shown.
 */
export function asJson(data, line, load, whole) {
  const place = h("div", {});
  const opened = async (event) => {
    if (!event.target.open || place.firstChild) return;
    try {
      const isSpan = load && !WITHOUT_SPAN.test(line.id);
      const text = JSON.stringify(isSpan ? await load(line) : known(data, line), null, 2);
      const shown = text.slice(0, MOST);
      const length = [...shown].length + text.length - shown.length;
      fill(place, longText({ text: shown, length }, isSpan ? whole(line) : null));
    } catch (error) {
      fill(place, h("p.problem", {}, inline(error.message)));
    }
  };
  return h("details", { ontoggle: opened }, h("summary", {}, "As JSON"), place);
}

/** Return what the page has of a line, with messages, instructions and tools in place of their numbers. */
function known(data, line) {
  const { messages, instructions, tools } = data.contents;
  const call = line.call === null ? null : data.calls[line.call];
  const resolved = call && {
    ...call,
    instructions: call.instructions === null ? null : instructions[call.instructions],
    input: call.input.map((number) => messages[number]),
    output: call.output.map((number) => messages[number]),
    tools: call.tools.map((number) => tools[number]),
    handoffs: call.handoffs.map((number) => tools[number]),
  };
  return { ...line, call: resolved, tool: line.tool === null ? null : data.tools[line.tool] };
}
