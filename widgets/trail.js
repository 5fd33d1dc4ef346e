// The line at the bottom: the way of what is selected, through every phase.

import { html, refill } from "./dom.js";

const MOST = 3;
const LONGEST_CODE = 48;

export class Trail {
  constructor(explorer) {
    this.explorer = explorer;
    this.codeIndex = this.indexCode(explorer);
    this.element = html("footer", { class: "lab-trail", role: "status" });
    explorer.selection.listen((lit) => this.show(lit));
    this.show(null);
  }

  show(lit) {
    if (!lit) {
      refill(this.element, html("span", { class: "lab-hint" },
        "Hover a line or a box to see where it came from and what became of it; click to keep it."));
      return;
    }
    const stations = [...this.sources(lit), ...this.nodes(lit), ...this.code(lit)];
    const parts = stations.flatMap((station, i) => [
      i ? html("span", { class: "lab-arrow-text", "aria-hidden": "true" }, "→") : null,
      this.link(station),
    ]);
    refill(this.element, parts);
  }

  link({ text, pane }) {
    return html("button", {
      type: "button", onclick: () => this.explorer.show(pane, true), title: `show ${pane}`,
    }, text);
  }

  sources(lit) {
    const { links } = this.explorer;
    const lines = [...lit].filter((t) => links.kind[t] === "source");
    if (!lines.length) return [];
    const text = lines.length === 1 ? `${shortPath(links.label[lines[0]])}  ${this.codeOf(lines[0])}`
      : few(lines.map((line) => shortPath(links.label[line])));
    return [{ text, pane: "source" }];
  }

  /** The text of a source line, cut to a glance. */
  codeOf(thing) {
    for (const block of this.explorer.doc.panes.source.views[0].blocks || []) {
      const line = block.lines.find((each) => (each[1] || []).includes(thing));
      if (line) return line[0].trim().slice(0, LONGEST_CODE);
    }
    return "";
  }

  /** Nodes and buffers, by the graph they stand in, in the order of the panes. */
  nodes(lit) {
    const { links, order } = this.explorer;
    const scopes = new Map();
    for (const thing of [...lit].sort((a, b) => a - b)) {
      if (links.kind[thing] === "source") continue;
      const key = `${links.kind[thing]} ${links.scope[thing]}`;
      if (!scopes.has(key)) scopes.set(key, []);
      scopes.get(key).push(links.label[thing]);
    }
    const stations = [];
    for (const [key, names] of scopes) {
      const [kind, scope] = key.split(" ");
      const pane = order.find((id) => id === scope)
        || order.find((id) => id === `${scope}.${kind === "buffer" ? "loops" : "graph"}`);
      if (pane) stations.push({ text: `${few(names)} (${scope.split(".").pop()})`, pane });
    }
    return stations;
  }

  /** Lines of generated code. */
  code(lit) {
    const lines = new Map();
    for (const thing of lit) {
      for (const [block, line] of this.codeIndex.get(thing) || []) {
        if (!lines.has(block)) lines.set(block, new Set());
        lines.get(block).add(line);
      }
    }
    const found = [...lines].sort(([a], [b]) => a.order - b.order);
    const stations = found.slice(0, MOST).map(([block, numbers]) => ({
      text: `${block.name}: ${ranges([...numbers].sort((a, b) => a - b))}`, pane: block.pane,
    }));
    const more = found.length - MOST;
    if (more > 0) stations.push({ text: `${more} more kernels`, pane: found[MOST][0].pane });
    return stations;
  }

  /** Thing → the lines of generated code that show it, as [block, line]. */
  indexCode({ doc, order }) {
    const index = new Map();
    let place = 0;
    for (const pane of order.filter((id) => id.endsWith(".code"))) {
      for (const block of doc.panes[pane].views[0].blocks || []) {
        const known = { pane, name: block.title.split(" ")[0], order: place++ };
        block.lines.forEach((line, i) => (line[1] || []).forEach((thing) => {
          if (!index.has(thing)) index.set(thing, []);
          index.get(thing).push([known, i + 1]);
        }));
      }
    }
    return index;
  }
}

/** `some/where/file.py:3` → `file.py:3`. */
function shortPath(label) {
  return label.slice(label.lastIndexOf("/") + 1);
}

function few(names) {
  const shown = [...new Set(names)];
  const more = shown.length > MOST ? `, ${shown.length - MOST} more` : "";
  return shown.slice(0, MOST).join(", ") + more;
}

/** [3, 4, 5, 9] → "3–5, 9". */
function ranges(numbers) {
  const runs = [];
  for (const n of numbers) {
    const last = runs[runs.length - 1];
    if (last && last[1] === n - 1) last[1] = n;
    else runs.push([n, n]);
  }
  const shown = runs.slice(0, MOST).map(([a, b]) => (a === b ? `${a}` : `${a}–${b}`));
  return shown.join(", ") + (runs.length > MOST ? ", …" : "");
}
