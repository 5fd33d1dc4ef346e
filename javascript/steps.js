// TorchDynamo's trace: the instruction, the symbolic stack and the graph so far, with a slider.

import { html, refill, targetOf } from "./dom.js";
import { ARROWS } from "./roving.js";
import { say } from "./say.js";
import { Shows } from "./selection.js";
import { inChunks } from "./text.js";

/** @import { Context, Drawn, Instruction, StepsView } from "./types.d.ts" */

/**
 * Three columns that follow one slider (see steps.py for the rows).
 *
 * @param {StepsView} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function stepsView(view, context) {
  view.state ??= { run: 0, at: 0 };
  const { state } = view;
  const stepper = new Stepper(view, state, context);
  return {
    element: stepper.element,
    light: (lit) => stepper.shows.light(lit),
    find: (query) => stepper.lines.filter((line) => line.textContent.toLowerCase().includes(query)),
    text: () => stepper.lines.map((line) => line.textContent).join("\n") + "\n",
  };
}

class Stepper {
  /**
   * @param {StepsView} view
   * @param {{run: number, at: number}} state
   * @param {Context} context
   */
  constructor(view, state, context) {
    this.view = view;
    this.state = state;
    this.context = context;
    this.slider = html("input", {
      type: "range", min: 0, "aria-label": say("instruction"),
      oninput: () => { this.go(Number(this.slider.value)); },
    });
    this.said = html("span", { class: "lab-soft lab-step-said", role: "status" });
    this.code = html("div", { class: "lab-text lab-step-code", tabindex: 0, "aria-label": say("instructions") });
    this.shows = new Shows(this.code);
    this.stack = html("ol", { class: "lab-step-stack", "aria-label": say("symbolic stack, top first") });
    this.graph = html("div", { class: "lab-step-graph", "aria-label": say("graph so far") });
    const runs = html("select", {
      "aria-label": say("choose a run"), onchange: () => { this.choose(Number(runs.value)); },
    }, view.runs.map((run, i) => html("option", { value: i, selected: i === state.run }, run.title)));
    /** @type {HTMLElement[]} */
    this.lines = [];
    const button = (
      /** @type {string} */ label, /** @type {string} */ title, /** @type {number} */ by,
    ) => html("button", {
      type: "button", title, "aria-label": title, onclick: () => this.go(this.state.at + by),
    }, label);
    this.element = html("div", { class: "lab-steps" },
      html("div", { class: "lab-step-head" }, view.runs.length > 1 ? runs : null,
        button("◂", say("previous instruction"), -1), this.slider,
        button("▸", say("next instruction"), 1), this.said),
      html("div", { class: "lab-step-columns" }, this.code,
        html("div", { class: "lab-step-side" }, html("h3", {}, say("stack before the instruction")), this.stack,
          html("h3", {}, say("graph after the instruction")), this.graph)));
    this.code.addEventListener("keydown", (event) => this.key(event));
    this.code.addEventListener("click", (event) => {
      const line = /** @type {HTMLElement | null} */ (targetOf(event).closest(".lab-line"));
      if (line) this.go(Number(line.dataset.line));
    });
    this.choose(state.run, state.at);
  }

  get run() {
    return this.view.runs[this.state.run];
  }

  /** @param {number} run */
  choose(run, at = 0) {
    this.state.run = run;
    this.shows = new Shows(this.code);
    const { rows, total } = this.run;
    this.lines = rows.map((row, i) => this.line(row, i));
    const chunks = inChunks(this.lines);
    if (total > rows.length) {
      chunks.push(html("p", { class: "lab-note" }, say(
        "The first {n} of this run's {all} instructions.",
        { n: rows.length.toLocaleString("en"), all: total.toLocaleString("en") },
      )));
    }
    refill(this.code, chunks);
    this.slider.max = String(rows.length - 1);
    this.go(at, false);
  }

  /**
   * @param {Instruction} instruction
   * @param {number} i
   */
  line([depth, , line, opname, argument, , added, , things], i) {
    const { texts } = this.view;
    const cue = this.context.links.cue(things);
    const row = html("div", {
      class: `lab-line${things.length ? " linked" : ""}`, "data-line": i, "data-hue": cue?.hue,
      onmouseenter: () => this.context.selection.preview(things),
      onmouseleave: () => this.context.selection.preview([]),
    },
    html("span", { class: "lab-no" }, line > 0 ? String(line) : ""),
    html("code", {}, `${"  ".repeat(depth)}${texts[opname]} ${texts[argument]}`),
    added.length ? html("span", { class: "lab-step-adds", title: say("adds to the graph") }, `+${added.length}`) : null);
    this.shows.add(row, things);
    return row;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const by = ARROWS[event.key];
    if (!by) return;
    this.go(this.state.at + by);
    event.preventDefault();
  }

  /** @param {number} to */
  go(to, preview = true) {
    const { rows, total } = this.run;
    const at = Math.max(0, Math.min(rows.length - 1, to));
    this.lines[this.state.at]?.classList.remove("current");
    this.state.at = at;
    const [, fn, line, , , stack, , , things] = rows[at];
    this.lines[at].classList.add("current");
    this.lines[at].scrollIntoView({ block: "nearest" });
    this.slider.value = String(at);
    const { texts } = this.view;
    this.slider.setAttribute("aria-valuetext", this.lines[at].textContent);
    const place = line > 0 ? "{n} of {all}, in {name} line {line}" : "{n} of {all}, in {name}";
    this.said.textContent = say(place,
      { n: (at + 1).toLocaleString("en"), all: total.toLocaleString("en"), name: texts[fn], line });
    refill(this.stack, stack.length ? [...stack].reverse().map((value) => html("li", {}, texts[value]))
      : html("li", { class: "lab-soft" }, say("empty")));
    refill(this.graph, this.graphLines(at));
    this.graph.querySelector(".added")?.scrollIntoView({ block: "nearest" });
    if (preview) this.context.selection.preview(things);
  }

  /**
   * The graph after instruction `at`; the nodes that it added are highlighted.
   *
   * @param {number} at
   */
  graphLines(at) {
    const { texts } = this.view;
    /** @type {Map<string, string>} */
    const lines = new Map();
    /** @type {Set<string>} */
    const fresh = new Set();
    this.run.rows.slice(0, at + 1).forEach(([, , , , , , added, renamed], i) => {
      for (const [old, now] of renamed) {
        const text = lines.get(texts[old]);
        if (text === undefined) continue;
        lines.delete(texts[old]);
        lines.set(texts[now], text);
        if (i === at) fresh.add(texts[now]);
      }
      for (const each of added) {
        const [name, ...rest] = texts[each].split(" = ");
        lines.set(name, rest.join(" = "));
        if (i === at) fresh.add(name);
      }
    });
    if (!lines.size) return html("p", { class: "lab-soft" }, say("no nodes yet"));
    return [...lines].map(([name, text]) => html("div", {
      class: `lab-line${fresh.has(name) ? " added" : ""}`,
    }, html("code", {}, text ? `${name} = ${text}` : say("{name}: input", { name }))));
  }
}
