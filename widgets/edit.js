// A generated kernel that is edited: compiled and run by Python on copies, checked and timed.

import { html, refill } from "./dom.js";

/**
 * For a view of kernels: a button that opens the text of one of them, and where it opens.  What was
 * written stays with the block (`block.draft`), so it is there again when the pane is.
 */
export function kernelEditor(view, context) {
  const kernels = view.blocks.filter((block) => block.kernel);
  if (!kernels.length) return {};
  const place = html("div", { class: "lab-editing" });
  const button = html("button", {
    type: "button", class: "lab-edit", title: "change a kernel's text and run it, on copies",
    onclick: () => {
      view.editing = view.editing ? null : kernels[0];
      show();
    },
  }, "edit");
  const show = () => {
    button.setAttribute("aria-expanded", String(Boolean(view.editing)));
    refill(place, view.editing ? new Editor(view.editing, chooser(), context).element : null);
  };
  const chooser = () => {
    const choose = html("select", {
      "aria-label": "which kernel", onchange: () => {
        view.editing = kernels[choose.selectedIndex];
        show();
      },
    }, kernels.map((block) => html("option", { selected: block === view.editing }, block.kernel[1])));
    return choose;
  };
  show();
  return { actions: [button], above: place };
}

class Editor {
  constructor(block, choose, context) {
    const original = block.lines.map((line) => line[0]).join("\n");
    block.draft ||= { text: original, said: "" };
    Object.assign(this, { block, context });
    this.numbers = html("div", { class: "lab-editor-numbers", "aria-hidden": "true" });
    this.area = html("textarea", {
      spellcheck: "false", "aria-label": `text of ${block.kernel[1]}`, wrap: "off",
      oninput: () => this.changed(),
    });
    this.area.value = block.draft.text;
    this.said = html("p", { class: "lab-editor-said", role: "status" });
    this.errors = html("ul", { class: "lab-editor-errors" });
    this.run = html("button", { type: "button", onclick: () => this.ask() }, "run");
    this.element = html("div", { class: "lab-editor" },
      html("div", { class: "lab-editor-head" }, choose, this.run, html("button", {
        type: "button", onclick: () => {
          this.area.value = original;
          this.changed();
        },
      }, "as generated"), this.said),
      this.errors, html("div", { class: "lab-editor-text" }, this.numbers, this.area));
    this.number();
    this.tell(block.draft);
  }

  changed() {
    this.block.draft.text = this.area.value;
    this.number();
  }

  number(wrong = []) {
    const count = this.area.value.split("\n").length;
    const lines = Array.from({ length: count }, (_, i) => html("div", {
      class: wrong.includes(i + 1) ? "wrong" : "",
    }, String(i + 1)));
    refill(this.numbers, lines);
    this.area.rows = count;
    this.area.cols = Math.max(...this.area.value.split("\n").map((line) => line.length)) + 1;
  }

  tell({ said, right, errors = [] }) {
    this.said.className = `lab-editor-said ${right === undefined ? "" : right ? "ok" : "no"}`;
    this.said.textContent = errors.length ? `${errors.length} errors` : said;
    this.number(errors.map(([line]) => line));
    refill(this.errors, errors.map(([line, text]) => html("li", {}, html("button", {
      type: "button", onclick: () => this.goTo(line),
    }, line ? `line ${line}: ${text}` : text))));
  }

  goTo(line) {
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, Math.max(line - 1, 0)).join("\n").length + (line > 1 ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(start, start + (lines[line - 1] || "").length);
  }

  async ask() {
    const { draft, kernel: [part, kernel] } = this.block;
    const start = performance.now();
    const clock = setInterval(() => {
      const seconds = (performance.now() - start) / 1000;
      this.said.textContent = `compiling and running … ${seconds.toFixed(1)} s`;
    }, 100);
    this.run.disabled = true;
    const request = { show: "kernel", part, kernel, text: draft.text };
    const answer = await this.context.whatIf.line.ask(request);
    clearInterval(clock);
    this.run.disabled = false;
    Object.assign(draft, answer.error
      ? { said: answer.error, right: false, errors: [] }
      : { said: answer.verdict, right: answer.right, errors: answer.errors });
    this.tell(draft);
  }
}
