// The explorer: header, rail, panes and trail around one document (see model.py).

import { copyText, html, refill } from "./dom.js";
import { graphView } from "./graph.js";
import { guardsView } from "./guards.js";
import { keepKeys, keyboard } from "./keys.js";
import { Links } from "./links.js";
import { whenLive } from "./live.js";
import { budgetView, lanesView } from "./memory.js";
import { unpack } from "./pack.js";
import { deepLinks, togglePresenter } from "./present.js";
import { Selection } from "./selection.js";
import { stepsView } from "./steps.js";
import { barsView, emptyView, tableView } from "./table.js";
import { textView } from "./text.js";
import { timelineView } from "./time.js";
import { followTheme, toggleTheme } from "./theme.js";
import { Trail } from "./trail.js";
import { WhatIf } from "./whatif.js";
import { Words } from "./words.js";

const DRAW = {
  text: textView,
  graph: graphView,
  table: tableView,
  lanes: lanesView,
  bars: barsView,
  budget: budgetView,
  guards: guardsView,
  steps: stepsView,
  timeline: timelineView,
  empty: emptyView,
};
const MOST_PANES = 4;

/**
 * Draw a document, packed (see pack.py), inside `root`, in place of what is there; returns the explorer.  Where a Python process
 * answers on `channel`, the explorer can ask it "what if".
 */
export function render(root, packed, channel = null) {
  const start = performance.now();
  const explorer = new Explorer(root, unpack(packed));
  performance.measure("inductor_lab: draw", { start });
  const held = new WeakRef(explorer);
  if (channel) whenLive(channel, (line) => held.deref()?.connect(line), () => !held.deref());
  return explorer;
}

class Explorer {
  constructor(root, doc) {
    this.root = root;
    this.doc = doc;
    this.links = new Links(doc.links);
    this.selection = new Selection(this.links);
    this.words = new Words(root, doc.words);
    this.context = { links: this.links, selection: this.selection, words: this.words, whatIf: null };
    this.orderPanes();
    this.chosen = new Map();
    this.slots = [];
    this.area = html("main", { class: "lab-panes" });
    this.trail = new Trail(this);
    root.classList.add("lab-explorer");
    keepKeys(root);
    followTheme(root);
    this.head = this.header();
    this.nav = html("nav", { class: "lab-rail", "aria-label": "phases" });
    this.fillRail();
    refill(root, this.head, html("div", { class: "lab-middle" }, this.nav, this.area),
      this.trail.element);
    doc.open.forEach((id) => this.addSlot(id));
    this.focus(this.slots[0]);
    this.selection.listen((lit, things, scroll) => this.light(lit, scroll));
    keyboard(this);
    deepLinks(this);
  }

  orderPanes() {
    this.order = this.doc.groups.flatMap((group) => group.panes);
  }

  /** There is a Python process to ask. */
  connect(line) {
    if (this.context.whatIf) return;
    this.context.whatIf = new WhatIf(this, line);
    this.head.after(this.context.whatIf.element);
    this.root.classList.add("live");
  }

  /** Panes that were not there from the start; the first of them is shown if they are `wanted`. */
  addGroup(title, panes, wanted = true) {
    this.removeGroup(title, false);
    const ids = Object.keys(panes);
    this.doc.groups.unshift({ title, panes: ids });
    Object.assign(this.doc.panes, panes);
    this.orderPanes();
    this.fillRail();
    const shown = this.slots.filter((slot) => ids.includes(slot.id));
    for (const slot of shown) this.fill(slot, slot.id);
    if (!shown.length && wanted) this.fill(this.slots[1] || this.slots[0], ids[0]);
    else for (const slot of this.slots) if (!shown.includes(slot)) this.fill(slot, slot.id);
  }

  removeGroup(title, settle = true) {
    const gone = this.doc.groups.find((group) => group.title === title);
    if (!gone) return;
    this.doc.groups.splice(this.doc.groups.indexOf(gone), 1);
    if (!settle) return;
    this.orderPanes();
    this.fillRail();
    for (const slot of this.slots) {
      this.fill(slot, gone.panes.includes(slot.id) ? this.doc.open[1] || this.order[0] : slot.id);
    }
  }

  header() {
    const facts = this.doc.facts.map((fact) => this.words.explain(html("button", {
      type: "button", class: `lab-fact ${fact.mark}`, title: `show ${fact.pane}`,
      onclick: () => this.show(fact.pane, true),
    }, html("b", {}, fact.value), ` ${fact.label}`), fact.label, "fact"));
    this.search = html("input", {
      type: "search", placeholder: "search  /", "aria-label": "search in all panes",
      oninput: () => this.find(this.search.value),
      onkeydown: (event) => event.key === "Enter" && this.nextFound(event.shiftKey ? -1 : 1),
    });
    this.elsewhere = html("div", {
      class: "lab-elsewhere", hidden: true, role: "group", "aria-label": "found in closed panes",
    });
    this.foundCount = html("span", { class: "lab-found-count", role: "status" });
    return html("header", { class: "lab-header" },
      html("h1", {}, this.doc.title, html("span", { class: "lab-subtitle" }, this.doc.subtitle)),
      html("div", { class: "lab-facts" }, facts),
      html("div", { class: "lab-actions" }, this.search, this.foundCount,
        html("button", {
          type: "button", title: "light or dark", "aria-label": "light or dark",
          onclick: () => toggleTheme(this.root),
        }, "◐"),
        html("button", {
          type: "button", title: "large type (P)", "aria-label": "large type",
          onclick: () => togglePresenter(this.root),
        }, "A"),
        html("button", {
          type: "button", title: "keys (?)", "aria-label": "keys", onclick: () => this.help(),
        }, "?")), this.elsewhere);
  }

