// The buttons of the queue: answers, skip, undo, a comment, and what follows an answer.

import { fill, h } from "../lib/dom.js";
import { goOnAtOnce, goesOnAtOnce } from "./remembered.js";
import { answers, bounds } from "./scale.js";

/**
 * Return the controls of a queue.
 *
 * @param {string} scale What may be answered.
 * @param {{answer: function(number), skip: function(), undo: function(), goOn: function()}} queue What they do.
 */
export function controls(scale, queue) {
  const choices = answers(scale);
  const comment = h("input", { name: "comment", autocomplete: "off", maxlength: "4000", onkeydown: leave });
  const given = choices ? choices.map((one) => answerButton(one, queue)) : [numberField(scale, queue)];
  const skip = button("Skip", "s", () => queue.skip());
  const undo = button("Undo", "u", () => queue.undo());
  const next = button("Next", "Enter", () => queue.goOn());
  const group = h("div.label-answers", { role: "group", "aria-label": "Your answer" }, given);
  const options = h("div.label-more", {}, h("label", {}, h("span", {}, "Comment "), h("kbd", {}, "c"), comment), atOnce());
  const more = h("div.label-more", {}, next, skip, undo, options);
  const root = h("div.label-controls", {}, group, more);
  const asking = (isAsking) => {
    group.hidden = !isAsking;
    skip.hidden = !isAsking;
    comment.disabled = !isAsking;
    next.hidden = isAsking;
  };
  return {
    root,
    keys: (choices ?? []).flatMap((one) => one.keys.map((key) => [key, one.value])),
    comment: () => comment.value.trim(),
    focusComment: () => comment.focus(),
    show(item, canUndo) {
      comment.value = "";
      asking(item !== null);
      group.hidden = item === null || Boolean(item.problem);
      options.hidden = item === null;
      next.hidden = true;
      undo.disabled = !canUndo;
    },
    showNext() {
      asking(false);
      undo.disabled = false;
      next.focus();
    },
  };
}

// Enter ends the comment, so that the keys of the answers work again.
function leave(event) {
  if (event.key === "Enter") event.target.blur();
}

function answerButton(one, queue) {
  return button(one.text, one.keys[0], () => queue.answer(one.value));
}

function button(text, key, action) {
  return h("button", { type: "button", onclick: action }, `${text} `, h("kbd", {}, key));
}

function numberField(scale, queue) {
  const [low, high] = bounds(scale);
  const field = h("input", { name: "value", type: "number", min: low, max: high, step: "any", required: true });
  const submit = (event) => {
    event.preventDefault();
    if (field.value === "") return;
    queue.answer(Number(field.value));
    field.value = "";
  };
  return h("form", { onsubmit: submit }, h("label", {}, h("span", {}, `${low} to ${high} `), field), h("button", { type: "submit" }, "Answer"));
}

function atOnce() {
  const box = h("input", { type: "checkbox", checked: goesOnAtOnce(), onchange: () => goOnAtOnce(box.checked) });
  return h("label", {}, box, h("span", {}, " go on at once"));
}
