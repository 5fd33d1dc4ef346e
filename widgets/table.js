// Tables, empty states and bars.

import { html } from "./dom.js";
import { roving } from "./roving.js";
import { Shows } from "./selection.js";

const SIGNS = { ok: "✓", no: "✗", warn: "!" };

/** A table whose rows may be opened for more. */
export function tableView(view, context) {
  const element = html("div", {
    class: "lab-table", tabindex: 0, role: "group", "aria-label": `${view.name}, rows`,
  });
  const shows = new Shows(element);
  const rows = [];
  const body = html("tbody", {});
  view.rows.forEach((row) => body.append(...tableRow(view, row, rows, shows, context)));
  const heads = view.columns.map((c) => html("th", { scope: "col", class: align(c) }, bare(c)));
  roving(element, rows, context.selection);
  if (view.note) element.append(html("p", { class: "lab-note" }, view.note));
  element.append(html("table", {}, html("thead", {}, html("tr", {}, heads)), body));
  return {
    element,
    light: (lit, scroll) => {
      shows.light(lit);
      if (scroll) shows.first()?.scrollIntoView({ block: "nearest" });
    },
    find: (query) => rows.filter((r) => r.text.toLowerCase().includes(query)).map((r) => r.element),
    text: () => [view.columns.map(bare).join("\t"), ...rows.map((r) => r.text)].join("\n") + "\n",
  };
}

const align = (column) => (column.startsWith(">") ? "number" : null);
const bare = (column) => column.replace(/^>/, "");

function tableRow(view, row, rows, shows, context) {
  const { selection } = context;
  const cells = row.cells.map((cell, i) => html("td", { class: align(view.columns[i]) }, cell));
  if (row.pair) cells[1].append(pairButton(row.pair, context));
  if (row.mark) cells[0].prepend(html("span", { class: `lab-sign ${row.mark}` }, SIGNS[row.mark]));
  const element = html("tr", {
    class: row.things.length ? "linked" : null,
    onmouseenter: () => selection.preview(row.things),
    onmouseleave: () => selection.preview([]),
    onclick: (event) => {
      if (event.target.closest("button") || !row.things.length) return;
      selection.pin(row.things);
    },
  }, cells);
  shows.add(element, row.things);
  rows.push({ element, text: row.cells.join("\t"), things: row.things });
  if (!row.more.length) return [element];
  const more = html("tr", { class: "lab-more", hidden: true });
  const button = html("button", {
    class: "lab-open", type: "button", "aria-expanded": "false", "aria-label": "details",
    onclick: () => {
      more.hidden = !more.hidden;
      if (!more.childElementCount) {
        more.append(html("td", { colspan: view.columns.length },
          html("table", {}, row.more.map((cells) => moreRow(cells, context)))));
      }
      button.setAttribute("aria-expanded", String(!more.hidden));
      button.textContent = more.hidden ? "▸" : "▾";
    },
  }, "▸");
  cells[0].prepend(button);
  return [element, more];
}

/** "force" or "forbid" for two buffers of one part; it is seen where there is somebody to ask. */
function pairButton({ choice, names }, context) {
  const [producer, consumer, part] = names;
  return html("button", {
    class: "lab-pair", type: "button", "aria-label": `${choice} ${producer} and ${consumer}`,
    title: `compile again and ${choice} this pair in ${part}`,
    onclick: () => context.whatIf?.togglePair(choice, names),
  }, choice);
}

function moreRow(cells, { words }) {
  const last = cells[cells.length - 1];
  const isVerdict = cells.length > 3 && last in SIGNS;
  const shown = isVerdict ? cells.slice(0, -1) : cells;
  const row = html("tr", {}, shown.map((cell) => html("td", {}, cell)));
  words.explain(row.firstElementChild, cells[0]);
  if (isVerdict) row.prepend(html("td", { class: `lab-sign ${last}` }, SIGNS[last]));
  return row;
}

/** A sentence in place of something that is not there. */
export function emptyView(view) {
  return plainView(html("p", { class: "lab-empty" }, view.text), view.text);
}

/** Amounts drawn to scale. */
export function barsView(view) {
  const most = Math.max(...view.rows.map((row) => row.value), 1e-12);
  const rows = view.rows.map((row) => html("div", { class: "lab-bar" },
    html("span", {}, row.label),
    html("span", { class: "lab-bar-track" },
      html("span", { style: `width:${((100 * row.value) / most).toFixed(2)}%` })),
    html("span", { class: "number" }, row.text)));
  const text = view.rows.map((row) => `${row.label}\t${row.text}`).join("\n");
  const note = html("p", { class: "lab-note" }, view.note);
  return plainView(html("div", { class: "lab-bars", tabindex: 0 }, note, rows), text);
}

function plainView(element, text) {
  return { element, light: () => {}, find: () => [], text: () => `${text}\n` };
}
