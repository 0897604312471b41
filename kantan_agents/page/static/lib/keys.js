// Keys of the page: they do nothing while a text is being typed, and nothing together with Ctrl, Alt or Meta.

const FIELDS = new Set(["INPUT", "TEXTAREA", "SELECT"]);
const BOXES = new Set(["checkbox", "radio"]); // nothing is typed into them

/**
 * Listen for keys until the signal aborts.
 *
 * @param {Object<string, function(KeyboardEvent)>} actions What each key does, by its `event.key`.
 * @param {AbortSignal} signal Ends it.
 */
export function listen(actions, signal) {
  document.addEventListener(
    "keydown",
    (event) => {
      const typing = isField(event.target) || event.target.isContentEditable;
      if (event.ctrlKey || event.altKey || event.metaKey || (typing && event.key !== "Escape")) return;
      if (event.shiftKey && event.key.startsWith("Arrow")) return; // it selects a text
      const action = actions[event.key];
      if (action) {
        event.preventDefault();
        action(event);
      }
    },
    { signal },
  );
}

function isField(target) {
  return FIELDS.has(target.tagName) && !BOXES.has(target.type);
}
