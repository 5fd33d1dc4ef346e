// Numbered lines of source or generated code; every line has the things that it shows.

import { colourer } from "./colours.js";
import { html, targetOf } from "./dom.js";
import { kernelEditor } from "./edit.js";
import { push } from "./known.js";
import { say } from "./say.js";

/** @import { Block, Context, Drawn, Lit, TextLine, TextView, Thing, Word } from "./types.d.ts" */

let views = 0;

const CHUNK = 200;
const LINE_HEIGHT = 18.75;
/** So many lines of a view are built at once; the others when they become visible. */
const AT_ONCE = 300;
/** How far outside of the visible area lines are built, in pixels. */
const MARGIN = "600px";

/** @type {WeakMap<Element, () => void>} */
const waiting = new WeakMap();
/** One for all views: an observer of a view would keep the view, which it observes, in memory. */
const observer = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue;
    observer.unobserve(target);
    waiting.get(target)?.();
  }
}, /** @type {IntersectionObserverInit} */ ({ rootMargin: MARGIN, scrollMargin: MARGIN }));

/**
 * Call a function once, when an element is almost visible.
 *
 * @param {Element} element
 * @param {() => void} run
 */
function whenSeen(element, run) {
  waiting.set(element, run);
  observer.observe(element);
}

/**
 * Draw a text view.  A view of kernels also has `{actions, above}`: buttons for the head of the pane,
 * and the editor above the lines.
 *
 * @param {TextView} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function textView(view, context) {
  const lines = new Lines(view, context);
  /** @type {string[] | undefined} */
  let lowered;
  return {
    element: lines.element,
    ...kernelEditor(view, context),
    light: (lit, scroll) => lines.light(lit, scroll),
    goTo: (number) => lines.goTo(number - 1),
    find: (query) => {
      lowered ??= lines.all.map((line) => line.text.toLowerCase());
      return lowered.flatMap((text, i) => (text.includes(query) ? [lines.elementOf(i)] : []));
    },
    text: () => lines.all.map((line) => line.text).join("\n") + "\n",
    whole: () => lines.all.forEach((_, i) => lines.elementOf(i)),
  };
}

/**
 * The lines of a view, in chunks.  A chunk is empty until its lines are built, and without colours
 * until it is visible: a document may have a hundred thousand lines.
 */
class Lines {
  /**
   * @param {TextView} view
   * @param {Context} context
   */
  constructor(view, context) {
    this.context = context;
    this.id = `lab-text-${views++}`;
    this.element = html("div", {
      class: "lab-text", tabindex: 0, role: "listbox", "aria-label": say("{name}, lines", { name: say(view.name) }),
    });
    /** @type {TextLine[]} */
    this.all = [];
    /** The numbers of the lines that show a thing. @type {Map<Thing, number[]>} */
    this.places = new Map();
    /** The numbers of the highlighted lines. @type {Set<number>} */
    this.lit = new Set();
    this.current = -1;
    for (const block of view.blocks) this.element.append(this.block(block));
    this.listen();
  }

  /** @param {Block} block */
  block(block) {
    const body = html("div", { class: "lab-block" });
    if (block.title) {
      const style = block.title === "⋯" ? "lab-block-title gap" : "lab-block-title";
      body.append(html("div", { class: style }, block.title));
    }
    const colours = colourer(block.lines, CHUNK, block.language);
    for (let start = 0; start < block.lines.length; start += CHUNK) {
      const first = this.all.length;
      const count = Math.min(CHUNK, block.lines.length - start);
      const element = chunkOf(count);
      element.style.height = `${count * LINE_HEIGHT}px`;
      const chunk = { element, first, count };
      block.lines.slice(start, start + count).forEach(([text, things = [], mark = ""], i) => {
        for (const thing of things) push(this.places, thing, this.all.length);
        const number = block.first ? block.first + start + i : "";
        this.all.push({ text, things, mark, number, chunk, element: null });
      });
      if (first < AT_ONCE) this.build(chunk);
      whenSeen(element, () => {
        this.build(chunk);
        colours?.(start / CHUNK, (i, words) => this.colour(first + i, words));
      });
      body.append(element);
    }
    return body;
  }

  /** @param {TextLine["chunk"]} chunk */
  build({ element, first, count }) {
    if (element.childElementCount) return;
    element.style.height = "";
    for (let i = first; i < first + count; i++) {
      const line = this.line(i);
      this.all[i].element = line;
      element.append(line);
    }
  }

  /**
   * The element of a line, which is built if it is not there yet.
   *
   * @param {number} i
   */
  elementOf(i) {
    const line = this.all[i];
    if (!line.element) this.build(line.chunk);
    return /** @type {HTMLElement} */ (line.element);
  }

