// What came from what, as the page asks for it (see links.py).

export class Links {
  constructor(data) {
    this.kind = data.kind;
    this.scope = data.scope;
    this.label = data.label;
    this.parents = data.parents;
    this.children = this.parents.map(() => []);
    this.parents.forEach((parents, thing) => parents.forEach((p) => this.children[p].push(thing)));
    this.colours = this.numberColours();
    this.sources = new Map();
  }

  /** Source lines that became something, in order of appearance: thing → 0, 1, 2, ... */
  numberColours() {
    const lines = this.kind
      .map((kind, thing) => thing)
      .filter((thing) => this.kind[thing] === "source" && this.children[thing].length > 0)
      .sort((a, b) => lineNumber(this.label[a]) - lineNumber(this.label[b]));
    return new Map(lines.map((thing, order) => [thing, order]));
  }

  /** The given things with all they came from and all they became. */
  way(things) {
    const found = new Set();
    this.follow(things, this.parents, found);
    const below = new Set();
    this.follow(things, this.children, below);
    below.forEach((thing) => found.add(thing));
    return found;
  }

  follow(things, next, found) {
    const waiting = [...things];
    while (waiting.length) {
      const thing = waiting.pop();
      if (found.has(thing)) continue;
      found.add(thing);
      waiting.push(...next[thing]);
    }
  }

  /** Source lines that these things came from, each once. */
  sourcesOf(things) {
    const lines = new Set();
    for (const thing of things) this.sourcesOfOne(thing).forEach((line) => lines.add(line));
    return [...lines];
  }

  sourcesOfOne(thing) {
    if (!this.sources.has(thing)) {
      const above = new Set();
      this.follow([thing], this.parents, above);
      this.sources.set(thing, [...above].filter((t) => this.kind[t] === "source"));
    }
    return this.sources.get(thing);
  }

  /** The cue of some things: `{hue, number, title}` of their first source line, or null. */
  cue(things) {
    const lines = this.sourcesOf(things).filter((line) => this.colours.has(line));
    if (!lines.length) return null;
    lines.sort((a, b) => this.colours.get(a) - this.colours.get(b));
    const more = lines.length > 1 ? "+" : "";
    return {
      hue: this.colours.get(lines[0]) % HUES,
      number: `${lineNumber(this.label[lines[0]])}${more}`,
      title: lines.map((line) => this.label[line]).join(", "),
    };
  }
}

export const HUES = 8;

export function lineNumber(label) {
  return Number(label.slice(label.lastIndexOf(":") + 1));
}
