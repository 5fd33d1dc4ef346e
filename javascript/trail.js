// The line at the bottom: the selection in every stage.

import { html, refill } from "./dom.js";
import { push } from "./known.js";
import { say } from "./say.js";

/** @import { Explorer, Lit, Thing, View } from "./types.d.ts" */

/**
 * @typedef {{text: string, pane: string}} Stage
 * @typedef {{pane: string, name: string, order: number}} CodeBlock
 */

const MOST = 3;
const LONGEST_CODE = 48;

export class Trail {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.codeIndex = this.indexCode(explorer);
    this.element = html("footer", { class: "lab-trail", role: "status" });
    explorer.selection.listen((lit) => this.show(lit));
    this.show(null);
  }

  /** @param {Lit} lit */
  show(lit) {
    if (!lit) {
      refill(this.element, html("span", { class: "lab-hint" },
        say("Hover over a line or a box to highlight related code in every stage. Click to pin, click again to unpin.")));
      return;
    }
    const stages = [...this.sources(lit), ...this.nodes(lit), ...this.code(lit)];
    const parts = stages.flatMap((stage, i) => [
      i ? html("span", { class: "lab-arrow-text", "aria-hidden": "true" }, "→") : null,
      this.link(stage),
    ]);
    refill(this.element, parts);
  }

  /** @param {Stage} stage */
  link({ text, pane }) {
    return html("button", {
      type: "button", onclick: () => this.explorer.enter(this.explorer.show(pane, true)),
      title: say("show {pane}", { pane }),
    }, text);
  }

  /**
   * @param {Set<Thing>} lit
   * @returns {Stage[]}
   */
  sources(lit) {
    const { links } = this.explorer;
    const lines = [...lit].filter((t) => links.kind[t] === "source");
    if (!lines.length) return [];
    const text = lines.length === 1 ? `${shortPath(links.label[lines[0]])}  ${this.codeOf(lines[0])}`
      : few(lines.map((line) => shortPath(links.label[line])));
    return [{ text, pane: "source" }];
  }

  /**
   * The text of a source line, shortened.
   *
   * @param {Thing} thing
   */
  codeOf(thing) {
    for (const block of blocksOf(this.explorer.doc.panes.source.views[0])) {
      const line = block.lines.find((each) => (each[1] || []).includes(thing));
      if (line) return line[0].trim().slice(0, LONGEST_CODE);
    }
    return "";
  }

  /**
   * Nodes and buffers, grouped by graph.
   *
   * @param {Set<Thing>} lit
   */
  nodes(lit) {
    const { links, order } = this.explorer;
    /** @type {Map<string, string[]>} */
    const scopes = new Map();
    for (const thing of [...lit].sort((a, b) => a - b)) {
      if (links.kind[thing] === "source") continue;
      push(scopes, `${links.kind[thing]} ${links.scope[thing]}`, links.label[thing]);
    }
    /** @type {Stage[]} */
    const stages = [];
    for (const [key, names] of scopes) {
      const [kind, scope] = key.split(" ");
      const pane = order.find((id) => id === scope)
        || order.find((id) => id === `${scope}.${kind === "buffer" ? "loops" : "graph"}`);
      if (pane) stages.push({ text: `${few(names)} (${scope.split(".").pop()})`, pane });
    }
    return stages;
  }

  /**
   * Lines of generated code.
   *
   * @param {Set<Thing>} lit
   * @returns {Stage[]}
   */
  code(lit) {
    /** @type {Map<CodeBlock, number[]>} */
    const lines = new Map();
    for (const thing of lit) {
      for (const [block, line] of this.codeIndex.get(thing) || []) push(lines, block, line);
    }
    const found = [...lines].sort(([a], [b]) => a.order - b.order);
    const stages = found.slice(0, MOST).map(([block, numbers]) => ({
      text: `${block.name}: ${ranges([...new Set(numbers)].sort((a, b) => a - b))}`, pane: block.pane,
    }));
    const more = found.length - MOST;
    if (more > 0) stages.push({ text: say("{more} more kernels", { more }), pane: found[MOST][0].pane });
    return stages;
  }

  /**
   * Thing → the lines of generated code that show it, as [block, line].
   *
   * @param {Explorer} explorer
   */
  indexCode({ doc, order }) {
    /** @type {Map<Thing, [block: CodeBlock, line: number][]>} */
    const index = new Map();
    let place = 0;
    for (const pane of order.filter((id) => id.endsWith(".code"))) {
      for (const block of blocksOf(doc.panes[pane].views[0])) {
        const known = { pane, name: block.title.split(" ")[0], order: place++ };
        block.lines.forEach((line, i) => (line[1] || []).forEach((thing) => {
          push(index, thing, [known, i + 1]);
        }));
      }
    }
    return index;
  }
}

/** @param {View} view */
const blocksOf = (view) => (view.kind === "text" ? view.blocks : []);

/**
 * `some/where/file.py:3` → `file.py:3`.
 *
 * @param {string} label
 */
function shortPath(label) {
  return label.slice(label.lastIndexOf("/") + 1);
}

/** @param {string[]} names */
function few(names) {
  const shown = [...new Set(names)];
  const more = shown.length > MOST ? say(", {more} more", { more: shown.length - MOST }) : "";
  return shown.slice(0, MOST).join(", ") + more;
}

/**
 * [3, 4, 5, 9] → "3–5, 9".
 *
 * @param {number[]} numbers
 */
function ranges(numbers) {
  /** @type {[first: number, last: number][]} */
  const runs = [];
  for (const n of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] === n - 1) last[1] = n;
    else runs.push([n, n]);
  }
  const shown = runs.slice(0, MOST).map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`));
  return shown.join(", ") + (runs.length > MOST ? ", …" : "");
}
