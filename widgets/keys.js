// Keys of the whole explorer; those of one view are in the view.
//
// Each output of a notebook has a copy of this module, so which explorer was used last is known to
// the page: keys that are pressed nowhere in particular go to that one alone.

import { togglePresenter } from "./present.js";

const USED_LAST = Symbol.for("inductor_lab.used last");
const SPARED = "data-lm-suppress-shortcuts";
const MOVES = ["Enter", " ", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight",
  "Home", "End", "PageUp", "PageDown", "n", "p"];

/** Listen while the page's focus is in the explorer, or nowhere in particular. */
export function keyboard(explorer) {
  const { root } = explorer;
  const used = () => { globalThis[USED_LAST] = new WeakRef(root); };
  root.addEventListener("pointerdown", used);
  root.addEventListener("focusin", used);
  root.addEventListener("keydown", (event) => pressed(explorer, event));
  keysOfThePage(new WeakRef(explorer));
}

/** In a function of its own: closures of one function keep alive whatever any of them uses. */
function keysOfThePage(held) {
  document.addEventListener("keydown", function elsewhere(event) {
    const alive = held.deref();
    if (!alive) document.removeEventListener("keydown", elsewhere);
    else if (event.target === document.body && isMeant(alive.root)) pressed(alive, event);
  });
}

/** Of several explorers, the one that was used last; one that is alone needs no use. */
function isMeant(root) {
  const last = globalThis[USED_LAST]?.deref();
  if (!root.isConnected) return false;
  if (last?.isConnected) return last === root;
  return document.querySelectorAll(".lab-explorer").length === 1;
}

function pressed(explorer, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    escape(explorer);
    return;
  }
  if (isField(event.target)) return;
  const action = ACTIONS[event.key];
  if (action) {
    action(explorer);
    event.preventDefault();
    event.stopPropagation();
  }
}

/**
 * JupyterLab has keys of its own (`d d` deletes a cell), and spares elements with a mark.  They have
 * it while one of ours is pressed and no longer: Ctrl+S saves the notebook from anywhere.
 */
export function keepKeys(root) {
  const held = new WeakRef(root);
  window.addEventListener("keydown", function before(event) {
    const alive = held.deref();
    if (!alive) window.removeEventListener("keydown", before, true);
    else if (alive.contains(event.target)) alive.toggleAttribute(SPARED, isOurs(event));
  }, true);
}

function isOurs(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (isField(event.target)) return true;
  if (event.shiftKey && event.key === "Enter") return false;
  return event.key in ACTIONS || MOVES.includes(event.key);
}

const isField = (element) => ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName);

const ACTIONS = {
  "[": (explorer) => step(explorer, -1),
  "]": (explorer) => step(explorer, 1),
  "/": (explorer) => explorer.search.focus(),
  "?": (explorer) => explorer.help(),
  P: (explorer) => togglePresenter(explorer.root),
  d: (explorer) => showDiff(explorer),
  f: (explorer) => explorer.focused.view.fit?.(),
  "+": (explorer) => explorer.focused.view.zoom?.(1.25),
  "=": (explorer) => explorer.focused.view.zoom?.(1.25),
  "-": (explorer) => explorer.focused.view.zoom?.(0.8),
};

function escape(explorer) {
  explorer.root.querySelector(".lab-help")?.remove();
  if (explorer.search.value) {
    explorer.search.value = "";
    explorer.find("");
  }
  explorer.search.blur();
  explorer.selection.clear();
}

function step(explorer, by) {
  const { order, focused } = explorer;
  const next = (order.indexOf(focused.id) + by + order.length) % order.length;
  explorer.fill(focused, order[next]);
  focused.view.element.focus({ preventScroll: true });
}

function showDiff(explorer) {
  const { id } = explorer.focused;
  const index = explorer.doc.panes[id].views.findIndex((view) => view.name.includes("diff"));
  if (index >= 0) explorer.show(id, false, index);
}
