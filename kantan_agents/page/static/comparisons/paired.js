// A chart of the cases of a metric: for each a line from the value of the one variant to that of the other.

import { h, visible } from "../lib/dom.js";
import { address } from "../lib/route.js";

const WIDTH = 900;
const HEIGHT = 240;
const LEFT = 48;
const EDGE = 14;
const MOST = 200;

/** Return the chart; a click on a case opens its two runs side by side. The table below it is for keyboards. */
export function pairedChart(metric, names) {
  const shown = mostChanged(metric.cases);
  const values = shown.flatMap((one) => one.values);
  const [low, high] = bounds(values);
  const y = (value) => HEIGHT - EDGE - ((value - low) / (high - low)) * (HEIGHT - 2 * EDGE);
  const step = (WIDTH - LEFT - EDGE) / shown.length;
  const x = (place) => LEFT + step * (place + 0.5);
  const radius = Math.max(1.5, Math.min(5, step / 3));
  const label = `${metric.metric} of ${shown.length} cases: ${names[0]} as rings, ${names[1]} as dots`;
  return h(
    "svg.paired",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": visible(label) },
    [low, (low + high) / 2, high].map((tick) => [
      h("line.grid", { x1: LEFT, x2: WIDTH - EDGE, y1: y(tick), y2: y(tick) }),
      h("text.tick", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, short(tick)),
    ]),
    shown.map((one, place) => pair(one, metric.better, x(place), one.values.map(y), radius, step)),
  );
}

function pair(one, better, x, [from, to], radius, step) {
  const gain = (one.values[1] - one.values[0]) * (better === "lower" ? -1 : 1);
  const state = gain > 0 ? "win" : gain < 0 ? "loss" : "tie";
  const [a, b] = one.traces;
  const opened = a && b ? () => (location.hash = address(["diff", a, b]).slice(1)) : null;
  return h(
    "g",
    { class: `pair ${state}${opened ? " opens" : ""}`, ...(opened ? { onclick: opened } : {}) },
    h("title", {}, visible(`${one.id}: ${short(one.values[0])} to ${short(one.values[1])}`)),
    h("rect.area", { x: x - step / 2, y: 0, width: step, height: HEIGHT }),
    h("line", { x1: x, x2: x, y1: from, y2: to }),
    h("circle.from", { cx: x, cy: from, r: radius }),
    h("circle.to", { cx: x, cy: to, r: radius }),
  );
}

/** The cases with the largest differences, in the order of their differences. */
function mostChanged(cases) {
  if (cases.length <= MOST) return cases;
  return [...cases.slice(0, MOST / 2), ...cases.slice(-MOST / 2)];
}

function bounds(values) {
  const low = Math.min(...values, 0);
  const high = Math.max(...values);
  return high > low ? [low, high] : [low, low + 1];
}

/** Return a number with as many digits as its size needs. */
export function short(value) {
  if (value === null || value === undefined) return "";
  return String(Number(value.toPrecision(3)));
}
