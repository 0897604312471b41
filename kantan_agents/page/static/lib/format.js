// Shows times, durations and numbers as the command line does.

import { h, visible } from "./dom.js";

/** Return "850 ms", "3.2 s" or "4 min 10 s". */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** Return a number with separators between thousands. */
export function count(number) {
  return number === null || number === undefined ? "" : number.toLocaleString("en");
}

/** Return an amount in the currency of the prices: "0.00123", never "1.23e-3", and "12,345.67". */
export function money(amount) {
  if (typeof amount !== "number") return "";
  const digits = amount < 1000 ? { maximumSignificantDigits: 4 } : { maximumFractionDigits: 2 };
  return amount.toLocaleString("en", digits);
}

/** Return a time in the local zone, with UTC when the pointer rests on it. */
export function time(text) {
  if (!text) return "";
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return visible(text);
  const today = new Date().toDateString() === at.toDateString();
  const clock = at.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const shown = today ? clock : `${at.toLocaleDateString(undefined, { month: "short", day: "numeric" })}, ${clock}`;
  return h("time", { datetime: text, title: at.toISOString().replace("T", " ").replace("Z", " UTC") }, shown);
}
