// Memory: lanes of buffer lifetimes, and what each budget keeps for the backward.

import { html, refill, svg } from "./dom.js";
import { exportButtons } from "./export.js";
import { roving } from "./roving.js";
import { Shows } from "./selection.js";
import { tableView } from "./table.js";

const LANE = 22;
const LEFT = 90;
const CURVE = 64;
const WIDEST_STEP = 46;
const NARROWEST_STEP = 4;
const LONGEST_ROW = 1400;

/** One lane for each storage, steps of the schedule from left to right, and above them the bytes
 * that are alive. */
export function lanesView(view, context) {
  const step = Math.max(NARROWEST_STEP,
    Math.min(WIDEST_STEP, Math.floor(LONGEST_ROW / view.steps.length)));
  const width = LEFT + (view.steps.length + 1) * step + 240;
  const top = CURVE + 26;
  const height = top + view.lanes.length * LANE + 8;
  const drawing = svg("svg", {
    width, height, role: "group", "aria-label": `${view.name}: ${view.note}`,
  });
  const element = html("div", { class: "lab-lanes", tabindex: 0, role: "group", "aria-label": view.name },
    html("p", { class: "lab-note" }, `${view.note} `,
      exportButtons(`memory ${view.name}`, () => ({ element: drawing, width, height }))), drawing);
  const shows = new Shows(element);
  const bars = [];
  drawing.append(...liveCurve(view, step));
  const every = Math.ceil(24 / step);
  view.steps.forEach((name, i) => {
    if (i % every) return;
    drawing.append(svg("text", {
      x: LEFT + (i + 0.5) * step, y: CURVE + 16, class: "sub", "text-anchor": "middle",
    }, String(i), svg("title", {}, name)));
  });
  view.lanes.forEach((lane, i) => {
    const y = top + i * LANE;
    let right = 0;
    drawing.append(svg("text", { x: 4, y: y + 13 }, lane.name));
    lane.bars.forEach((bar, n) => {
      const end = Math.min(bar.last, view.steps.length);
      const x = LEFT + bar.first * step;
      const length = Math.max((end - bar.first + 1) * step - 2, 3);
      right = Math.max(right, x + length);
      const said = [`${bar.name}: ${lane.size}, steps ${bar.first} to ${bar.last}`, bar.note]
        .filter(Boolean).join("\n");
      const drawn = svg("g", {
        class: `lab-lane linked${n % 2 ? " odd" : ""}`, "data-buffer": bar.name,
        role: "button", "aria-label": said,
        onmouseenter: () => context.selection.preview(bar.things),
        onmouseleave: () => context.selection.preview([]),
        onclick: () => context.selection.pin(bar.things),
      },
      svg("title", {}, said),
      svg("rect", { x, y, width: length, height: LANE - 5, rx: 3 }));
      shows.add(drawn, bar.things);
      bars.push({ element: drawn, things: bar.things });
      drawing.append(drawn);
    });
    const takers = lane.bars.length > 1 ? `, then ${lane.bars.slice(1).map((b) => b.name).join(", ")}` : "";
    drawing.append(svg("text", { x: right + 6, y: y + 13, class: "sub" }, `${lane.size}${takers}`));
  });
  roving(element, bars, context.selection);
  return {
    element,
    light: (lit) => shows.light(lit),
    find: () => [],
    text: () => `${view.note}\n${view.lanes.flatMap((lane) => lane.bars.map((bar) => (
      `${bar.name}\t${lane.size}\t${bar.first}-${bar.last}\t${bar.note}`))).join("\n")}\n`,
  };
}

/** Steps up and down with the bytes alive; the peak has its number. */
function liveCurve(view, step) {
  const most = Math.max(...view.live, 1);
  const high = (bytes) => CURVE - (bytes / most) * (CURVE - 16);
  let path = `M${LEFT} ${CURVE}`;
  view.live.forEach((bytes, i) => {
    path += `L${LEFT + i * step} ${high(bytes)}L${LEFT + (i + 1) * step} ${high(bytes)}`;
  });
  path += `L${LEFT + view.live.length * step} ${CURVE}Z`;
  const peak = view.live.indexOf(most);
  return [
    svg("path", { class: "lab-live", d: path }),
    svg("text", { x: 4, y: CURVE - 4, class: "sub" }, "bytes alive"),
    peak < 0 ? null : svg("text", { x: LEFT + (peak + 0.5) * step, y: 12, class: "sub",
      "text-anchor": peak ? "middle" : "start" }, `peak ${view.live_text[peak]}`),
  ].filter(Boolean);
}

/** A slider over the cuts, and below it what each keeps; in a live explorer, letting go compiles. */
export function budgetView(view, context) {
  const last = view.cuts.length - 1;
  const state = view.state || (view.state = { at: view.at });
  const element = html("div", { class: "lab-budget" });
  const said = html("p", { class: "lab-budget-said", role: "status" });
  const body = html("div", { class: "lab-budget-body" });
  const bars = html("div", { class: "lab-budget-bars", "aria-hidden": "true" }, view.cuts.map(
    (cut, i) => html("span", {
      style: `height:${(100 * share(cut, view)).toFixed(1)}%`, title: `${cut.text}, ${cut.again}`,
      onclick: () => { slider.value = last - i; move(); settle(); },
    })));
  const slider = html("input", {
    type: "range", min: 0, max: last, value: last - state.at, "aria-label": "memory budget",
    oninput: () => move(), onchange: () => settle(),
  });
  let table = null;
  const move = () => {
    state.at = last - Number(slider.value);
    const cut = view.cuts[state.at];
    slider.setAttribute("aria-valuetext", `${budgetText(cut)}: ${cut.text} kept`);
    refill(said, html("b", {}, `memory_budget ${budgetText(cut)}`), `  ${cut.text} kept, ${cut.again}`,
      state.at === view.at ? html("span", { class: "lab-soft" }, "  as compiled") : null);
    [...bars.children].forEach((bar, i) => bar.classList.toggle("at", i === state.at));
    table = tableView(tableOf(view, cut), context);
    refill(body, table.element);
  };
  const settle = () => context.whatIf?.setBudget(
    state.at === view.at ? null : view.cuts[state.at].budget);
  element.append(html("p", { class: "lab-note" }, view.note),
    html("div", { class: "lab-budget-head" }, bars, html("div", { class: "lab-budget-scale" },
      html("span", {}, "recompute"), slider, html("span", {}, "keep"))), said, body);
  move();
  return {
    element,
    light: (lit, scroll) => table.light(lit, scroll),
    find: (query) => table.find(query),
    text: () => `${said.textContent}\n${table.text()}`,
  };
}

/** A budget that reaches its cut, to three digits and never below it. */
function budgetText(cut) {
  return String(Math.ceil(cut.budget * 1000) / 1000);
}

function share(cut, view) {
  return cut.bytes / Math.max(view.eager, ...view.cuts.map((each) => each.bytes), 1);
}

/** Values that this cut keeps; those that the compiled one keeps and this does not are marked. */
function tableOf(view, cut) {
  const now = new Set(view.cuts[view.at].saved);
  const kept = new Set(cut.saved);
  const rows = view.values.flatMap(([name, size, why, things], i) => {
    if (!kept.has(i) && !now.has(i)) return [];
    const change = kept.has(i) ? (now.has(i) ? "kept" : "kept too") : "run again instead";
    const mark = kept.has(i) ? (now.has(i) ? "" : "warn") : "no";
    return [{ cells: [name, size, change, why], things, more: [], mark }];
  });
  return { columns: ["value", ">size", "here", "as compiled, because"], rows, note: "" };
}
