// Provenance queries: which code came from which (see links.py).

import { known } from "./known.js";

/** @import { Cue, LinkColumns, Thing } from "./types.d.ts" */

export class Links {
  /** @param {LinkColumns} data */
  constructor(data) {
    this.kind = data.kind;
    this.scope = data.scope;
    this.label = data.label;
    this.parents = data.parents;
    /** @type {number[][]} */
    this.children = this.parents.map(() => []);
    this.parents.forEach((parents, thing) => parents.forEach((p) => this.children[p].push(thing)));
    this.colours = this.numberColours();
    /** @type {Map<Thing, Thing[]>} */
    this.sources = new Map();
  }

  /** Source lines with descendants, in order of appearance: thing → 0, 1, 2, ... */
  numberColours() {
    const lines = this.kind
      .map((_, thing) => thing)
      .filter((thing) => this.kind[thing] === "source" && this.children[thing].length > 0)
      .sort((a, b) => lineNumber(this.label[a]) - lineNumber(this.label[b]));
    return new Map(lines.map((thing, order) => [thing, order]));
  }

  /**
   * The node or buffer with this label; of several, that of the graph that a pane shows.
   *
   * @param {string | undefined} label
   * @param {string} pane
   */
  named(label, pane) {
    const found = this.label.flatMap((each, thing) => (
      each === label && this.kind[thing] !== "source" ? [thing] : []));
    return found.find((thing) => `${pane}.`.startsWith(`${this.scope[thing]}.`)) ?? found[0];
  }

  /**
   * The given things with all their ancestors and descendants.
   *
   * @param {Thing[]} things
   */
  related(things) {
    /** @type {Set<Thing>} */
    const found = new Set();
    this.follow(things, this.parents, found);
    /** @type {Set<Thing>} */
    const below = new Set();
    this.follow(things, this.children, below);
    below.forEach((thing) => found.add(thing));
    return found;
  }

  /**
   * @param {Thing[]} things
   * @param {Thing[][]} next
   * @param {Set<Thing>} found
   */
  follow(things, next, found) {
    const waiting = [...things];
    for (let thing = waiting.pop(); thing !== undefined; thing = waiting.pop()) {
      if (found.has(thing)) continue;
      found.add(thing);
      waiting.push(...next[thing]);
    }
  }

  /**
   * The source lines that these things came from, each once.
   *
   * @param {Thing[]} things
   */
  sourcesOf(things) {
    /** @type {Set<Thing>} */
    const lines = new Set();
    for (const thing of things) this.sourcesOfOne(thing).forEach((line) => lines.add(line));
    return [...lines];
  }

  /** @param {Thing} thing */
  sourcesOfOne(thing) {
    const known = this.sources.get(thing);
    if (known) return known;
    /** @type {Set<Thing>} */
    const above = new Set();
    this.follow([thing], this.parents, above);
    const lines = [...above].filter((t) => this.kind[t] === "source");
    this.sources.set(thing, lines);
    return lines;
  }

  /**
   * The cue of some things: the colour and number of their first source line; null without one.
   *
   * @param {Thing[]} things
   * @returns {Cue | null}
   */
  cue(things) {
    const lines = this.sourcesOf(things).filter((line) => this.colours.has(line));
    if (!lines.length) return null;
    lines.sort((a, b) => known(this.colours, a) - known(this.colours, b));
    const more = lines.length > 1 ? "+" : "";
    return {
      hue: known(this.colours, lines[0]) % HUES,
      number: `${lineNumber(this.label[lines[0]])}${more}`,
      title: lines.map((line) => this.label[line]).join(", "),
    };
  }
}

export const HUES = 8;

/** @param {string} label */
export function lineNumber(label) {
  return Number(label.slice(label.lastIndexOf(":") + 1));
}
