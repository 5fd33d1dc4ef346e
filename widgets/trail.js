// The line at the bottom: the way of what is selected, through every phase.

import { html, refill } from "./dom.js";

const MOST = 3;

export class Trail {
  constructor(explorer) {
    this.explorer = explorer;
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
    const names = [...lit].filter((t) => links.kind[t] === "source").map((t) => links.label[t]);
    return names.length ? [{ text: few(names), pane: "source" }] : [];
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
    const { doc, order } = this.explorer;
    const stations = [];
    for (const id of order.filter((pane) => pane.endsWith(".code"))) {
      for (const block of doc.panes[id].views[0].blocks || []) {
        const lines = [];
        block.lines.forEach((line, i) => {
          if ((line[1] || []).some((thing) => lit.has(thing))) lines.push(i + 1);
        });
        if (!lines.length) continue;
        const name = block.title.split(" ")[0];
        stations.push({ text: `${name}: ${ranges(lines)}`, pane: id });
      }
    }
    return stations.length <= MOST ? stations : [
      ...stations.slice(0, MOST),
      { text: `${stations.length - MOST} more kernels`, pane: stations[MOST].pane },
    ];
  }
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
