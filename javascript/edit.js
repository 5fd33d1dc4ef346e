// The kernel editor: Python compiles and runs the edited kernel on copies, checks and times it.

import { countSeconds, html, refill } from "./dom.js";
import { say } from "./say.js";

/** @import { Answer, Block, Context, Draft, Drawn, TextView } from "./types.d.ts" */

/** @typedef {Block & Required<Pick<Block, "kernel">>} KernelBlock a block that can be edited */

/**
 * For a view of kernels: a button that opens the editor, and the element that contains it.  The edited
 * text is stored in the block (`block.draft`), so that it survives when the pane is closed.
 *
 * @param {TextView} view
 * @param {Context} context
 * @returns {Pick<Drawn, "actions" | "above">}
 */
export function kernelEditor(view, context) {
  const kernels = view.blocks.filter(isKernel);
  if (!kernels.length) return {};
  const place = html("div", { class: "lab-editing" });
  const button = html("button", {
    type: "button", class: "lab-edit", title: say("edit a kernel and run it on copies of the inputs"),
    onclick: () => {
      view.editing = view.editing ? null : kernels[0];
      show();
    },
  }, say("edit"));
  const show = () => {
    const { editing } = view;
    button.setAttribute("aria-expanded", String(Boolean(editing)));
    const held = place.querySelector(":focus");
    refill(place, editing && isKernel(editing)
      ? new Editor(editing, chooser(), context).element : null);
    if (held) place.querySelector("select")?.focus();
  };
  const chooser = () => {
    const choose = html("select", {
      "aria-label": say("choose a kernel"), onchange: () => {
        view.editing = kernels[choose.selectedIndex];
        show();
      },
    }, kernels.map((block) => html("option", { selected: block === view.editing }, block.kernel[1])));
    return choose;
  };
  show();
  return { actions: [button], above: place };
}

/**
 * @param {Block} block
 * @returns {block is KernelBlock}
 */
const isKernel = (block) => block.kernel !== undefined;

class Editor {
  /**
   * @param {KernelBlock} block
   * @param {HTMLElement} choose
   * @param {Context} context
   */
  constructor(block, choose, context) {
    const original = block.lines.map((line) => line[0]).join("\n");
    block.draft ||= { text: original, said: "" };
    this.draft = block.draft;
    this.block = block;
    this.context = context;
    this.numbers = html("div", { class: "lab-editor-numbers", "aria-hidden": "true" });
    this.area = html("textarea", {
      spellcheck: "false", "aria-label": say("source of {name}", { name: block.kernel[1] }), wrap: "off",
      oninput: () => this.changed(),
    });
    this.area.value = block.draft.text;
    this.said = html("p", { class: "lab-editor-said", role: "status" });
    this.errors = html("ul", { class: "lab-editor-errors" });
    this.isRunning = false;
    this.stop = html("button", {
      type: "button", class: "lab-stop", title: say("end the edited kernel that runs"), hidden: true,
      onclick: () => this.context.whatIf?.line.ask({ show: "stop" }),
    }, say("stop"));
    this.element = html("div", { class: "lab-editor" },
      html("div", { class: "lab-editor-head" }, choose,
        html("button", { type: "button", onclick: () => this.ask() }, say("run")), this.stop, html("button", {
        type: "button", onclick: () => {
          this.area.value = original;
          this.changed();
        },
      }, say("restore generated code")), this.said),
      this.errors, html("div", { class: "lab-editor-text" }, this.numbers, this.area));
    this.number();
    this.tell(block.draft);
  }

  changed() {
    this.draft.text = this.area.value;
    this.number();
  }

  /** @param {number[]} wrong numbers of lines */
  number(wrong = []) {
    const count = this.area.value.split("\n").length;
    const lines = Array.from({ length: count }, (_, i) => html("div", {
      class: wrong.includes(i + 1) ? "wrong" : "",
    }, String(i + 1)));
    refill(this.numbers, lines);
    this.area.rows = count;
    this.area.cols = Math.max(...this.area.value.split("\n").map((line) => line.length)) + 1;
  }

  /** @param {Draft} draft */
  tell({ said, right, errors = [] }) {
    this.said.className = `lab-editor-said ${right === undefined ? "" : right ? "ok" : "no"}`;
    this.said.textContent = errors.length ? say("{n} errors", { n: errors.length }) : said;
    this.number(errors.map(([line]) => line));
    refill(this.errors, errors.map(([line, text]) => html("li", {}, html("button", {
      type: "button", onclick: () => this.goTo(line),
    }, line ? say("line {line}: {text}", { line, text }) : text))));
  }

  /** @param {number} line */
  goTo(line) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, Math.max(line - 1, 0)).join("\n").length + (line > 1 ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1] || "").length);
  }

  async ask() {
    const { draft, block: { kernel: [part, kernel] } } = this;
    if (!this.context.whatIf || this.isRunning) return;
    const done = countSeconds(this.said, say("compiling and running"));
    this.isRunning = true;
    this.stop.hidden = false;
    const request = { show: "kernel", part, kernel, text: draft.text };
    const answer = await this.context.whatIf.line.ask(request);
    done();
    this.isRunning = false;
    this.stop.hidden = true;
    Object.assign(draft, outcome(answer));
    this.tell(draft);
  }
}

/**
 * @param {Answer} answer
 * @returns {Partial<Draft>}
 */
function outcome({ error, verdict, right, errors }) {
  return error ? { said: say(error), right: false, errors: [] } : { said: verdict, right, errors };
}
