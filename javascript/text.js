// Numbered lines of source or generated code; every line has the things that it shows.

import { colourWhenSeen } from "./colours.js";
import { html, targetOf } from "./dom.js";
import { kernelEditor } from "./edit.js";
import { say } from "./say.js";
import { Shows } from "./selection.js";

/** @import { Context, Drawn, Line, Selection, TextLine, TextView } from "./types.d.ts" */

let views = 0;

const CHUNK = 200;
const LINE_HEIGHT = 18.75;

/**
 * Draw a text view.  A view of kernels also has `{actions, above}`: buttons for the head of the pane,
 * and the editor above the lines.
 *
 * @param {TextView} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function textView(view, context) {
  const id = `lab-text-${views++}`;
  const element = html("div", {
    class: "lab-text", tabindex: 0, role: "listbox", "aria-label": say("{name}, lines", { name: say(view.name) }),
  });
  const shows = new Shows(element);
  /** @type {TextLine[]} */
  const lines = [];
  /** @type {string[] | undefined} */
  let lowered;
  for (const block of view.blocks) {
    const body = html("div", { class: "lab-block" });
    if (block.title) {
      const style = block.title === "⋯" ? "lab-block-title gap" : "lab-block-title";
      body.append(html("div", { class: style }, block.title));
    }
    const chunks = inChunks(block.lines.map((line, i) => lineElement(
      line, block.first ? block.first + i : "", `${id}-${lines.length}`, shows, lines, context)));
    colourWhenSeen(chunks, CHUNK, block.lines, block.language);
    body.append(...chunks);
    element.append(body);
  }
  listenToLines(element, lines, context.selection);
  return {
    element,
    ...kernelEditor(view, context),
    light: (lit, scroll) => {
      shows.light(lit);
      if (scroll) shows.first()?.scrollIntoView({ block: "nearest" });
    },
    goTo: (number) => {
      const line = lines[number - 1];
      if (!line) return;
      context.selection.hold(line.things, number - 1);
      markCurrent(line, true);
      line.element.scrollIntoView({ block: "center" });
    },
    find: (query) => {
      lowered ??= lines.map((line) => line.text.toLowerCase());
      const found = lowered;
      return lines.filter((_, i) => found[i].includes(query)).map((line) => line.element);
    },
    text: () => lines.map((line) => line.text).join("\n") + "\n",
  };
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
    const chunk = html("div", { class: "lab-chunk" }, part);
    chunk.style.containIntrinsicHeight = `auto ${part.length * LINE_HEIGHT}px`;
    chunks.push(chunk);
  }
  return chunks;
}

/** @type {Record<string, number>} How many lines a key moves down. */
const STEPS = {
  ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity,
};

/** @type {Record<string, string>} */
const MARKS = { "+": "added", "-": "removed", "@": "gap" };

/**
 * @param {Line} line
 * @param {number | ""} number
 * @param {string} id
 * @param {Shows} shows
 * @param {TextLine[]} lines
 * @param {Context} context
 */
function lineElement([text, things = [], mark = ""], number, id, shows, lines, { links }) {
  const cue = links.cue(things);
  const row = html("div", {
    id,
    role: text.trim() ? "option" : "presentation",
    "aria-selected": text.trim() ? "false" : null,
    class: ["lab-line", things.length ? "linked" : "", MARKS[mark] || ""].filter(Boolean).join(" "),
    "data-line": lines.length,
    "data-hue": cue ? cue.hue : null,
  },
  html("span", { class: "lab-no", "aria-hidden": "true" }, String(number)),
  html("span", { class: "lab-cue", title: cue ? say("from {lines}", { lines: cue.title }) : null },
    cue && links.kind[things[0]] !== "source" ? cue.number : ""),
  html("span", { class: "lab-mark" }, mark === "@" ? "" : mark),
  html("code", {}, text || " "));
  lines.push({ element: row, text, things });
  shows.add(row, things);
  return row;
}

/**
 * @param {TextLine | undefined} line
 * @param {boolean} is
 */
function markCurrent(line, is) {
  line?.element.classList.toggle("current", is);
  if (line?.text.trim()) line.element.setAttribute("aria-selected", String(is));
}

/**
 * @param {HTMLElement} element
 * @param {TextLine[]} lines
 * @param {Selection} selection
 */
function listenToLines(element, lines, selection) {
  let current = -1;
  const lineOf = (/** @type {Event} */ event) => {
    const row = /** @type {HTMLElement | null} */ (targetOf(event).closest(".lab-line"));
    return row ? lines[Number(row.dataset.line)] : null;
  };
  element.addEventListener("mouseover", (event) => selection.preview(lineOf(event)?.things || []));
  element.addEventListener("mouseleave", () => selection.preview([]));
  element.addEventListener("click", (event) => {
    const line = lineOf(event);
    if (line?.things.length && !String(getSelection())) selection.pin(line.things, lines.indexOf(line));
  });
  element.addEventListener("keydown", (event) => {
    const step = STEPS[event.key];
    if (step) {
      markCurrent(lines[current], false);
      current = Math.max(0, Math.min(lines.length - 1, current + step));
      const line = lines[current];
      markCurrent(line, true);
      line.element.scrollIntoView({ block: "nearest" });
      element.setAttribute("aria-activedescendant", line.element.id);
      selection.preview(line.things);
      event.preventDefault();
    } else if (event.key === "Enter" && lines[current]?.things.length) {
      selection.pin(lines[current].things, current);
    }
  });
}
