// The search of an explorer: open panes are marked, closed ones are named with what they hold.

import { html, refill } from "./dom.js";
import { inSteps, PAUSE, Pieces, REST } from "./pieces.js";
import { say } from "./say.js";
import { atStep, searched } from "./tree.js";

/** @import { Drawn, Explorer, Slot, View } from "./types.d.ts" */

/** So many hits of a pane at most are shown by opening what hides them. */
const FEW = 50;

/**
 * The so-manyth hit of a view.
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

  /** Empty the field, and mark nothing. */
  clear() {
    if (this.field.value) {
      this.field.value = "";
      this.find("");
    }
    this.field.blur();
  }

  /** @param {string} query */
  find(query) {
    this.pieces.run(this.steps(query.trim().toLowerCase()));
  }

  /**
   * The steps of a search: open panes first, then what the others hold; what hides a hit is opened
   * when no key was pressed for a while.  To bring the first hit into sight makes the browser lay
   * the page out, so the key that was pressed is shown before.
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

  /** Open what hides the hits of panes that have few. */
  *hidden() {
    for (const { view } of this.explorer.slots) {
      const hits = this.found.filter((hit) => hit.view === view);
      if (!view.reveal || !hits.length || hits.length > FEW) continue;
      yield PAUSE;
      this.reveal(view, hits);
    }
  }

  /**
   * Open what hides hits of a view; the elements of all its hits may be others then.
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
   * Panes that are closed and hold what is searched for, as a list to open them from.
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
   * Go to the next hit, or with -1 to the one before.
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
 * What a search in a view that is closed looks at.
 *
 * @param {View} view
 * @returns {string[]}
 */
function searchedTexts(view) {
  switch (view.kind) {
    case "text": return view.blocks.flatMap((block) => block.lines.map(([text]) => text));
    case "tree": return searched(view.tree);
    case "budget": return searched(atStep(view.tree, view.state?.at ?? view.at));
    case "graph": return view.items.map(([, label, sub]) => `${label} ${sub}`);
    case "guards": return view.entries.flatMap((entry) => entry.checks.map(([text]) => text));
    case "steps": return view.texts;
  }
}

/** @type {WeakMap<View, string[]>} */
const lowered = new WeakMap();

/**
 * How many lines, rows or boxes of a view hold a text (in lower case).
 *
 * @param {View} view
 * @param {string} wanted
 */
function occurrences(view, wanted) {
  const texts = lowered.get(view) ?? searchedTexts(view).map((text) => text.toLowerCase());
  lowered.set(view, texts);
  return texts.filter((text) => text.includes(wanted)).length;
}
