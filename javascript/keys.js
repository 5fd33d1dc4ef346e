// Keys of the whole explorer; those of one view are in the view.
//
// Each output of a notebook has a copy of this module, so which explorer was used last is known to
// the page: keys that are pressed nowhere in particular go to that one alone.

import { targetOf } from "./dom.js";
import { toggleFullScreen, togglePresenter } from "./present.js";

/** @import { Explorer } from "./types.d.ts" */

/** @type {Record<symbol, WeakRef<HTMLElement> | undefined>} */
const page = globalThis;
const USED_LAST = Symbol.for("inductor_lab.used last");
const SPARED = "data-lm-suppress-shortcuts";
const MOVES = ["Enter", " ", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight",
  "Home", "End", "PageUp", "PageDown", "n", "p"];

/**
 * Listen while the page's focus is in the explorer, or nowhere in particular.
 *
 * @param {Explorer} explorer
 */
export function keyboard(explorer) {
  const { root } = explorer;
  const used = () => { page[USED_LAST] = new WeakRef(root); };
  root.addEventListener("pointerdown", used);
  root.addEventListener("focusin", used);
  root.addEventListener("keydown", (event) => pressed(explorer, event));
  keysOfThePage(new WeakRef(explorer));
}

/**
 * In a function of its own: closures of one function keep alive whatever any of them uses.
 *
 * @param {WeakRef<Explorer>} held
 */
function keysOfThePage(held) {
  document.addEventListener("keydown", function elsewhere(event) {
    const alive = held.deref();
    if (!alive) document.removeEventListener("keydown", elsewhere);
    else if (event.target === document.body && isMeant(alive.root)) pressed(alive, event);
  });
}

/**
 * Of several explorers, the one that was used last; one that is alone needs no use.
 *
 * @param {HTMLElement} root
 */
function isMeant(root) {
  const last = page[USED_LAST]?.deref();
  if (!root.isConnected) return false;
  if (last?.isConnected) return last === root;
  return document.querySelectorAll(".lab-explorer").length === 1;
}

/**
 * @param {Explorer} explorer
 * @param {KeyboardEvent} event
 */
function pressed(explorer, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    clearAll(explorer);
    return;
  }
  if (isField(targetOf(event))) return;
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
 *
 * @param {HTMLElement} root
 */
export function keepKeys(root) {
  const held = new WeakRef(root);
  window.addEventListener("keydown", function before(event) {
    const alive = held.deref();
    if (!alive) window.removeEventListener("keydown", before, true);
    else if (alive.contains(targetOf(event))) alive.toggleAttribute(SPARED, isOurs(event));
  }, true);
}

/** @param {KeyboardEvent} event */
function isOurs(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  if (isField(targetOf(event))) return true;
  if (event.shiftKey && event.key === "Enter") return false;
  return event.key in ACTIONS || MOVES.includes(event.key);
}

const isField = (/** @type {Element} */ element) => ["INPUT", "SELECT", "TEXTAREA"].includes(element.tagName);

/** @type {Record<string, (explorer: Explorer) => void>} */
const ACTIONS = {
  "[": (explorer) => step(explorer, -1),
  "]": (explorer) => step(explorer, 1),
  "/": (explorer) => explorer.search.field.focus(),
  "?": (explorer) => explorer.help(),
  P: (explorer) => togglePresenter(explorer.root),
  F: (explorer) => toggleFullScreen(explorer.root),
  d: (explorer) => showDiff(explorer),
  f: (explorer) => explorer.focused.view.fit?.(),
  "+": (explorer) => explorer.focused.view.zoom?.(1.25),
  "=": (explorer) => explorer.focused.view.zoom?.(1.25),
  "-": (explorer) => explorer.focused.view.zoom?.(0.8),
};

/** @param {Explorer} explorer */
function clearAll(explorer) {
  if (explorer.closeHelp) explorer.closeHelp();
  explorer.search.clear();
  explorer.selection.clear();
}

/**
 * @param {Explorer} explorer
 * @param {number} by
 */
function step(explorer, by) {
  const { order, focused } = explorer;
  const next = (order.indexOf(focused.id) + by + order.length) % order.length;
  explorer.fill(focused, order[next]);
  explorer.enter(focused);
}

/** @param {Explorer} explorer */
function showDiff(explorer) {
  const { id } = explorer.focused;
  const index = explorer.doc.panes[id].views.findIndex((view) => view.name.includes("diff"));
  if (index >= 0) explorer.show(id, false, index);
}
