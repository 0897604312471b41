// The labelling queue: "#/label" chooses what to label, "#/label/EVALUATION/METRIC?scale=yesno" asks about it.

import { choose } from "../label/choose.js";
import { ask } from "../label/queue.js";
import { rememberedName } from "../label/remembered.js";

export function title(parts) {
  return parts.length === 2 ? `Label ${parts[0]}` : "Label";
}

export async function show(root, parts, query, signal) {
  const name = rememberedName();
  if (parts.length === 2 && name) await ask(root, wanted(parts, query, name), signal);
  else await choose(root, parts, query, signal);
}

function wanted([evaluation, metric], query, by) {
  const asked = { evaluation, metric, by, scale: query.get("scale") ?? "yesno", seed: Number(query.get("seed") ?? 0) };
  return query.has("sample") ? { ...asked, sample: Number(query.get("sample")) } : asked;
}
