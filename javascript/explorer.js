// The explorer: header, rail, panes and trail around one document (see model.py).

import { budgetView } from "./budget.js";
import { copyText, html, refill, svg } from "./dom.js";
import { graphView } from "./graph.js";
import { guardsView } from "./guards.js";
import { helpPanel } from "./help.js";
import { keepKeys, keyboard } from "./keys.js";
import { Links } from "./links.js";
import { whenLive } from "./live.js";
import { deepLinks, toggleFullScreen, togglePresenter } from "./present.js";
import { oneStop } from "./roving.js";
import { say, speak } from "./say.js";
import { Selection } from "./selection.js";
import { resizable } from "./split.js";
import { stepsView } from "./steps.js";
import { tableTree } from "./table.js";
import { textView } from "./text.js";
import { Search } from "./search.js";
import { followTheme, toggleTheme } from "./theme.js";
import { Trail } from "./trail.js";
import { treeView } from "./view.js";
import { unzipped } from "./unzip.js";
import { WhatIf } from "./whatif.js";
import { Words } from "./words.js";

/**
 * @import {
 *   Connection, Context, Document, Drawn, Fact, Listener, Pane, Slot, View,
 * } from "./types.d.ts"
 */

/**
 * @param {View} view
 * @param {Context} context
 * @returns {Drawn}
 */
function drawn(view, context) {
  switch (view.kind) {
    case "text": return textView(view, context);
    case "graph": return graphView(view, context);
    case "tree": return treeView(view, context);
    case "table": return treeView({ kind: "tree", name: view.name, tree: tableTree(view) }, context);
    case "budget": return budgetView(view, context);
    case "guards": return guardsView(view, context);
    case "steps": return stepsView(view, context);
  }
}

const MOST_PANES = 4;

/**
 * Draw a document (see model.py) inside `root` and return the explorer.  If a Python process
 * answers on `channel`, the explorer is live: it can send "what if" requests.
 *
 * @param {HTMLElement} root
 * @param {Document} doc
 * @param {string | null} channel
 */
export function render(root, doc, channel = null) {
  const start = performance.now();
  const explorer = new Explorer(root, doc);
  performance.measure("inductor_lab: draw", { start });
  const held = new WeakRef(explorer);
  if (channel) whenLive(channel, (line) => held.deref()?.connect(line), () => !held.deref());
  return explorer;
}

/**
 * The same for a compressed document (see unzip.js).
 *
 * @param {HTMLElement} root
 * @param {string} zipped
 * @param {string | null} channel
 */
export async function renderZipped(root, zipped, channel = null) {
  return render(root, JSON.parse(await unzipped(zipped)), channel);
}

export class Explorer {
  /**
   * @param {HTMLElement} root
   * @param {Document} doc
   */
  constructor(root, doc) {
    this.root = root;
    this.doc = doc;
    speak(doc.texts);
    this.links = new Links(doc.links);
    this.selection = new Selection(this.links);
    this.words = new Words(root, doc.words);
    /** @type {Context} */
    this.context = { links: this.links, selection: this.selection, words: this.words, whatIf: null };
    /** @type {string[]} */
    this.order = [];
    this.orderPanes();
    /** @type {Map<string, number>} */
    this.chosen = new Map();
    /** @type {Slot[]} */
    this.slots = [];
    this.search = new Search(this);
    /** @type {(() => void) | null} */
    this.closeHelp = null;
    /** Called when another pane gets the focus, or the focused one shows something else. */
    this.moved = () => {};
    /** @type {Map<string, HTMLElement>} */
    this.railButtons = new Map();
    this.area = html("main", { class: "lab-panes" });
    this.trail = new Trail(this);
    root.classList.add("lab-explorer");
    root.tabIndex = -1; // a click on any part of it gives it the focus
    keepKeys(root);
    followTheme(root);
    this.head = this.header();
    this.nav = html("nav", { class: "lab-rail", "aria-label": say("phases") });
    oneStop(this.nav, (place) => this.railButtons.get(this.order[place]));
    this.fillRail();
    refill(root, this.head, html("div", { class: "lab-middle" }, this.nav, resizable(this.area)),
      this.trail.element);
    doc.open.forEach((id) => this.addSlot(id));
    /** @type {Slot} */
    this.focused = this.slots[0];
    this.focus(this.slots[0]);
    this.selection.listen((lit, _, scroll) => this.light(lit, scroll));
    keyboard(this);
    deepLinks(this);
    buildForPrinting(new WeakRef(this));
  }

