// One selection for the whole explorer: hover previews, click pins, Escape clears.

import { push } from "./known.js";

/** @import { Links, Listener, Lit, Thing } from "./types.d.ts" */

export class Selection {
  /** @param {Pick<Links, "related">} links */
  constructor(links) {
    this.links = links;
    /** @type {Thing[]} */
    this.pinned = [];
    /** The line of a text view whose things are pinned, counted from 0. @type {number | null} */
    this.line = null;
    /** @type {Thing[]} */
    this.hovered = [];
    /** @type {Set<Listener>} */
    this.listeners = new Set();
    this.shown = "";
  }

  /**
   * `listener(lit, things)` is called when the highlighted things change; `lit` is null for none.
   *
   * @param {Listener} listener
   */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** @param {Thing[]} things */
  preview(things) {
    this.hovered = things;
    this.tell();
  }

  /**
   * Pin these things, those of a `line` of a text view; pinning them again unpins them.
   *
   * @param {Thing[]} things
   * @param {number | null} line
   */
  pin(things, line = null) {
    if (String(things) === String(this.pinned)) this.clear();
    else this.hold(things, line);
  }

  /**
   * Pin these things and no others.
   *
   * @param {Thing[]} things
   * @param {number | null} line
   */
  hold(things, line = null) {
    this.pinned = things;
    this.line = line;
    this.hovered = [];
    this.tell(true);
  }

  clear() {
    this.hold([]);
  }

  get things() {
    return this.hovered.length ? this.hovered : this.pinned;
  }

  tell(scroll = false) {
    const things = this.things;
    const key = String(things);
    if (key === this.shown && !scroll) return;
    this.shown = key;
    const lit = things.length ? this.links.related(things) : null;
    for (const listener of this.listeners) listener(lit, things, scroll && things.length > 0);
  }
}

/** Which elements show which things; highlights them. */
export class Shows {
  /** @param {HTMLElement} container */
  constructor(container) {
    this.container = container;
    /** @type {Map<Thing, Element[]>} */
    this.elements = new Map();
    /** @type {Set<Element>} */
    this.lit = new Set();
  }

  /**
   * @param {Element} element
   * @param {Thing[]} things
   */
  add(element, things) {
    for (const thing of things) push(this.elements, thing, element);
  }

  /**
   * Highlight the elements of these things, and no others.
   *
   * @param {Lit} lit
   */
  light(lit) {
    /** @type {Set<Element>} */
    const now = new Set();
    if (lit) for (const thing of lit) (this.elements.get(thing) || []).forEach((e) => now.add(e));
    for (const element of this.lit) if (!now.has(element)) element.classList.remove("lit");
    for (const element of now) if (!this.lit.has(element)) element.classList.add("lit");
    this.lit = now;
    this.container.classList.toggle("dim", now.size > 0);
  }

  /**
   * The first highlighted element in page order.
   *
   * @returns {HTMLElement | null}
   */
  first() {
    return this.container.querySelector(".lit");
  }
}
