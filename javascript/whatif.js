// What if: change options, recompile, and show the differences; requests for measurements.

import { countSeconds, html, refill } from "./dom.js";
import { say } from "./say.js";

/** @import { Change, Connection, Explorer, Request } from "./types.d.ts" */

/** @typedef {[producer: string, consumer: string, part: string]} Pair */

/**
 * The bar under the header: the current changes, the list of changes, measurements, and the verdict.
 * A document without `switches` (a compilation by stock) has measurements only.
 */
export class WhatIf {
  /**
   * @param {Explorer} explorer
   * @param {Connection} line
   */
  constructor(explorer, line) {
    this.explorer = explorer;
    this.line = line;
    /** @type {Map<string, Change>} */
    this.changes = new Map();
    this.asked = 0;
    /** @type {Map<string, Request>} */
    this.lower = new Map();
    this.verdict = html("span", { class: "lab-verdict", role: "status" });
    this.chips = html("span", { class: "lab-chips" });
    this.choice = this.chooser();
    const bench = this.measureButton("bench", "bench",
      say("benchmark against eager and stock torch.compile (lab.bench)"));
    const changes = [html("span", { class: "lab-whatif-title" }, say("What if")), this.chips,
      this.choice, bench];
    this.element = html("div", { class: "lab-whatif" },
      explorer.doc.switches.length ? changes : null,
      this.measureButton("step memory", "memory",
        say("memory of one step with eager mode, stock and inductor_lab (lab.memory)")),
      this.verdict);
  }

  /**
   * @param {string} label
   * @param {string} show the request
   * @param {string} title
   */
  measureButton(label, show, title) {
    return html("button", {
      type: "button", title,
      onclick: () => this.showMore({ show }, "measuring; this also compiles with stock"),
    }, say(label));
  }

  chooser() {
    const groups = this.explorer.doc.switches.map(({ title, changes }) => html("optgroup", {
      label: say(title),
    }, changes.map(([label, change, meaning]) => option(label, change, meaning))));
    groups.push(html("optgroup", { label: say("also show") }, LOWER.map(
      ([label, request, meaning]) => option(say(label), request, say(meaning)))));
    const select = html("select", {
      "aria-label": say("choose a change and recompile"),
      onchange: () => {
        const label = select.selectedOptions[0].dataset.label ?? "";
        const chosen = JSON.parse(select.value);
        select.selectedIndex = 0;
        if (chosen.show) this.showLower(chosen);
        else this.add(label, chosen);
      },
    }, html("option", { value: "" }, say("choose a change…")), groups);
    return select;
  }

  /**
   * Forbid or force a pair; repeating the choice, or choosing the opposite, removes it.
   *
   * @param {"forbid" | "force"} choice
   * @param {Pair} pair
   */
  togglePair(choice, pair) {
    const [producer, consumer, part] = pair;
    const what = `${producer} + ${consumer} (${part})`;
    const label = `${say(choice)} ${what}`;
    const opposite = `${say(choice === "force" ? "forbid" : "force")} ${what}`;
    if (this.changes.has(opposite)) this.drop(opposite);
    else if (this.changes.has(label)) this.drop(label);
    else this.add(label, { [choice]: [pair] });
  }

  /**
   * @param {string} label
   * @param {Change} change
   */
  add(label, change) {
    const [[name, value]] = Object.entries(change);
    for (const [other, old] of this.changes) {
      if (!Array.isArray(value) && name in old) this.changes.delete(other);
    }
    this.changes.set(label, change);
    this.run();
  }

  /** @param {string} label */
  drop(label) {
    this.changes.delete(label);
    this.run();
  }

  /**
   * Set the memory budget; null is the compiled budget.
   *
   * @param {number | null} budget
   */
  setBudget(budget) {
    for (const [label, change] of this.changes) {
      if ("memory_budget" in change) this.changes.delete(label);
    }
    if (budget === null) this.run();
    else this.add(`${say("memory budget")} ${Math.ceil(budget * 1000) / 1000}`, { memory_budget: budget });
  }

  async run() {
    const held = this.chips.querySelector(":focus");
    refill(this.chips, [...this.changes.keys()].map((label) => html("button", {
      type: "button", class: "lab-chip", title: say("remove this change"),
      "aria-label": say("remove change: {label}", { label }), onclick: () => this.drop(label),
    }, `${label} ×`)));
    if (held) this.choice.focus();
    const number = ++this.asked;
    if (!this.changes.size) {
      this.verdict.textContent = "";
      this.explorer.removeGroup("what if");
      this.lowerAgain();
      return;
    }
    const done = countSeconds(this.verdict, say("compiling"));
    const answer = await this.line.ask({ changes: this.merged() });
    done();
    if (number !== this.asked) return;
    this.verdict.classList.toggle("no", Boolean(answer.error));
    this.verdict.textContent = say(answer.error || answer.verdict || "");
    if (!answer.panes) return;
    this.explorer.addGroup("what if", answer.panes);
    this.lowerAgain();
  }

  /**
   * Show panes below the generated code, and update them after every change.
   *
   * @param {Request} request
   */
  async showLower(request) {
    const title = await this.showMore(request);
    if (title) this.lower.set(title, request);
  }

  async lowerAgain() {
    const number = this.asked;
    for (const request of this.lower.values()) {
      const answer = await this.line.ask({ ...request, changes: this.merged() });
      if (number !== this.asked) return;
      if (answer.title && answer.panes) this.explorer.addGroup(answer.title, answer.panes, false);
    }
  }

  /**
   * Request more panes for the changed code; returns the title of their group, null if it failed or
   * if they replace panes of the document.
   *
   * @param {Request} request
   */
  async showMore(request, doing = "compiling") {
    const number = ++this.asked;
    const done = countSeconds(this.verdict, say(doing));
    const answer = await this.line.ask({ ...request, changes: this.merged() });
    done();
    if (number !== this.asked) return null;
    this.verdict.textContent = say(answer.error || "");
    if (!answer.panes) return null;
    if (answer.title) this.explorer.addGroup(answer.title, answer.panes);
    else this.explorer.replacePanes(answer.panes);
    return answer.title || null;
  }

  merged() {
    return merged([...this.changes.values()]);
  }

}

/** @type {[label: string, request: Request, meaning: string][]} */
const LOWER = [
  ["Triton ladder for cuda:90", { show: "ladder", target: "cuda:90" },
    "TTIR, TTGIR, LLVM IR and PTX for NVIDIA Hopper (H100)"],
  ["Triton ladder for hip:gfx942", { show: "ladder", target: "hip:gfx942" },
    "TTIR, TTGIR, LLVM IR and AMDGCN for AMD MI300"],
  ["assembly of the C++ kernels", { show: "assembly" }, "machine code for the CPU"],
];

/**
 * A choice of the list: its label and what it does; only the label is shown once it is chosen.
 *
 * @param {string} label
 * @param {Change | Request} value
 * @param {string} meaning
 */
function option(label, value, meaning) {
  return html("option", { value: JSON.stringify(value), title: meaning, "data-label": label },
    `${label} – ${meaning}`);
}

/**
 * Merge several changes: lists are concatenated, for single values the last one is used.
 *
 * @param {Change[]} changes
 */
function merged(changes) {
  /** @type {Record<string, unknown>} */
  const all = {};
  for (const change of changes) {
    for (const [name, value] of Object.entries(change)) {
      const before = all[name];
      all[name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
    }
  }
  return all;
}