  orderPanes() {
    this.order = this.doc.groups.flatMap((group) => group.panes);
  }

  /**
   * Make the explorer live: a Python process answers on this connection.
   *
   * @param {Connection} line
   */
  connect(line) {
    if (this.context.whatIf) return;
    this.context.whatIf = new WhatIf(this, line);
    this.head.after(this.context.whatIf.element);
    this.root.classList.add("live");
  }

  /**
   * Add panes; show the first one if they are `wanted`.
   *
   * @param {string} title
   * @param {Record<string, Pane>} panes
   */
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

  /**
   * Replace panes of the document, and show the first one.
   *
   * @param {Record<string, Pane>} panes
   */
  replacePanes(panes) {
    Object.assign(this.doc.panes, panes);
    this.fillRail();
    const ids = Object.keys(panes);
    const shown = this.slots.filter((slot) => ids.includes(slot.id));
    for (const slot of shown) this.fill(slot, slot.id);
    if (!shown.length) this.fill(this.slots[1] || this.slots[0], ids[0]);
  }

  /** @param {string} title */
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
      type: "button", class: `lab-fact ${fact.mark}`, title: say("show {pane}", { pane: fact.pane }),
      onclick: () => this.enter(this.show(fact.pane, true)),
    }, factParts(fact)), fact.label, "fact"));
    return html("header", { class: "lab-header" },
      html("h1", {}, this.doc.title, html("span", { class: "lab-subtitle" }, this.doc.subtitle)),
      html("div", { class: "lab-facts" }, facts),
      html("div", { class: "lab-actions" }, this.search.field, this.search.count,
        html("button", {
          type: "button", title: say("light or dark theme"), "aria-label": say("light or dark theme"),
          onclick: () => toggleTheme(this.root),
        }, "◐"),
        html("button", {
          type: "button", title: say("presentation mode (P)"), "aria-label": say("presentation mode"),
          onclick: () => togglePresenter(this.root),
        }, "A"),
        html("button", {
          type: "button", title: say("full screen (F)"), "aria-label": say("full screen"),
          hidden: !document.fullscreenEnabled, onclick: () => toggleFullScreen(this.root),
        }, corners()),
        html("button", {
          type: "button", title: say("keyboard shortcuts (?)"), "aria-label": say("keyboard shortcuts"), onclick: () => this.help(),
        }, "?")), this.search.elsewhere);
  }

  fillRail() {
    const held = /** @type {HTMLElement | null} */ (this.nav.querySelector(":focus"));
    this.railButtons = new Map();
    const groups = this.doc.groups.filter((group) => group.panes.length).map((group) => [
      group.title ? html("h2", {}, say(group.title)) : null,
      ...group.panes.map((id) => this.railButton(id)),
    ]);
    refill(this.nav, groups.flat());
    const again = held && (this.railButtons.get(held.dataset.pane ?? "") ?? this.nav.querySelector("button"));
    again?.focus({ preventScroll: true });
  }

  /** @param {string} id */
  railButton(id) {
    const pane = this.doc.panes[id];
    const button = html("button", {
      type: "button", "data-pane": id, title: say("Shift-click to open it in another pane"),
      onclick: (event) => this.enter(event.shiftKey ? this.addSlot(id) : this.show(id)),
    },
    html("span", { class: "lab-rail-title" }, say(pane.title)),
    pane.problem ? html("span", { class: "lab-problem" }, `● ${say(pane.problem)}`) : null,
    html("span", { class: "lab-rail-count" }, pane.count),
    html("span", { class: "lab-rail-time" }, seconds(pane.seconds)));
    this.railButtons.set(id, button);
    return this.words.explain(button, pane.title);
  }

  /**
   * Open one more slot, or reuse the last slot if there are `MOST_PANES`.
   *
   * @param {string} id
   */
  addSlot(id) {
    if (this.slots.length >= MOST_PANES) {
      this.fill(this.slots[this.slots.length - 1], id);
      return this.slots[this.slots.length - 1];
    }
    const slot = { element: html("section", { class: "lab-pane" }), view: this.viewOf(id), id };
    slot.element.addEventListener("focusin", () => this.focus(slot));
    slot.element.addEventListener("pointerdown", () => this.focus(slot));
    this.slots.push(slot);
    this.area.append(slot.element);
    this.area.dataset.count = String(this.slots.length);
    this.fill(slot, id, slot.view);
    return slot;
  }

  /** @param {Slot} slot */
  closeSlot(slot) {
    if (this.slots.length === 1) return;
    this.slots.splice(this.slots.indexOf(slot), 1);
    slot.element.remove();
    this.area.dataset.count = String(this.slots.length);
    this.enter(this.slots[0]);
  }

  /**
   * Give the keyboard focus to a slot that the user opened.
   *
   * @param {Slot} slot
   */
  enter(slot) {
    this.focus(slot);
    slot.view.element.focus({ preventScroll: true });
  }

  /** @param {Slot} slot */
  focus(slot) {
    this.focused = slot;
    for (const each of this.slots) each.element.classList.toggle("focused", each === slot);
    this.markRail();
  }

  markRail() {
    for (const [id, button] of this.railButtons) {
      const shown = this.slots.some((slot) => slot.id === id);
      button.classList.toggle("shown", shown);
      const current = this.focused?.id === id;
      button.tabIndex = current ? 0 : -1;
      if (current) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
    this.moved();
  }

  /**
   * Show a pane in its slot if it is open, otherwise in the focused slot.  With `keepFirst`, the first
   * slot is not replaced.
   *
   * @param {string} id
   * @param {boolean} keepFirst
   * @param {number | null} view
   */
  show(id, keepFirst = false, view = null) {
    if (view !== null) this.chosen.set(id, view);
    const there = this.slots.find((slot) => slot.id === id);
    const spared = keepFirst && this.slots.length > 1 && this.focused === this.slots[0];
    const slot = there || (spared ? this.slots[1] : this.focused);
    if (!there || view !== null) this.fill(slot, id);
    this.focus(slot);
    const narrow = matchMedia("(max-width: 820px)").matches; // here the panes scroll with the page
    if (narrow) slot.element.scrollIntoView({ block: "nearest" });
    return slot;
  }

  /** @param {string} id */
  chosenOf(id) {
    return Math.min(this.chosen.get(id) || 0, this.doc.panes[id].views.length - 1);
  }

  /** @param {string} id */
  viewOf(id) {
    return drawn(this.doc.panes[id].views[this.chosenOf(id)], this.context);
  }

  /**
   * @param {Slot} slot
   * @param {string} id
   */
  fill(slot, id, view = this.viewOf(id)) {
    const pane = this.doc.panes[id];
    const held = slot.element.querySelector(":focus");
    slot.id = id;
    slot.view = view;
    if (!view.element.hasAttribute("tabindex")) view.element.tabIndex = -1;
    slot.element.setAttribute("aria-label", this.title(id));
    slot.element.dataset.pane = id;
    const body = html("div", { class: "lab-body" },
      pane.note ? html("p", { class: "lab-note" }, pane.note) : null, slot.view.above,
      slot.view.element);
    for (const head of body.querySelectorAll("th")) {
      this.words.explain(head, head.dataset.term || head.textContent || "", pane.title);
    }
    const head = this.paneHead(slot, pane, this.chosenOf(id));
    refill(slot.element, head, body);
    if (held?.parentElement?.className === head.className) head.querySelector("select")?.focus();
    else if (held) view.element.focus({ preventScroll: true });
    if (slot.view.fit) slot.view.fit();
    this.markRail();
    if (this.selection.things.length) this.selection.tell(true);
  }

  /**
   * @param {Slot} slot
   * @param {Pane} pane
   * @param {number} chosen the place of the view that is shown
   */
  paneHead(slot, pane, chosen) {
    const choose = html("select", {
      "aria-label": say("content of this pane"),
      onchange: () => { this.fill(slot, choose.value); },
    }, this.order.map((id) => html("option", { value: id, selected: id === slot.id },
      this.title(id))));
    const tabs = pane.views.map((view, i) => this.words.explain(html("button", {
      type: "button", role: "tab", "aria-selected": String(i === chosen), tabindex: i === chosen ? 0 : -1,
      onclick: () => this.enter(this.show(slot.id, false, i)),
    }, say(view.name)), view.name, pane.title));
    const row = html("div", { role: "tablist", class: "lab-tabs" }, pane.views.length > 1 ? tabs : []);
    oneStop(row, (i) => {
      this.show(slot.id, false, i);
      return /** @type {HTMLElement} */ (slot.element.querySelectorAll("[role=tab]")[i]);
    });
    const copy = html("button", {
      type: "button", title: say("copy the text of this pane"), "aria-label": say("copy"),
      onclick: async () => {
        await copyText(slot.view.text());
        copy.textContent = say("copied");
        setTimeout(() => { copy.textContent = say("copy"); }, 900);
      },
    }, say("copy"));
    const close = html("button", {
      type: "button", title: say("close this pane"), "aria-label": say("close"),
      onclick: () => this.closeSlot(slot),
    }, "×");
    return html("div", { class: "lab-pane-head" }, choose, row, html("span", { class: "lab-space" }), slot.view.actions || [], copy, close);
  }

  /**
   * The title of a pane with its group: `forward · code`.
   *
   * @param {string} id
   */
  title(id) {
    const group = this.doc.groups.find((each) => each.panes.includes(id));
    const own = say(this.doc.panes[id].title);
    return group?.title ? `${say(group.title)} · ${own}` : own;
  }

  /** @type {(lit: Parameters<Listener>[0], scroll?: boolean) => void} */
  light(lit, scroll) {
    for (const slot of this.slots) slot.view.light(lit, scroll);
    this.root.classList.toggle("has-pin", this.selection.pinned.length > 0);
  }

  help() {
    if (this.closeHelp) {
      this.closeHelp();
      return;
    }
    const before = /** @type {HTMLElement | null} */ (this.root.querySelector(":focus"));
    const panel = helpPanel(() => this.closeHelp?.());
    this.closeHelp = () => {
      this.closeHelp = null;
      panel.remove();
      before?.focus({ preventScroll: true });
    };
    this.root.append(panel);
    panel.focus({ preventScroll: true });
  }
}

