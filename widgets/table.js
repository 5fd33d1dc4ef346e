// Tables, empty states, bars and lanes.

import { html, svg } from "./dom.js";
import { Shows } from "./selection.js";

const SIGNS = { ok: "✓", no: "✗", warn: "!" };

/** A table whose rows may be opened for more. */
export function tableView(view, context) {
  const element = html("div", { class: "lab-table", tabindex: 0 });
  const shows = new Shows(element);
  const rows = [];
  const body = html("tbody", {});
  view.rows.forEach((row) => body.append(...tableRow(view, row, rows, shows, context)));
  const heads = view.columns.map((c) => html("th", { scope: "col", class: align(c) }, bare(c)));
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
  rows.push({ element, text: row.cells.join("\t") });
  if (!row.more.length) return [element];
  const more = html("tr", { class: "lab-more", hidden: true });
  const button = html("button", {
    class: "lab-open", type: "button", "aria-expanded": "false", "aria-label": "details",
    onclick: () => {
      more.hidden = !more.hidden;
      if (!more.childElementCount) {
        more.append(html("td", { colspan: view.columns.length },
          html("table", {}, row.more.map(moreRow))));
      }
      button.setAttribute("aria-expanded", String(!more.hidden));
      button.textContent = more.hidden ? "▸" : "▾";
    },
  }, "▸");
  cells[0].prepend(button);
  return [element, more];
}

/** "force" or "forbid" for one pair of buffers; it is seen where there is somebody to ask. */
function pairButton({ choice, names }, context) {
  return html("button", {
    class: "lab-pair", type: "button", "aria-label": `${choice} ${names.join(" and ")}`,
    title: `compile again and ${choice} this pair, in every part that has it`,
    onclick: () => context.whatIf?.togglePair(choice, names),
  }, choice);
}

function moreRow(cells) {
  const last = cells[cells.length - 1];
  const isVerdict = cells.length > 3 && last in SIGNS;
  const shown = isVerdict ? cells.slice(0, -1) : cells;
  const row = html("tr", {}, shown.map((cell) => html("td", {}, cell)));
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

const LANE = 22;
const LEFT = 90;
const STEP = 46;

/** Lifetimes of buffers: one lane each, steps of the schedule from left to right. */
export function lanesView(view, context) {
  const width = LEFT + (view.steps.length + 1) * STEP + 240;
  const height = (view.lanes.length + 1) * LANE + 8;
  const drawing = svg("svg", { width, height, role: "img", "aria-label": "buffer lifetimes" });
  const element = html("div", { class: "lab-lanes", tabindex: 0 },
    html("p", { class: "lab-note" }, view.note), drawing);
  const shows = new Shows(element);
  view.steps.forEach((step, i) => drawing.append(
    svg("text", { x: LEFT + (i + 0.5) * STEP, y: 14, class: "sub", "text-anchor": "middle" },
      String(i), svg("title", {}, step))));
  view.lanes.forEach((lane, i) => {
    const y = (i + 1) * LANE + 2;
    const x = LEFT + lane.first * STEP;
    const length = (Math.min(lane.last, view.steps.length) - lane.first + 1) * STEP - 4;
    const row = svg("g", {
      class: "lab-lane linked",
      onmouseenter: () => context.selection.preview(lane.things),
      onmouseleave: () => context.selection.preview([]),
      onclick: () => context.selection.pin(lane.things),
    },
    svg("title", {}, `${lane.name}: ${lane.size}, steps ${lane.first} to ${lane.last}`),
    svg("text", { x: 4, y: y + 13 }, lane.name),
    svg("rect", { x, y, width: Math.max(length, 6), height: LANE - 5, rx: 3 }),
    svg("text", { x: x + Math.max(length, 6) + 6, y: y + 13, class: "sub" },
      lane.note ? `${lane.size}, ${lane.note}` : lane.size));
    shows.add(row, lane.things);
    drawing.append(row);
  });
  const lines = view.lanes.map((l) => `${l.name}\t${l.size}\t${l.first}-${l.last}\t${l.note}`);
  return {
    element,
    light: (lit) => shows.light(lit),
    find: () => [],
    text: () => `${view.note}\n${lines.join("\n")}\n`,
  };
}
