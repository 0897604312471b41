// The scores of the versions of a prompt over time: a chart, and the same as a table.

import { h, inline, visible } from "../lib/dom.js";
import { count, time } from "../lib/format.js";
import { table } from "../lib/table.js";

const WIDTH = 900;
const HEIGHT = 220;
const LEFT = 44;
const EDGE = 16;
const SHAPES = 4;

/** Return the chart and the table; a text if there are no scores. */
export function scoresOverTime(data, label) {
  if (!data.versions.length) return h("p.empty", {}, "No judge has scored its answers.");
  const periods = data.versions.flatMap((one) => one.periods.map((period) => ({ version: label(one.version), ...period })));
  const rows = periods.map((one) => [
    time(one.start),
    inline(one.version),
    count(one.scores),
    one.mean.toFixed(2),
    one.low === null ? "too few scores" : `${one.low.toFixed(2)} to ${one.high.toFixed(2)}`,
  ]);
  return [
    chart(data, label),
    h("p.choice", {}, data.versions.map((one, place) => h("span", { class: `series s${place % SHAPES}` }, "● ", inline(label(one.version))))),
    h("details", {}, h("summary", {}, "The same as a table"), table("Scores over time", ["From", "Version", "Scores", "Mean", "95 % interval"], rows)),
  ];
}

function chart(data, label) {
  const starts = data.versions.flatMap((one) => one.periods.map((period) => Date.parse(period.start)));
  const values = data.versions.flatMap((one) => one.periods.flatMap((period) => [period.low ?? period.mean, period.high ?? period.mean]));
  const [first, last] = [Math.min(...starts), Math.max(...starts)];
  const [low, high] = [Math.min(0, ...values), Math.max(1, ...values)];
  const x = (at) => (last > first ? LEFT + EDGE + ((at - first) / (last - first)) * (WIDTH - LEFT - 3 * EDGE) : WIDTH / 2);
  const y = (value) => HEIGHT - EDGE - ((value - low) / (high - low)) * (HEIGHT - 2 * EDGE);
  return h(
    "svg.paired",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Mean score of each version over time, with 95 % intervals" },
    [low, (low + high) / 2, high].map((tick) => [
      h("line.grid", { x1: LEFT, x2: WIDTH - EDGE, y1: y(tick), y2: y(tick) }),
      h("text.tick", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, String(Number(tick.toFixed(2)))),
    ]),
    data.versions.map((one, place) => series(one, place, x, y, label)),
  );
}

/** Versions are beside each other where they have scores at the same time. */
function series(one, place, x, y, label) {
  const shift = (place % SHAPES) * 5;
  const at = (period) => x(Date.parse(period.start)) + shift;
  return h(
    "g",
    { class: `series s${place % SHAPES}` },
    h("polyline", { points: one.periods.map((period) => `${at(period)},${y(period.mean)}`).join(" ") }),
    one.periods.map((period) =>
      h(
        "g",
        {},
        h("title", {}, visible(`${label(one.version)}: ${period.mean.toFixed(2)}, ${period.scores} scores`)),
        period.low === null ? null : h("line", { x1: at(period), x2: at(period), y1: y(period.low), y2: y(period.high) }),
        h("circle", { cx: at(period), cy: y(period.mean), r: 4 }),
      ),
    ),
  );
}
