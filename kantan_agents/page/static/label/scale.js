// The answers of a scale, each with the key that gives it.

const MOST = 10; // more answers than keys: a field takes the number

/**
 * Return the answers, or null for a scale with more of them than keys.
 *
 * @param {string} scale "yesno", "0-1", or grades such as "1-5".
 * @returns {Array<{value: number, text: string, keys: string[]}>|null}
 */
export function answers(scale) {
  if (scale === "yesno") {
    return [
      { value: 1, text: "Yes", keys: ["y", "1"] },
      { value: 0, text: "No", keys: ["n", "0"] },
    ];
  }
  const [low, high] = bounds(scale);
  if (low === 0 && high === 1) return parts();
  if (high - low >= MOST || high > MOST) return null;
  return Array.from({ length: high - low + 1 }, (_, place) => grade(low + place));
}

/** Return the lowest and the highest answer. */
export function bounds(scale) {
  return scale.split("-").map(Number);
}

function parts() {
  const tenths = Array.from({ length: MOST + 1 }, (_, place) => place / MOST);
  return tenths.map((value, place) => ({ value, text: String(value), keys: tenthKeys(place) }));
}

function tenthKeys(place) {
  if (place === 0) return ["n", "0"];
  return place === MOST ? ["y"] : [String(place)];
}

function grade(value) {
  return { value, text: String(value), keys: [value === MOST ? "0" : String(value)] };
}