  fillRail() {
    this.railButtons = new Map();
    const groups = this.doc.groups.filter((group) => group.panes.length).map((group) => [
      group.title ? html("h2", {}, group.title) : null,
      ...group.panes.map((id) => this.railButton(id)),
    ]);
    refill(this.nav, groups.flat());
  }

  railButton(id) {
    const pane = this.doc.panes[id];
    const button = html("button", {
      type: "button", "data-pane": id, title: "Shift-click opens it beside",
      onclick: (event) => (event.shiftKey ? this.addSlot(id) : this.show(id)),
    },
    html("span", { class: "lab-rail-title" }, pane.title),
    pane.problem ? html("span", { class: "lab-problem" }, `● ${pane.problem}`) : null,
    html("span", { class: "lab-rail-count" }, pane.count),
    html("span", { class: "lab-rail-time" }, seconds(pane.seconds)));
    this.railButtons.set(id, button);
    return this.words.explain(button, pane.title);
  }

  /** One more pane beside the others, or the last one changed when there are enough. */
  addSlot(id) {
    if (this.slots.length >= MOST_PANES) {
      this.fill(this.slots[this.slots.length - 1], id);
      return this.slots[this.slots.length - 1];
    }
    const slot = { element: html("section", { class: "lab-pane" }), view: null, id: null };
    slot.element.addEventListener("focusin", () => this.focus(slot));
    slot.element.addEventListener("pointerdown", () => this.focus(slot));
    this.slots.push(slot);
    this.area.append(slot.element);
    this.area.dataset.count = this.slots.length;
    this.fill(slot, id);
    return slot;
  }

  closeSlot(slot) {
    if (this.slots.length === 1) return;
    this.slots.splice(this.slots.indexOf(slot), 1);
    slot.element.remove();
    this.area.dataset.count = this.slots.length;
    this.focus(this.slots[0]);
  }

  focus(slot) {
    this.focused = slot;
    for (const each of this.slots) each.element.classList.toggle("focused", each === slot);
    this.markRail();
  }

