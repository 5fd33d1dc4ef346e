// What if: changes to the options, the answer of the compiler, and how it differs.

import { countSeconds, html, refill } from "./dom.js";
import { say } from "./say.js";

/** @import { Change, Connection, Explorer, Request } from "./types.d.ts" */

/** @typedef {[producer: string, consumer: string, part: string]} Pair */

/** The bar under the header: what is changed, what else can be, and what came of it. */
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
    this.element = html("div", { class: "lab-whatif" },
      html("span", { class: "lab-whatif-title" }, say("What if")), this.chips, this.choice,
      html("button", {
        type: "button", title: say("time it beside eager and stock torch.compile (lab.bench)"),
        onclick: () => this.showMore({ show: "bench" }, "measuring, compiling stock's too"),
      }, say("bench")), this.verdict);
  }

  chooser() {
    const groups = this.explorer.doc.switches.map(({ title, changes }) => html("optgroup", {
      label: say(title),
    }, changes.map(([label, change]) => html("option", { value: JSON.stringify(change) }, label))));
    groups.push(html("optgroup", { label: say("show also") }, LOWER.map(([label, request]) => html(
      "option", { value: JSON.stringify(request) }, say(label)))));
    const select = html("select", {
      "aria-label": say("change something and compile again"),
      onchange: () => {
        const label = select.selectedOptions[0].textContent;
        const chosen = JSON.parse(select.value);
        select.selectedIndex = 0;
        if (chosen.show) this.showLower(chosen);
        else this.add(label, chosen);
      },
    }, html("option", { value: "" }, say("change something …")), groups);
    return select;
  }

  /**
   * Forbid or force a pair; again, or the opposite, takes it back.
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
   * The slider of the memory view; null is the budget that was compiled.
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
      type: "button", class: "lab-chip", title: say("take this back"),
      "aria-label": say("take back: {label}", { label }), onclick: () => this.drop(label),
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
   * Panes below the generated code, made when they are asked for; they follow what is changed.
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
   * Ask for more panes of the code with its changes; the title of their group, null if it failed.
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
    if (!answer.title || !answer.panes) return null;
    this.explorer.addGroup(answer.title, answer.panes);
    return answer.title;
  }

  merged() {
    return merged([...this.changes.values()]);
  }

}

/** @type {[label: string, request: Request][]} */
const LOWER = [
  ["Triton's ladder for cuda:90", { show: "ladder", target: "cuda:90" }],
  ["Triton's ladder for hip:gfx942", { show: "ladder", target: "hip:gfx942" }],
  ["assembly of the C++ kernels", { show: "assembly" }],
];

/**
 * Lists of several changes are joined; of single values the last one counts.
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
