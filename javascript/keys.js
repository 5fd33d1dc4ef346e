// Keyboard shortcuts of the whole explorer; those of one view are in the module of the view.
//
// Each output of a notebook has its own copy of this module, so the last used explorer is stored in the
// page.  Keys pressed while nothing has the focus go to that explorer only.

import { targetOf } from "./dom.js";
import { toggleFullScreen, togglePresenter } from "./present.js";

/** @import { Explorer } from "./types.d.ts" */

/** @type {Record<symbol, WeakRef<HTMLElement> | undefined>} */
const page = globalThis;
const USED_LAST = Symbol.for("inductor_lab.used last");
const NO_SHORTCUTS = "data-lm-suppress-shortcuts";
const MOVES = ["Enter", " ", "Escape", "ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight",
  "Home", "End", "PageUp", "PageDown", "n", "p"];

/**
 * Listen to keys while the focus is in the explorer, or on no element.
 *
 * @param {Explorer} explorer
 */
export function keyboard(explorer) {
  const { root } = explorer;
  const used = () => { page[USED_LAST] = new WeakRef(root); };
  root.addEventListener("pointerdown", used);
  root.addEventListener("focusin", used);
  root.addEventListener("keydown", (event) => pressed(explorer, event));
  listenToPage(new WeakRef(explorer));
}

/**
 * A separate function, since closures of one function keep all captured variables alive.
 *
 * @param {WeakRef<Explorer>} held
 */
function listenToPage(held) {
  document.addEventListener("keydown", function elsewhere(event) {
    const alive = held.deref();
    if (!alive) document.removeEventListener("keydown", elsewhere);
    else if (event.target === document.body && isMeant(alive.root)) pressed(alive, event);
  });
}

/**
 * Whether a key is meant for this explorer: the last used one, or the only one.
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
 * JupyterLab has its own shortcuts (`d d` deletes a cell), but ignores keys in elements with a special
 * attribute.  The element with the focus has it only while a key of the explorer is pressed, so that
 * Ctrl+S still saves the notebook.  (On an element around it, the attribute would come too late:
 * most shortcuts of JupyterLab are for `:focus`.)
 *
 * @param {HTMLElement} root
 */
export function keepKeys(root) {
  const held = new WeakRef(root);
  window.addEventListener("keydown", function mark(event) {
    const alive = held.deref(), focused = targetOf(event);
    if (!alive) window.removeEventListener("keydown", mark, true);
    else if (alive.contains(focused)) focused.toggleAttribute(NO_SHORTCUTS, isShortcut(event));
  }, true);
}

/** @param {KeyboardEvent} event */
function isShortcut(event) {
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
  const { field } = explorer.search;
  explorer.search.clear();
  explorer.selection.clear();
  if (field === document.activeElement) explorer.enter(explorer.focused);
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