  markRail() {
    for (const [id, button] of this.railButtons) {
      const shown = this.slots.some((slot) => slot.id === id);
      button.classList.toggle("shown", shown);
      if (this.focused?.id === id) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  /** Show a pane in the focused slot, or where it is shown already; `beside` spares the first. */
  show(id, beside = false, view = null) {
    if (view !== null) this.chosen.set(id, view);
    const there = this.slots.find((slot) => slot.id === id);
    const spared = beside && this.slots.length > 1 && this.focused === this.slots[0];
    const slot = there || (spared ? this.slots[1] : this.focused);
    if (!there || view !== null) this.fill(slot, id);
    this.focus(slot);
    return slot;
  }

  fill(slot, id) {
    const pane = this.doc.panes[id];
    const chosen = Math.min(this.chosen.get(id) || 0, pane.views.length - 1);
    slot.id = id;
    slot.view = DRAW[pane.views[chosen].kind](pane.views[chosen], this.context);
    slot.element.setAttribute("aria-label", this.title(id));
    slot.element.dataset.pane = id;
    const body = html("div", { class: "lab-body" },
      pane.note ? html("p", { class: "lab-note" }, pane.note) : null, slot.view.above,
      slot.view.element);
    for (const head of body.querySelectorAll("th")) {
      this.words.explain(head, head.textContent, pane.title);
    }
    refill(slot.element, this.paneHead(slot, pane, chosen), body);
    if (slot.view.fit) slot.view.fit();
    this.markRail();
    if (this.selection.things.length) this.selection.tell(true);
  }

  paneHead(slot, pane, chosen) {
    const choose = html("select", {
      "aria-label": "what this pane shows", onchange: () => this.fill(slot, choose.value),
    }, this.order.map((id) => html("option", { value: id, selected: id === slot.id },
      this.title(id))));
    const tabs = pane.views.map((view, i) => this.words.explain(html("button", {
      type: "button", role: "tab", "aria-selected": String(i === chosen),
      onclick: () => {
        this.chosen.set(slot.id, i);
        this.fill(slot, slot.id);
        slot.view.element.focus({ preventScroll: true });
      },
    }, view.name), view.name, pane.title));
    const copy = html("button", {
      type: "button", title: "copy the text of this pane", "aria-label": "copy",
      onclick: async () => {
        await copyText(slot.view.text());
        copy.textContent = "copied";
        setTimeout(() => { copy.textContent = "copy"; }, 900);
      },
    }, "copy");
    const close = html("button", {
      type: "button", title: "close this pane", "aria-label": "close",
      onclick: () => this.closeSlot(slot),
    }, "×");
    return html("div", { class: "lab-pane-head" }, choose,
      html("div", { role: "tablist", class: "lab-tabs" }, pane.views.length > 1 ? tabs : []),
      html("span", { class: "lab-space" }), slot.view.actions || [], copy, close);
  }

  /** A pane's title with the group it stands in: `forward · code`. */
  title(id) {
    const group = this.doc.groups.find((each) => each.panes.includes(id));
    const own = this.doc.panes[id].title;
    return group && group.title ? `${group.title} · ${own}` : own;
  }

  light(lit, scroll) {
    for (const slot of this.slots) slot.view.light(lit, scroll);
    this.root.classList.toggle("has-pin", this.selection.pinned.length > 0);
  }

  find(query) {
    for (const element of this.found || []) element.element.classList.remove("found", "at");
    const wanted = query.trim().toLowerCase();
    this.findElsewhere(wanted);
    this.found = wanted ? this.slots.flatMap((slot) => slot.view.find(wanted)
      .map((element) => ({ slot, element }))) : [];
    for (const { element } of this.found) element.classList.add("found");
    this.at = -1;
    this.foundCount.textContent = wanted ? `${this.found.length} found` : "";
    if (this.found.length) this.nextFound(1);
  }

  /** Panes that are closed and hold what is searched for, as a list to open them from. */
  findElsewhere(wanted) {
    const open = new Set(this.slots.map((slot) => slot.id));
    const places = wanted ? this.order.filter((id) => !open.has(id)).flatMap((id) => {
      const counts = this.doc.panes[id].views.map((view) => occurrences(view, wanted));
      const most = counts.indexOf(Math.max(...counts));
      return counts[most] ? [{ id, view: most, count: counts.reduce((a, b) => a + b) }] : [];
    }) : [];
    refill(this.elsewhere, places.map(({ id, view, count }) => html("button", {
      type: "button", onclick: () => {
        this.show(id, false, view);
        this.find(this.search.value);
      },
    }, `${this.title(id)}: ${count}`)));
    this.elsewhere.hidden = !places.length;
  }

  nextFound(step) {
    if (!this.found?.length) return;
    this.found[this.at]?.element.classList.remove("at");
    this.at = (this.at + step + this.found.length) % this.found.length;
    const { slot, element } = this.found[this.at];
    element.classList.add("at");
    this.focus(slot);
    this.foundCount.textContent = `${this.at + 1} of ${this.found.length}`;
    if (slot.view.showElement) slot.view.showElement(element);
    else element.scrollIntoView({ block: "nearest" });
  }

  help() {
    const open = this.root.querySelector(".lab-help");
    if (open) open.remove();
    else this.root.append(helpPanel());
  }
}

const KEYS = [
  ["hover", "light up what a line or box came from and became"],
  ["click, Enter", "pin it; again to let go"],
  ["Esc", "clear"],
  ["[ ]", "previous and next phase in the focused pane"],
  ["/", "search; Enter for the next; closed panes are named with what they hold"],
  ["d", "the diff, where there is one"],
  ["f + -", "fit and zoom a graph"],
  ["n p", "next and previous box of a graph"],
  ["arrows", "line by line, or move a graph"],
  ["P", "large type, for an audience"],
  ["?", "this list"],
];

function helpPanel() {
  const rows = KEYS.map(([key, what]) => html("tr", {},
    html("td", {}, html("kbd", {}, key)), html("td", {}, what)));
  const panel = html("div", { class: "lab-help", role: "dialog", "aria-label": "keys" },
    html("table", {}, rows));
  panel.addEventListener("click", () => panel.remove());
  return panel;
}

/** How many lines, rows or boxes of a view hold a text (in lower case). */
function occurrences(view, wanted) {
  const holds = (text) => String(text).toLowerCase().includes(wanted);
  const texts = {
    text: () => view.blocks.flatMap((block) => block.lines.map((line) => line[0])),
    table: () => view.rows.flatMap((row) => [row.cells, ...row.more]),
    graph: () => view.items.map((item) => `${item[1]} ${item[2]}`),
    guards: () => view.entries.flatMap((entry) => entry.checks.map((check) => check[0])),
    lanes: () => view.lanes.flatMap((lane) => lane.bars.map((bar) => bar.name)),
    steps: () => view.texts,
  }[view.kind];
  return texts ? texts().filter(holds).length : 0;
}

function seconds(value) {
  if (value === null || value === undefined) return "";
  return value >= 1 ? `${value.toFixed(2)} s` : `${(1000 * value).toFixed(value < 0.01 ? 1 : 0)} ms`;
}
