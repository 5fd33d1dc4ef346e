// A table from Python as a tree; `tree_of` in widgets/views.py does the same.

import { say } from "./say.js";

/** @import { Branch, Row, TableView, Tree } from "./types.d.ts" */

/** Characters: maximum length of a name that is not wrapped, and of a text in a narrow column. */
const [ONE_LINE, MANY_LINES] = [24, 60];

/** @type {Record<string, string>} */
const SIGNS = { ok: "✓", no: "✗", warn: "!" };

/**
 * The tree of a table.
 *
 * @param {TableView} view
 * @returns {Branch}
 */
export function tableTree({ name, columns, note, rows }) {
  const label = say("{name}, rows", { name: say(name) });
  const heads = columns.map((column) => {
    const term = column.replace(/^>/, "");
    return element("th", { ...numberOf(column), scope: "col", ...termOf(term) }, say(term));
  });
  return element("div", { class: "lab-table", role: "group", "aria-label": label },
    note && element("p", { class: "lab-note" }, note),
    element("table", {}, element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...rows.flatMap((row) => rowTrees(row, columns)))));
}

/**
 * The searchable texts of a table: its rows, and those that they open.
 *
 * @param {TableView} view
 */
export function tableTexts({ rows }) {
  return rows.flatMap(([cells, , , more = []]) => [
    cells.join("\t"), ...more.map(([, term, ...others]) => [say(term), ...others].join("\t"))]);
}

/**
 * The row, and the hidden row that it opens.
 *
 * @param {Row} row
 * @param {string[]} columns
 * @returns {Branch[]}
 */
function rowTrees([cells, things = [], mark = "", more = [], pair = "", steps = []], columns) {
  const shown = cells.map((cell, i) => element("td", classOf(columns[i], cell),
    i || !mark ? "" : sign("span", mark), cell));
  /** @type {Record<string, string>} */
  const attributes = { "data-things": things.join(" ") };
  if (pair) attributes["data-pair"] = pair;
  if (steps.length) attributes["data-steps"] = steps.join(" ");
  const row = element("tr", attributes, ...shown);
  if (!more.length) return [row];
  const inner = more.map(([inside, term, ...others]) => element("tr", {},
    inside && sign("td", inside), element("td", termOf(term), say(term)),
    ...others.map((cell) => element("td", {}, cell))));
  const held = element("td", { colspan: String(columns.length) }, element("table", {}, ...inner));
  return [row, element("tr", { class: "lab-more", hidden: "" }, held)];
}

/**
 * An element; empty texts are omitted.
 *
 * @param {string} tag
 * @param {Record<string, string>} attributes
 * @param {...Tree} children
 * @returns {Branch}
 */
function element(tag, attributes, ...children) {
  return [tag, attributes, ...children.filter((child) => child !== "")];
}

/**
 * @param {string} tag
 * @param {string} mark
 */
const sign = (tag, mark) => element(tag, { class: `lab-sign ${mark}` }, SIGNS[mark]);

/**
 * The term of the glossary, in English; "" if the text itself is English.
 *
 * @param {string} word
 */
const termOf = (word) => ({ "data-term": say(word) === word ? "" : word });

/**
 * @param {string} column
 * @returns {Record<string, string>}
 */
function numberOf(column) {
  return column.startsWith(">") ? { class: "number" } : {};
}

/**
 * A short name is not wrapped; a long text gets a minimum width, so that a narrow pane scrolls.
 *
 * @param {string} column
 * @param {string} cell
 * @returns {Record<string, string>}
 */
function classOf(column, cell) {
  if (column.startsWith(">")) return { class: "number" };
  if (cell.length <= ONE_LINE && /^\s*\S+\s*$/.test(cell)) return { class: "whole" };
  return cell.length > MANY_LINES ? { class: "long" } : {};
}