  /** @param {number} i */
  line(i) {
    const { text, things, mark, number } = this.all[i];
    const { links } = this.context;
    const cue = links.cue(things);
    const classes = ["lab-line", things.length ? "linked" : "", MARKS[mark] || "",
      this.lit.has(i) ? "lit" : ""];
    return html("div", {
      id: `${this.id}-${i}`,
      role: text.trim() ? "option" : "presentation",
      "aria-selected": text.trim() ? "false" : null,
      class: classes.filter(Boolean).join(" "),
      "data-line": i,
      "data-hue": cue ? cue.hue : null,
    },
    html("span", { class: "lab-no", "aria-hidden": "true" }, String(number)),
    html("span", { class: "lab-cue", title: cue ? say("from {lines}", { lines: cue.title }) : null },
      cue && links.kind[things[0]] !== "source" ? cue.number : ""),
    html("span", { class: "lab-mark" }, mark === "@" ? "" : mark),
    html("code", {}, text || " "));
  }

  /**
   * @param {number} i
   * @param {Word[]} words
   */
  colour(i, words) {
    this.elementOf(i).lastElementChild?.replaceChildren(...words.map(([kind, text]) => (
      kind ? html("span", { class: `lab-${kind}` }, text) : text)));
  }

  /**
   * Highlight the lines of these things, and no others; with `scroll` show the first.
   *
   * @param {Lit} lit
   * @param {boolean} [scroll]
   */
  light(lit, scroll) {
    const now = new Set([...lit ?? []].flatMap((thing) => this.places.get(thing) ?? []));
    for (const i of this.lit) if (!now.has(i)) this.all[i].element?.classList.remove("lit");
    for (const i of now) if (!this.lit.has(i)) this.all[i].element?.classList.add("lit");
    this.lit = now;
    this.element.classList.toggle("dim", now.size > 0);
    if (!scroll || !now.size) return;
    let first = this.all.length;
    for (const i of now) first = Math.min(first, i);
    this.elementOf(first).scrollIntoView({ block: "nearest" });
  }

  /** @param {number} i */
  goTo(i) {
    if (!this.all[i]) return;
    this.context.selection.hold(this.all[i].things, i);
    this.mark(i, true);
    this.elementOf(i).scrollIntoView({ block: "center" });
  }

  /**
   * @param {number} i
   * @param {boolean} is
   */
  mark(i, is) {
    if (!this.all[i]) return;
    const element = this.elementOf(i);
    element.classList.toggle("current", is);
    if (this.all[i].text.trim()) element.setAttribute("aria-selected", String(is));
  }

  listen() {
    const { element, all, context: { selection } } = this;
    const lineOf = (/** @type {Event} */ event) => {
      const row = /** @type {HTMLElement | null} */ (targetOf(event).closest(".lab-line"));
      return row ? Number(row.dataset.line) : -1;
    };
    element.addEventListener("mouseover", (event) => {
      selection.preview(all[lineOf(event)]?.things ?? []);
    });
    element.addEventListener("mouseleave", () => selection.preview([]));
    element.addEventListener("click", (event) => {
      const i = lineOf(event);
      if (all[i]?.things.length && !String(getSelection())) selection.pin(all[i].things, i);
    });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { selection } = this.context;
    const step = STEPS[event.key];
    if (step) {
      this.mark(this.current, false);
      this.current = Math.max(0, Math.min(this.all.length - 1, this.current + step));
      this.mark(this.current, true);
      const element = this.elementOf(this.current);
      element.scrollIntoView({ block: "nearest" });
      this.element.setAttribute("aria-activedescendant", element.id);
      selection.preview(this.all[this.current].things);
      event.preventDefault();
    } else if (event.key === "Enter" && this.all[this.current]?.things.length) {
      selection.pin(this.all[this.current].things, this.current);
    }
  }
}

/**
 * Group line elements into chunks, which the browser lays out when they become visible.
 *
 * @param {HTMLElement[]} elements
 */
export function inChunks(elements) {
  /** @type {HTMLElement[]} */
  const chunks = [];
  for (let start = 0; start < elements.length; start += CHUNK) {
    const part = elements.slice(start, start + CHUNK);
    chunks.push(chunkOf(part.length));
    chunks[chunks.length - 1].append(...part);
  }
  return chunks;
}

/**
 * An element for so many lines; the browser knows its height before it lays it out.
 *
 * @param {number} count
 */
function chunkOf(count) {
  const chunk = html("div", { class: "lab-chunk" });
  chunk.style.containIntrinsicHeight = `auto ${count * LINE_HEIGHT}px`;
  return chunk;
}

/** @type {Record<string, number>} How many lines a key moves down. */
const STEPS = {
  ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity,
};

/** @type {Record<string, string>} */
const MARKS = { "+": "added", "-": "removed", "@": "gap" };
