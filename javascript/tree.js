// Trees `[tag, attributes, ...children]` from Python (see markup.py): as elements, and as text.

import { html, svg } from "./dom.js";

/** @import { Branch, Make, Tree } from "./types.d.ts" */

/** Elements that load or open something.  No view has one; another document may. */
const ACTIVE = /^(a|area|base|embed|form|iframe|link|meta|object|script)$/i;

const HTML = /** @type {Make} */ (html);
const SVG = /** @type {Make} */ (svg);

/**
 * Build the element of a tree; strings become text, never HTML.  `each` is called with every element
 * and its tree.  The children of a hidden element are built later, by `fill`.
 *
 * @param {Branch} node
 * @param {(element: HTMLElement, node: Branch) => void} each
 */
export function build(node, each = () => {}, make = HTML) {
  const [tag, attributes] = node;
  if (ACTIVE.test(tag)) throw new Error(`a view has no <${tag}>`);
  const inside = tag === "svg" ? SVG : make;
  const element = /** @type {HTMLElement} */ (inside(tag, attributes));
  if (!("hidden" in attributes)) fill(element, node, each, inside);
  each(element, node);
  return element;
}

/**
 * Build the children of an element.
 *
 * @param {HTMLElement} element
 * @param {Branch} node
 * @param {(element: HTMLElement, node: Branch) => void} each
 */
export function fill(element, node, each, make = HTML) {
  element.append(...childrenOf(node).map((child) => (
    typeof child === "string" ? child : build(child, each, make))));
}

/**
 * @param {Branch} node
 * @returns {Tree[]}
 */
const childrenOf = ([, , ...children]) => children;

/**
 * The tree at a step of its slider (see `at_step` in markup.py).
 *
 * @param {Branch} node
 * @param {number} step
 * @returns {Branch}
 */
export function atStep(node, step) {
  const there = childrenOf(node).filter((child) => (
    typeof child === "string" || isAt(child[1]["data-steps"], step)));
  return [node[0], node[1],
    ...there.map((child) => (typeof child === "string" ? child : atStep(child, step)))];
}

/**
 * Whether an element with these steps (`"0 2"`) exists at a step; without steps it always does.
 *
 * @param {string | null | undefined} steps
 * @param {number} step
 */
export function isAt(steps, step) {
  return typeof steps !== "string" || steps.split(" ").includes(String(step));
}

const ASIDE = /(^| )lab-sign( |$)/;
const LINES = ["p", "h3", "tr"];

/**
 * The text of a part: that of its `<title>`, otherwise its cells separated by tabs.
 *
 * @param {Branch} node
 */
export function partText(node) {
  const children = childrenOf(node);
  const title = children.find((child) => typeof child !== "string" && child[0] === "title");
  return title ? inlineText(title) : children.filter(isShown).map(inlineText).join("\t");
}

/**
 * The lines of a view's text: its sentences and its parts, without hidden elements.
 *
 * @param {Tree} node
 * @returns {string[]}
 */
export function textLines(node) {
  if (typeof node === "string" || "hidden" in node[1]) return [];
  if ("data-things" in node[1] || LINES.includes(node[0])) return [partText(node)];
  return childrenOf(node).flatMap(textLines);
}

/**
 * The searchable texts of a closed view: its parts, and the rows that they open.
 *
 * @param {Tree} node
 * @returns {string[]}
 */
export function searched(node) {
  if (typeof node === "string" || node[0] === "thead") return [];
  const own = "data-things" in node[1] || (node[0] === "tr" && !("hidden" in node[1]));
  return own ? [partText(node)] : childrenOf(node).flatMap(searched);
}

/** @param {Tree} node */
const isShown = (node) => typeof node === "string" || !ASIDE.test(node[1].class || "");

/**
 * @param {Tree} node
 * @returns {string}
 */
function inlineText(node) {
  if (typeof node === "string") return node;
  return childrenOf(node).filter(isShown).map(inlineText).join("");
}
