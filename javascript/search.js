// The search: matches in open panes are highlighted, closed panes are listed with their matches.

import { html, refill } from "./dom.js";
import { inSteps, PAUSE, Pieces, REST } from "./pieces.js";
import { say } from "./say.js";
import { tableTexts } from "./table.js";
import { atStep, searched } from "./tree.js";

/** @import { Drawn, Explorer, Slot, View } from "./types.d.ts" */

/** Hidden hits of a pane are opened only if it has at most this many hits. */
const FEW = 50;

/**
 * A hit in a view; `place` is its index.
 *
 * @typedef {{slot: Slot, view: Drawn, element: Element, place: number}} Hit
 */

export class Search {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {Hit[]} */
    this.found = [];
    this.wanted = "";
    this.pieces = new Pieces();
    this.at = -1;
    this.field = html("input", {
      type: "search", placeholder: say("search  /"), "aria-label": say("search in all panes"),
    });
    this.field.addEventListener("input", () => this.find(this.field.value));
    this.field.addEventListener("keydown", (event) => (
      event.key === "Enter" && this.next(event.shiftKey ? -1 : 1)));
    this.count = html("span", { class: "lab-found-count", role: "status" });
    this.elsewhere = html("div", {
      class: "lab-elsewhere", hidden: true, role: "group", "aria-label": say("found in closed panes"),
    });
  }

  /** Clear the field and all highlights. */
  clear() {
    if (this.field.value) {
      this.field.value = "";
      this.find("");
    }
  }

  /** @param {string} query */
  find(query) {
    this.pieces.run(this.steps(query.trim().toLowerCase()));
  }

  /**
   * The steps of a search: first open panes, then closed panes; elements that hide a hit are opened
   * when no key has been pressed for a while.  Scrolling to the first hit triggers a page layout, so
   * the typed key is shown before.
   *
   * @param {string} wanted
   */
  *steps(wanted) {
    const old = this.found;
    this.found = [];
    this.wanted = wanted;
    this.count.setAttribute("aria-busy", "true");
    for (const { element } of old) element.classList.remove("at");
    for (const slot of wanted ? this.explorer.slots : []) {
      const { view } = slot;
      this.found.push(...view.find(wanted).map((element, place) => ({ slot, view, element, place })));
      yield;
    }
    this.at = -1;
    this.count.textContent = wanted ? say("{n} found", { n: this.found.length }) : "";
    const still = new Set(this.found.map(({ element }) => element));
    const mark = (/** @type {Element} */ element) => element.classList.add("found");
    if (this.found.length) {
      mark(this.found[0].element);
      yield REST;
      if (this.at < 0) this.next(1);
    }
    const marked = this.explorer.slots.flatMap(({ element }) => [
      ...element.getElementsByClassName("found")]);
    yield* inSteps(marked.filter((element) => !still.has(element)), (element) => {
      element.classList.remove("found");
    });
    yield* inSteps([...still], mark);
    yield* this.closedPanes(wanted);
    yield* this.hidden();
    this.count.removeAttribute("aria-busy");
  }

  /** Open the elements that hide hits, in panes with few hits. */
  *hidden() {
    for (const { view } of this.explorer.slots) {
      const hits = this.found.filter((hit) => hit.view === view);
      if (!view.reveal || !hits.length || hits.length > FEW) continue;
      yield PAUSE;
      this.reveal(view, hits);
    }
  }

  /**
   * Open the elements that hide hits of a view; this may replace the elements of all its hits.
   *
   * @param {Drawn} view
   * @param {Hit[]} hits
   */
  reveal(view, hits) {
    const isChanged = view.reveal?.(hits.map(({ place }) => place));
    if (!isChanged && hits.every(({ element }) => element.isConnected)) return;
    const elements = view.find(this.wanted);
    for (const hit of this.found) if (hit.view === view) hit.element = elements[hit.place];
    if (this.found[this.at]?.view === view) this.goTo(this.found[this.at]);
  }

  /**
   * List the closed panes with matches, as buttons that open them.
   *
   * @param {string} wanted
   */
  *closedPanes(wanted) {
    const { doc, order, slots } = this.explorer;
    const open = new Set(slots.map((slot) => slot.id));
    /** @type {{id: string, view: number, count: number}[]} */
    const places = [];
    for (const id of wanted ? order.filter((each) => !open.has(each)) : []) {
      const counts = doc.panes[id].views.map((view) => occurrences(view, wanted));
      const most = counts.indexOf(Math.max(...counts));
      if (counts[most]) places.push({ id, view: most, count: counts.reduce((x, y) => x + y) });
      yield;
    }
    refill(this.elsewhere, places.map(({ id, view, count }) => html("button", {
      type: "button", onclick: () => {
        this.explorer.show(id, false, view);
        this.find(this.field.value);
      },
    }, `${this.explorer.title(id)}: ${count}`)));
    this.elsewhere.hidden = !places.length;
  }

  /**
   * Go to the next hit, or with -1 to the previous one.
   *
   * @param {number} step
   */
  next(step) {
    if (!this.found.length) return;
    const { slots } = this.explorer;
    const isShown = (/** @type {Hit} */ { slot, view }) => slots.includes(slot) && slot.view === view;
    if (!this.found.every(isShown)) return this.find(this.field.value);
    this.found[this.at]?.element.classList.remove("at");
    const isTyped = this.at < 0;
    this.at = (this.at + step + this.found.length) % this.found.length;
    const hit = this.found[this.at];
    this.explorer.focus(hit.slot);
    this.count.textContent = say("{n} of {all}", { n: this.at + 1, all: this.found.length });
    if (!isTyped) this.reveal(hit.view, [hit]);
    this.goTo(hit);
  }

  /** @param {Hit} hit */
  goTo({ view, element }) {
    element.classList.add("at");
    if (view.showElement) view.showElement(element);
    else element.scrollIntoView({ block: "nearest" });
  }
}

/**
 * The texts of a closed view that are searched.
 *
 * @param {View} view
 * @returns {string[]}
 */
function searchedTexts(view) {
  switch (view.kind) {
    case "text": return view.blocks.flatMap((block) => block.lines.map(([text]) => text));
    case "tree": return searched(view.tree);
    case "table": return tableTexts(view);
    case "budget": return searched(atStep(view.tree, view.state?.at ?? view.at));
    case "graph": return view.items.map(([, label, sub]) => `${label} ${sub}`);
    case "guards": return view.entries.flatMap((entry) => entry.checks.map(([text]) => text));
    case "steps": return view.texts;
  }
}

/** @type {WeakMap<View, string[]>} */
const lowered = new WeakMap();

/**
 * The number of lines, rows or boxes of a view that contain a text (in lower case).
 *
 * @param {View} view
 * @param {string} wanted
 */
function occurrences(view, wanted) {
  const texts = lowered.get(view) ?? searchedTexts(view).map((text) => text.toLowerCase());
  lowered.set(view, texts);
  return texts.filter((text) => text.includes(wanted)).length;
}
