// One selection for the whole explorer: hover previews, click pins, Escape clears.

export class Selection {
  constructor(links) {
    this.links = links;
    this.pinned = [];
    this.hovered = [];
    this.listeners = new Set();
    this.shown = "";
  }

  /** `listener(lit, things)` is told when what is lit changes; `lit` is null when nothing is. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  preview(things) {
    this.hovered = things;
    this.tell();
  }

  /** Pin these things; pinning what is pinned lets it go. */
  pin(things) {
    this.pinned = String(things) === String(this.pinned) ? [] : things;
    this.hovered = [];
    this.tell(true);
  }

  clear() {
    this.pinned = this.hovered = [];
    this.tell();
  }

  get things() {
    return this.hovered.length ? this.hovered : this.pinned;
  }

  tell(scroll = false) {
    const things = this.things;
    const key = String(things);
    if (key === this.shown && !scroll) return;
    this.shown = key;
    const lit = things.length ? this.links.way(things) : null;
    for (const listener of this.listeners) listener(lit, things, scroll && things.length > 0);
  }
}

/** Which elements show which thing; lights and dims them. */
export class Shows {
  constructor(container) {
    this.container = container;
    this.elements = new Map();
    this.lit = new Set();
  }

  add(element, things) {
    for (const thing of things) {
      if (!this.elements.has(thing)) this.elements.set(thing, []);
      this.elements.get(thing).push(element);
    }
  }

  /** Light the elements of these things, and no others. */
  light(lit) {
    const now = new Set();
    if (lit) for (const thing of lit) (this.elements.get(thing) || []).forEach((e) => now.add(e));
    for (const element of this.lit) if (!now.has(element)) element.classList.remove("lit");
    for (const element of now) if (!this.lit.has(element)) element.classList.add("lit");
    this.lit = now;
    this.container.classList.toggle("dim", now.size > 0);
  }

  /** The first lit element in the page's order. */
  first() {
    return this.container.querySelector(".lit");
  }
}
