// A graph that can be panned, zoomed and searched, and whose frames can be opened.

import { html, refill, svg, targetOf } from "./dom.js";
import { exportButtons } from "./export.js";
import { known, push } from "./known.js";
import { enlarged } from "./present.js";
import { Placement } from "./place.js";
import { say } from "./say.js";
import { Shows } from "./selection.js";

/**
 * @import {
 *   Arrow, Box, Context, Drawn, Frame, GraphPicture, Item, Node, Thing,
 * } from "./types.d.ts"
 */

const PAD = 14;
const LONGEST = 44;
/** Width in pixels of a letter of a frame's title. */
const LETTER = 6.6;

/**
 * @param {GraphPicture} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function graphView(view, context) {
  return new GraphView(view, context);
}

class GraphView {
  /**
   * @param {GraphPicture} view
   * @param {Context} context
   */
  constructor(view, context) {
    this.view = view;
    this.context = context;
    this.placement = new Placement(view);
    this.drawing = svg("g", {});
    this.paper = svg("svg", {
      class: "lab-paper", role: "group", "aria-label": view.told,
    }, this.drawing);
    this.element = html("div", { class: "lab-graph", tabindex: 0 }, this.tools(), this.paper);
    this.shows = new Shows(this.element);
    this.scale = 1;
    this.x = this.y = 0;
    this.fitted = false;
    this.size = { width: 0, height: 0 };
    /** @type {Map<string, Node>} */
    this.nodes = new Map();
    /** @type {Map<string, Thing[]> | null} */
    this.contents = null;
    /** The searchable texts, created by the first search.
     * @type {string[] | null} */
    this.lowered = null;
    /** The items found by the last search.
     * @type {string[]} */
    this.hits = [];
    /** @type {string | null} */
    this.current = null;
    this.draw();
    this.listen();
    new ResizeObserver(() => this.fitted || this.fit()).observe(this.element);
  }

  tools() {
    const button = (
      /** @type {string} */ label, /** @type {string} */ title, /** @type {() => void} */ action,
    ) => html("button", {
      type: "button", title, "aria-label": title, onclick: action,
    }, label);
    return html("div", { class: "lab-tools" },
      this.placement.frames.size ? [
        button("⊞", say("open all frames"), () => this.openAll(true)),
        button("⊟", say("close all frames"), () => this.openAll(false)),
      ] : null,
      button("+", say("zoom in (+)"), () => this.zoom(1.25)),
      button("−", say("zoom out (-)"), () => this.zoom(0.8)),
      button(say("fit"), say("fit (f)"), () => this.fit()),
      exportButtons(this.view.title, () => ({ element: this.drawing, ...this.size })));
  }

  draw() {
    const isSearched = this.drawing.querySelector(".found") !== null;
    const placed = this.placement.place();
    this.size = placed;
    this.shows.elements.clear();
    this.nodes = new Map();
    /** @type {SVGElement[]} */
    const frames = [];
    /** @type {SVGElement[]} */
    const boxes = [];
    const titles = [];
    for (const [name, box] of placed.boxes) {
      const isOpen = this.placement.isOpen(name);
      (isOpen ? frames : boxes).push(this.box(name, box, isOpen));
      if (isOpen) titles.push(frameTitle(known(this.placement.frames, name)[1], box));
    }
    const arrows = placed.arrows.map((arrow) => arrowElement(arrow));
    refill(this.drawing, frames, arrows, boxes, titles);
    if (isSearched) for (const hit of this.hits) this.groupOf(hit).classList.add("found");
  }

  /**
   * The box of an item, or of the closed frame that contains it.
   *
   * @param {string} item
   */
  groupOf(item) {
    return known(this.nodes, this.placement.visible(item)).group;
  }

  /**
   * @param {string} name
   * @param {Box} box
   * @param {boolean} isOpen
   */
  box(name, { x, y, width, height }, isOpen) {
    const frame = this.placement.frames.get(name);
    const [, label, sub, role, tip, things] = frame ? this.boxOf(frame, isOpen)
      : known(this.placement.items, name);
    const cue = frame ? null : this.context.links.cue(things);
    const at = { x: x + width / 2, y: y + (sub ? 16.5 : height / 2 + 4), "text-anchor": "middle" };
    const group = svg("g", {
      class: `lab-node ${role}${things.length ? " linked" : ""}`,
      "data-name": name,
      "data-hue": cue ? cue.hue : null,
      tabindex: -1,
      role: frame ? "button" : "img",
      "aria-expanded": frame ? String(isOpen) : null,
      "aria-label": frame && !isOpen ? null : [label, sub].filter(Boolean).join(", "),
    },
    svg("title", {}, tip),
    svg("rect", { x, y, width, height, rx: role === "input" ? 13 : 4 }),
    cue ? svg("rect", { class: "cue", x: x + 2, y: y + 5, width: 4, height: height - 10, rx: 2 })
      : null,
    isOpen ? null : svg("text", at, frame ? `▸ ${shorten(label)}` : shorten(label)),
    sub && !isOpen
      ? svg("text", { x: x + width / 2, y: y + 31, "text-anchor": "middle", class: "sub" },
        shorten(sub))
      : null);
    this.nodes.set(name, { group, things, x, y, width, height });
    if (!isOpen) this.shows.add(group, things);
    return group;
  }

  /**
   * A frame in the form of an item.
   *
   * @param {Frame} frame
   * @param {boolean} isOpen
   * @returns {Item}
   */
  boxOf(frame, isOpen) {
    const [name, label, sub, tip, parent] = frame;
    return [name, label, sub, isOpen ? "frame" : "closed", tip, this.thingsIn(frame), parent];
  }

  /**
   * The things of a closed frame: those of all its items.
   *
   * @param {Frame} frame
   */
  thingsIn(frame) {
    if (frame[6].length) return frame[6];
    if (!this.contents) this.contents = contentsOf(this.placement);
    return this.contents.get(frame[0]) || [];
  }

  listen() {
    const { selection } = this.context;
    const at = (/** @type {Event} */ event) => {
      const group = /** @type {SVGElement | null} */ (targetOf(event).closest(".lab-node"));
      const name = group?.dataset.name ?? "";
      return { name, node: this.nodes.get(name) };
    };
    /** @type {{x: number, y: number, far: number, large: number} | null} */
    let dragged = null;
    this.paper.addEventListener("mouseover", (event) => {
      const { name, node } = at(event);
      selection.preview(node && !this.placement.isOpen(name) ? node.things : []);
    });
    this.paper.addEventListener("mouseleave", () => selection.preview([]));
    this.paper.addEventListener("pointerdown", (event) => {
      const large = enlarged(this.element);
      dragged = { x: event.clientX / large - this.x, y: event.clientY / large - this.y, far: 0, large };
    });
    this.paper.addEventListener("pointermove", (event) => {
      if (!dragged || !event.buttons) return;
      const x = event.clientX / dragged.large - dragged.x;
      const y = event.clientY / dragged.large - dragged.y;
      dragged.far += Math.abs(x - this.x) + Math.abs(y - this.y);
      this.move(x, y);
    });
    this.paper.addEventListener("click", (event) => {
      if (dragged && dragged.far > 4) return;
      const { name, node } = at(event);
      if (this.placement.frames.has(name)) this.toggle(name);
      else if (node?.things.length) selection.pin(node.things);
    });
    this.element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !this.element.matches(":focus-within")) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, event);
      else this.move(this.x - event.deltaX, this.y - event.deltaY);
    }, { passive: false });
    this.element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Record<string, [x: number, y: number]>} */
    const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (pan[event.key]) {
      this.move(this.x + pan[event.key][0], this.y + pan[event.key][1]);
      event.preventDefault();
    } else if (event.key === "n" || event.key === "p") {
      this.step(event.key === "n" ? 1 : -1);
    } else if (event.key === "Enter" && this.current) {
      if (this.placement.frames.has(this.current)) this.toggle(this.current);
      else this.context.selection.pin(known(this.nodes, this.current).things);
    }
  }

  /**
   * Move the keyboard focus to the next or previous box.
   *
   * @param {number} by
   */
  step(by) {
    const names = [...this.nodes.keys()];
    const at = this.current === null ? Math.min(-by, 0) : names.indexOf(this.current);
    const name = names[(at + by + names.length) % names.length];
    this.nodes.get(this.current ?? "")?.group.classList.remove("current");
    this.current = name;
    const node = known(this.nodes, name);
    node.group.classList.add("current");
    node.group.focus({ preventScroll: true });
    this.show(node);
    this.context.selection.preview(this.placement.isOpen(name) ? [] : node.things);
  }

  /** @param {string} name */
  toggle(name) {
    const { open } = this.placement;
    const before = known(this.nodes, name);
    if (open.has(name)) open.delete(name);
    else open.add(name);
    this.redraw();
    const after = known(this.nodes, name);
    this.move(
      this.x + (before.x + before.width / 2 - after.x - after.width / 2) * this.scale,
      this.y + (before.y - after.y) * this.scale,
    );
  }

  /** @param {boolean} all */
  openAll(all) {
    this.placement.open = new Set(all ? this.placement.frames.keys() : []);
    this.redraw();
    this.fit();
  }

  redraw() {
    const held = this.drawing.matches(":focus-within");
    this.draw();
    if (held) this.nodes.get(this.current ?? "")?.group.focus({ preventScroll: true });
    this.context.selection.tell(true);
  }

  /** @type {Drawn["light"]} */
  light(lit, scroll) {
    this.shows.light(lit);
    const first = scroll && this.shows.first();
    if (first) this.show(known(this.nodes, first.dataset.name));
  }

  /**
   * Pan so that a box is visible.
   *
   * @param {Box} box
   */
  show({ x, y, width, height }) {
    const { clientWidth, clientHeight } = this.paper;
    const [left, top] = [this.x + x * this.scale, this.y + y * this.scale];
    const inside = left >= 0 && top >= 0 && left + width * this.scale <= clientWidth
      && top + height * this.scale <= clientHeight;
    if (inside) return;
    this.move(clientWidth / 2 - (x + width / 2) * this.scale,
      clientHeight / 2 - (y + height / 2) * this.scale);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  move(x, y) {
    this.x = x;
    this.y = y;
    this.fitted = true;
    this.drawing.setAttribute("transform", `translate(${x} ${y}) scale(${this.scale})`);
  }

  /**
   * @param {number} factor
   * @param {WheelEvent} [event]
   */
  zoom(factor, event) {
    const { paper } = this;
    const area = paper.getBoundingClientRect();
    const large = enlarged(this.element);
    const [px, py] = event ? [(event.clientX - area.left) / large, (event.clientY - area.top) / large]
      : [paper.clientWidth / 2, paper.clientHeight / 2];
    const scale = Math.min(4, Math.max(0.03, this.scale * factor));
    const ratio = scale / this.scale;
    this.scale = scale;
    this.move(px - (px - this.x) * ratio, py - (py - this.y) * ratio);
  }

  /** Fit the whole picture if it stays readable, otherwise show its top at a readable size. */
  fit() {
    const { clientWidth, clientHeight } = this.paper;
    if (!clientWidth || !clientHeight) return;
    const wide = (clientWidth - 2 * PAD) / Math.max(1, this.size.width);
    const high = (clientHeight - 2 * PAD) / Math.max(1, this.size.height);
    const whole = Math.min(wide, high, 1);
    this.scale = whole > 0.35 ? whole : Math.max(Math.min(wide, 0.7), 0.2);
    const spare = (clientHeight - this.size.height * this.scale) / 2;
    this.move((clientWidth - this.size.width * this.scale) / 2, Math.min(Math.max(spare, PAD), 40));
    this.fitted = false;
  }

  /**
   * For each item that contains a text, its box or that of the closed frame around it.
   *
   * @param {string} query
   */
  find(query) {
    this.lowered ??= this.view.items.map((item) => item.slice(0, 5).join("\n").toLowerCase());
    const { lowered } = this;
    this.hits = this.view.items.filter((_, i) => lowered[i].includes(query)).map(([name]) => name);
    return this.hits.map((name) => this.groupOf(name));
  }

  /**
   * Open the frames around hits of the last search; returns whether any frame was opened.
   *
   * @param {number[]} places
   */
  reveal(places) {
    const { open } = this.placement;
    const before = open.size;
    for (const place of places) this.placement.reveal(this.hits[place]);
    if (open.size > before) this.redraw();
    return open.size > before;
  }

  /**
   * Pan to an element returned by `find`.
   *
   * @param {Element} group
   */
  showElement(group) {
    this.show(known(this.nodes, /** @type {SVGElement} */ (group).dataset.name));
  }

  text() {
    return this.view.items.map((item) => `${item[1]}\t${item[2]}`).join("\n") + "\n";
  }
}

