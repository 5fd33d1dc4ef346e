// The traits `selected` and `view` of the explorer's widget: programs read and set them
// (see widgets/places.py, which refuses wrong values).

/** @import { Block, Explorer, Model, Selected, TextView, View } from "./types.d.ts" */

/**
 * Keep the traits of a model and the explorer equal: what a user clicks sets them, and what a program
 * sets is shown.  Returns a function that ends this.
 *
 * @param {Model} model
 * @param {Explorer} explorer
 */
export function shareTraits(model, explorer) {
  const { selection } = explorer;
  let { pinned } = selection;
  /** @type {Selected} */
  let shown = {};
  let isShowing = false;

  /** @type {(name: "selected" | "view", value: Selected | string) => void} */
  const set = (name, value) => {
    if (isEqual(model.get(name), value)) return;
    model.set(name, value);
    model.save_changes();
  };
  const showView = () => {
    const id = model.get("view");
    if (id === explorer.focused.id) return;
    if (explorer.order.includes(id)) explorer.show(id, true);
    else set("view", explorer.focused.id);
  };
  const showSelected = () => {
    const wanted = model.get("selected");
    if (isShowing || isEqual(wanted, shown)) return;
    isShowing = true;
    const isKnown = select(explorer, wanted);
    isShowing = false;
    if (isKnown) shown = wanted;
    else set("selected", shown);
  };
  explorer.moved = () => set("view", explorer.focused.id);
  const stop = selection.listen(() => {
    if (selection.pinned === pinned) return;
    pinned = selection.pinned;
    if (isShowing) return;
    shown = selectedIn(explorer);
    set("selected", shown);
  });
  model.on("change:view", showView);
  model.on("change:selected", showSelected);
  showView();
  showSelected();
  return () => {
    stop();
    explorer.moved = () => {};
    model.off("change:view", showView);
    model.off("change:selected", showSelected);
  };
}

/** @type {(a: unknown, b: unknown) => boolean} */
const isEqual = (a, b) => flat(a) === flat(b);

/** @param {unknown} value */
function flat(value) {
  const names = value !== null && typeof value === "object" ? Object.keys(value).sort() : null;
  return JSON.stringify(value, names);
}

/**
 * What is selected, by the names that the explorer shows; `{}` for nothing.
 *
 * @param {Pick<Explorer, "selection" | "focused" | "doc" | "links" | "chosenOf">} explorer
 * @returns {Selected}
 */
export function selectedIn(explorer) {
  const { selection, focused, doc, links } = explorer;
  if (!selection.pinned.length) return {};
  const stage = focused.id;
  const { views } = doc.panes[stage];
  const text = textOf(views);
  const isText = text !== undefined && views[explorer.chosenOf(stage)] === text;
  const node = selection.pinned.find((thing) => links.kind[thing] !== "source");
  return {
    stage,
    ...(isText && selection.line !== null ? lineAt(text, stage, selection.line) : {}),
    ...(node === undefined ? {} : { node: links.label[node] }),
  };
}

/**
 * Show what a program has selected; returns false if the explorer does not have it.
 *
 * @param {Explorer} explorer
 * @param {Selected} wanted
 */
function select(explorer, wanted) {
  const { selection, doc, order, links } = explorer;
  const { stage, kernel, line, node } = wanted;
  if (!stage) {
    selection.clear();
    return true;
  }
  if (!order.includes(stage)) return false;
  const { views } = doc.panes[stage];
  const text = textOf(views);
  if (text && (kernel || line)) {
    const at = placeOf(text, wanted);
    if (at < 0) return false;
    const { view } = explorer.show(stage, true, views.indexOf(text));
    view.goTo?.(at + 1);
    if (!line) selection.hold(thingsOf(text, wanted), at);
    return true;
  }
  const thing = links.named(node, stage);
  if (kernel || line || (node && thing === undefined)) return false;
  explorer.show(stage, true);
  selection.hold(thing === undefined ? [] : [thing]);
  return true;
}

/** @param {View[]} views */
const textOf = (views) => views.find((view) => view.kind === "text");

/**
 * The kernel of a block of code; "" for other text.
 *
 * @param {Block} block
 * @param {string} stage
 */
function kernelOf(block, stage) {
  return stage.endsWith(".code") ? block.title.split(" ")[0] : "";
}

/**
 * The kernel and the number of a line, as they are shown; the place is counted from 0.
 *
 * @param {TextView} text
 * @param {string} stage
 * @param {number} place
 */
function lineAt(text, stage, place) {
  let before = 0;
  for (const block of text.blocks) {
    if (place < before + block.lines.length) {
      const kernel = kernelOf(block, stage);
      return { ...(kernel ? { kernel } : {}), line: (block.first || 1) + place - before };
    }
    before += block.lines.length;
  }
  return {};
}

/**
 * The place of a line, or of the first line of a kernel, counted from 0; -1 if there is none.
 *
 * @param {TextView} text
 * @param {Selected} wanted
 */
function placeOf(text, { stage = "", kernel, line }) {
  let before = 0;
  for (const block of text.blocks) {
    const within = line ? line - (block.first || 1) : 0;
    const isHere = !kernel || kernelOf(block, stage) === kernel;
    if (isHere && within >= 0 && within < block.lines.length) return before + within;
    before += block.lines.length;
  }
  return -1;
}

/**
 * All things of a kernel.
 *
 * @param {TextView} text
 * @param {Selected} wanted
 */
function thingsOf(text, { stage = "", kernel }) {
  const block = text.blocks.find((each) => kernelOf(each, stage) === kernel);
  return [...new Set(block?.lines.flatMap((line) => line[1] || []))];
}
