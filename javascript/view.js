// Views made of trees from Python: hover, pin, keyboard, search and text for all of them.

import { download, html, targetOf } from "./dom.js";
import { exportButtons } from "./export.js";
import { roving } from "./roving.js";
import { say } from "./say.js";
import { Shows } from "./selection.js";
import { build, fill, partText, textLines } from "./tree.js";

/** @import { Branch, Context, Drawn, Thing, TreeView } from "./types.d.ts" */

/**
 * Draw a tree.
 *
 * @param {TreeView} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function treeView(view, context) {
  const { selection } = context;
  /** @type {Map<Element, Part>} */
  const known = new Map();
  /** @type {Map<HTMLElement, Branch>} */
  const later = new Map();
  const see = (/** @type {HTMLElement} */ element, /** @type {Branch} */ node) => {
    const attributes = node[1];
    if ("data-things" in attributes) known.set(element, new Part(element, node));
    if ("hidden" in attributes) later.set(element, node);
    if ("data-pair" in attributes) element.children[1].append(pairButton(attributes, context));
    if ("data-term" in attributes && attributes.scope !== "col") {
      context.words.explain(element, attributes["data-term"] || element.textContent);
    }
  };
  const element = build(view.tree, see);
  element.setAttribute("tabindex", "0");
  const shows = new Shows(element);
  const parts = [...known.values()];
  for (const part of parts) shows.add(part.element, part.things);
  /** @type {Map<Element | null, () => void>} */
  const toggles = new Map();
  for (const [folded, node] of later) {
    toggles.set(folded.previousElementSibling, openFromAbove(folded, () => fill(folded, node, see)));
  }
  addFiles(element, view);
  for (const drawing of element.querySelectorAll("svg.lab-drawing")) {
    new ResizeObserver(() => drawing.clientWidth && cutNames(drawing)).observe(drawing);
  }
  const thingsAt = (/** @type {Event} */ event) => {
    const part = targetOf(event).closest("[data-things]");
    return (part && known.get(part)?.things) || [];
  };
  element.addEventListener("mouseover", (event) => selection.preview(thingsAt(event)));
  element.addEventListener("mouseleave", () => selection.preview([]));
  element.addEventListener("click", (event) => {
    const things = thingsAt(event);
    if (targetOf(event).closest("button") || String(getSelection())) return;
    if (things.length) selection.pin(things);
    toggles.get(targetOf(event).closest("tr"))?.();
  });
  roving(element, parts, selection);
  return {
    element,
    light: (lit, scroll) => {
      shows.light(lit);
      if (scroll) shows.first()?.scrollIntoView({ block: "nearest" });
    },
    find: (query) => parts.filter((part) => part.has(query)).map((part) => part.element),
    text: () => `${textLines(view.tree).join("\n")}\n`,
  };
}

/** An element with things: hover, arrow keys and search reach it. */
class Part {
  /**
   * @param {HTMLElement} element
   * @param {Branch} node
   */
  constructor(element, node) {
    this.element = element;
    this.node = node;
    /** @type {Thing[]} */
    this.things = node[1]["data-things"].split(" ").filter(Boolean).map(Number);
    /** @type {string | undefined} */
    this.text = undefined;
    if (this.things.length) element.classList.add("linked");
  }

  /** @param {string} query */
  has(query) {
    const text = this.text ?? partText(this.node).toLowerCase();
    this.text = text;
    return text.includes(query);
  }
}

/**
 * Shorten the names in the bars of a timeline to the width of their bar (`svg.py`, `shortened`).
 *
 * @param {Element} drawing
 */
function cutNames(drawing) {
  const names = /** @type {NodeListOf<SVGTextElement>} */ (drawing.querySelectorAll("svg > text"));
  for (const name of names) {
    const bar = /** @type {SVGSVGElement} */ (name.ownerSVGElement);
    if (bar === drawing) continue;
    name.dataset.whole ??= name.textContent ?? "";
    name.textContent = name.dataset.whole;
    const [room, wide] = [bar.width.baseVal.value - 2 * name.x.baseVal[0].value,
      name.getComputedTextLength()];
    if (wide <= room) continue;
    const letters = Math.floor(name.dataset.whole.length * room / wide) - 1;
    name.textContent = letters > 0 ? `${name.dataset.whole.slice(0, letters)}…` : "";
  }
}

/**
 * Add a button to the row above that opens a hidden row; the row is filled when first opened.
 * Returns what the button does.
 *
 * @param {HTMLElement} folded
 * @param {() => void} fillIt
 */
function openFromAbove(folded, fillIt) {
  const toggle = () => {
    folded.hidden = !folded.hidden;
    if (!folded.childElementCount) fillIt();
    button.setAttribute("aria-expanded", String(!folded.hidden));
    button.textContent = folded.hidden ? "▸" : "▾";
  };
  const button = html("button", {
    class: "lab-open", type: "button", "aria-expanded": "false", "aria-label": say("details"),
    onclick: toggle,
  }, "▸");
  folded.previousElementSibling?.firstElementChild?.prepend(button);
  return toggle;
}

/**
 * A button that forces or forbids the fusion of two buffers; it is visible in a live explorer.
 *
 * @param {Record<string, string>} attributes
 * @param {Context} context
 */
function pairButton(attributes, context) {
  const [choice, producer, consumer, part] = attributes["data-pair"].split(" ");
  return html("button", {
    class: "lab-pair", type: "button",
    "aria-label": say(`${choice} fusion of {producer} and {consumer}`, { producer, consumer }),
    title: say(`recompile and ${choice} fusion of this pair in {part}`, { part }),
    onclick: () => context.whatIf?.togglePair(
      /** @type {"force" | "forbid"} */ (choice), [producer, consumer, part]),
  }, say(choice));
}

/**
 * Add buttons next to the note: download the files of a view, and export its drawing.
 *
 * @param {HTMLElement} element
 * @param {TreeView} view
 */
function addFiles(element, view) {
  const files = (view.files || []).map((file) => html("button", {
    type: "button", class: "lab-save", title: file.tip,
    onclick: () => download(file.name, file.type, JSON.stringify(file.data)),
  }, file.label));
  const drawing = /** @type {SVGSVGElement | null} */ (element.querySelector("svg.lab-drawing"));
  const pictures = drawing ? exportButtons(view.name, () => ({
    element: drawing, width: drawing.width.baseVal.value, height: drawing.height.baseVal.value,
  })) : [];
  element.querySelector(".lab-note")?.append(" ", ...files, ...pictures);
}