/**
 * Build the whole open views before the page is printed.  The listener leaves when the explorer is
 * gone.
 *
 * @param {WeakRef<Explorer>} held
 */
function buildForPrinting(held) {
  addEventListener("beforeprint", function build() {
    const explorer = held.deref();
    if (explorer) explorer.slots.forEach(({ view }) => view.whole?.());
    else removeEventListener("beforeprint", build);
  });
}

/**
 * `2 graphs` for a count; `peak memory: 4.0 kB` for any other value.
 *
 * @param {Fact} fact
 */
function factParts({ label, value }) {
  const shown = html("b", {}, value);
  if (/^[\d,]+$/.test(value)) return [shown, ` ${say(label)}`];
  const [before, after] = say("{label}: {value}", { label: say(label), value: "\n" }).split("\n");
  return [before, shown, after];
}

/** The icon for full screen, which few fonts have. */
function corners() {
  return svg("svg", { viewBox: "0 0 12 12", width: 11, height: 11, "aria-hidden": "true" },
    svg("path", {
      d: "M1 4V1h3M8 1h3v3M11 8v3H8M4 11H1V8", fill: "none", stroke: "currentColor", "stroke-width": 1.5,
    }));
}

/** @param {number | null | undefined} value */
function seconds(value) {
  if (value === null || value === undefined) return "";
  return value >= 1 ? `${value.toFixed(2)} s` : `${(1000 * value).toFixed(value < 0.01 ? 1 : 0)} ms`;
}