/** @param {Placement} placement */
function contentsOf(placement) {
  /** @type {Map<string, Thing[]>} */
  const contents = new Map();
  for (const [, , , , , things, inside] of placement.items.values()) {
    for (let frame = inside; frame; frame = known(placement.frames, frame)[4]) {
      for (const thing of things) push(contents, frame, thing);
    }
  }
  return contents;
}

/** @param {string} text */
function shorten(text) {
  if (text.length <= LONGEST) return text;
  return `${text.slice(0, LONGEST / 2 - 1)}…${text.slice(-LONGEST / 2)}`;
}

/**
 * The title of an open frame; it is drawn last, so that no arrow covers it.
 *
 * @param {string} label
 * @param {Box} box
 */
function frameTitle(label, { x, y }) {
  const title = `▾ ${shorten(label)}`;
  return svg("g", { class: "lab-frame-title" },
    svg("rect", { x: x + 8, y: y + 4, width: title.length * LETTER + 8, height: 17, rx: 3 }),
    svg("text", { x: x + 12, y: y + 16, class: "sub" }, title));
}

/** @param {Arrow} arrow */
function arrowElement({ points }) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let i = 1; i < points.length; i++) {
    const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
    const middle = (y0 + y1) / 2;
    path += `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
  }
  const [, before] = points[points.length - 2];
  const [x, y] = points[points.length - 1];
  const back = before <= y ? 6 : -6;
  return svg("g", { class: "lab-arrow" },
    svg("path", { d: path }), svg("path", { class: "head", d: `M${x} ${y}l-3.5 ${-back}h7z` }));
}
