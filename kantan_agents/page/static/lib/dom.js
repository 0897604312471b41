// Makes elements. Every text becomes a text node: nothing here or elsewhere in the page parses markup.

import { INVISIBLE } from "./invisible.js";

const SVG = "http://www.w3.org/2000/svg";
const SVG_TAGS = new Set(["svg", "g", "rect", "line", "path", "circle", "text", "title", "polyline"]);

/**
 * Make an element.
 *
 * @param {string} tag Its name, optionally with classes: "div.card.wide".
 * @param {Object} options Attributes; functions whose names begin with "on" are listeners, and an attribute
 *   of undefined, null or false is left out.
 * @param {...(Node|string|number|null|undefined|Array)} children Elements and texts.
 */
export function h(tag, options = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const made = SVG_TAGS.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  if (classes.length) made.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : String(value));
  }
  add(made, children);
  return made;
}

/** Append elements and texts. */
export function add(parent, children) {
  for (const child of children) {
    if (Array.isArray(child)) add(parent, child);
    else if (child !== null && child !== undefined) parent.append(child instanceof Node ? child : String(child));
  }
}

/** Replace the content of an element. */
export function fill(parent, ...children) {
  parent.replaceChildren();
  add(parent, children);
}

/** Return a text from outside with its invisible characters as "[U+202E]". */
export function visible(text) {
  return String(text)
    .replaceAll("\r\n", "\n")
    .replace(INVISIBLE, (mark) => `[U+${mark.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}

/** Return a short text from outside as an element whose direction does not reach its neighbours. */
export function inline(text) {
  return h("bdi", {}, visible(text));
}

/** Return a long text from outside as a block that keeps its lines. */
export function block(text) {
  return h("pre", { dir: "auto", tabindex: "0" }, visible(text));
}
