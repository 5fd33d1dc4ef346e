// The layout of a picture for the current set of open frames (see picture.py).
//
// Python has laid out each level once, with some frames open and some closed.  When a frame is opened
// or closed its size changes: its row grows or shrinks, and the boxes next to and below it move.

import { known, push } from "./known.js";

/** @import { Arrow, Box, Frame, GraphPicture } from "./types.d.ts" */

/**
 * @typedef {{width: number, height: number}} Size
 * @typedef {Box & {middle: number}} Cell an element of a row: a box, or a bend of an arrow
 * @typedef {Cell & ({name: string} | {bend: [route: number, point: number]})} NamedCell
 * @typedef {Size & {cells: NamedCell[]}} Placed
 */

const GAP = 18;
const ROW_GAP = 30;
const MARGIN = 12;
const HEAD = 24;
const CHARACTER = 7.3;

export class Placement {
  /** @param {GraphPicture} picture */
  constructor(picture) {
    this.items = new Map(picture.items.map((item) => [item[0], item]));
    this.frames = new Map(picture.frames.map((frame) => [frame[0], frame]));
    const ends = picture.edges.map((place) => picture.items[place][0]);
    /** @type {[source: string, target: string][]} */
    this.edges = ends.flatMap((end, i) => (i % 2 ? [] : [[end, ends[i + 1]]]));
    this.inside = picture.inside;
    this.open = new Set(picture.frames.filter((frame) => frame[5]).map((frame) => frame[0]));
    /** @type {Map<string, Box & {level: string}>} */
    this.boxes = new Map();
    /** @type {Map<string, [number, number][]>} */
    this.routes = new Map();
    /** @type {Map<string, Placed>} */
    this.sizes = new Map();
  }

  /** Everything visible: `{width, height, boxes: Map(name → box), frames: [...], arrows: [...]}`. */
  place() {
    this.boxes = new Map();
    this.routes = new Map();
    this.sizes = new Map();
    const { width, height } = this.measure("");
    this.settle("", 0, 0);
    return { width, height, boxes: this.boxes, arrows: this.arrows() };
  }

  /** @param {string} name */
  isOpen(name) {
    return this.frames.has(name) && this.open.has(name);
  }

  /**
   * Lay out one level from the inside out; its boxes are relative to its top left corner.
   *
   * @param {string} level
   */
  measure(level) {
    const layout = this.inside[level];
    /** @type {Map<number, NamedCell[]>} */
    const rows = new Map();
    for (const [i, [x, y, w, h]] of layout.boxes.entries()) {
      const name = layout.names[i];
      const size = this.sizeOf(name, w, h);
      push(rows, Math.round(y + h / 2), { name, middle: x + w / 2, x: 0, y: 0, ...size });
    }
    layout.routes.forEach(([, , points], i) => {
      for (let p = 2; p < points.length - 2; p += 2) {
        /** @type {NamedCell} */
        const bend = { bend: [i, p], middle: points[p], x: 0, y: 0, width: 0, height: 0 };
        push(rows, nearest(rows, Math.round(points[p + 1])), bend);
      }
    });
    const placed = placeRows(rows);
    this.sizes.set(level, placed);
    return placed;
  }

  /**
   * @param {string} name
   * @param {number} width
   * @param {number} height
   * @returns {Size}
   */
  sizeOf(name, width, height) {
    const frame = this.frames.get(name);
    if (!frame) return { width, height };
    if (!this.open.has(name)) return closedSize(frame);
    const within = this.measure(name);
    const label = frame[1].length * CHARACTER;
    return {
      width: Math.max(within.width, label) + 2 * MARGIN,
      height: within.height + HEAD + MARGIN,
    };
  }

  /**
   * Convert coordinates within a level to those of the picture.
   *
   * @param {string} level
   * @param {number} left
   * @param {number} top
   */
  settle(level, left, top) {
    const { cells } = known(this.sizes, level);
    /** @type {Map<number, [point: number, x: number, y: number][]>} */
    const bends = new Map();
    for (const cell of cells) {
      const box = { x: left + cell.x, y: top + cell.y, width: cell.width, height: cell.height };
      if ("bend" in cell) {
        push(bends, cell.bend[0], [cell.bend[1], box.x, box.y]);
      } else {
        this.boxes.set(cell.name, { ...box, level });
        if (this.isOpen(cell.name)) this.settle(cell.name, box.x + MARGIN, box.y + HEAD);
      }
    }
    this.inside[level].routes.forEach(([source, target], i) => {
      /** @type {[number, number][]} */
      const between = (bends.get(i) || []).sort((a, b) => a[0] - b[0]).map(([, x, y]) => [x, y]);
      this.routes.set(`${source}\n${target}`, between);
    });
  }

  /** One arrow for each pair of visible boxes that an edge connects. */
  arrows() {
    /** @type {Map<string, Arrow>} */
    const found = new Map();
    for (const [source, target] of this.edges) {
      const from = this.visible(source);
      const to = this.visible(target);
      if (from === to) continue;
      const key = `${from}\n${to}`;
      if (found.has(key)) continue;
      const a = known(this.boxes, from);
      const b = known(this.boxes, to);
      const bends = a.level === b.level ? this.routes.get(key) || [] : [];
      const up = b.y < a.y;
      found.set(key, {
        from, to,
        points: [
          [a.x + a.width / 2, up ? a.y : a.y + a.height],
          ...bends,
          [b.x + b.width / 2, up ? b.y + b.height : b.y],
        ],
      });
    }
    return [...found.values()];
  }

  /**
   * The item itself, or the outermost closed frame around it.
   *
   * @param {string} name
   */
  visible(name) {
    let shown = name;
    for (let frame = known(this.items, name)[6]; frame; frame = known(this.frames, frame)[4]) {
      if (!this.open.has(frame)) shown = frame;
    }
    return shown;
  }

  /**
   * Open every frame around an item.
   *
   * @param {string} name
   */
  reveal(name) {
    for (let frame = known(this.items, name)[6]; frame; frame = known(this.frames, frame)[4]) {
      this.open.add(frame);
    }
  }
}

/**
 * The row of a bend; after rounding, rows are off by at most one pixel.
 *
 * @param {Map<number, NamedCell[]>} rows
 * @param {number} y
 */
function nearest(rows, y) {
  for (const near of [y, y - 1, y + 1]) if (rows.has(near)) return near;
  return y;
}

/** @param {Frame} frame */
function closedSize([, label, sub]) {
  const cut = (/** @type {string} */ text) => Math.min(text.length, 44);
  return {
    width: Math.max(cut(label), 0.9 * cut(sub)) * CHARACTER + 40,
    height: sub ? 40 : 26,
  };
}

/**
 * @param {Map<number, NamedCell[]>} rows
 * @returns {Placed}
 */
function placeRows(rows) {
  /** @type {NamedCell[]} */
  const cells = [];
  let top = 0;
  let right = 0;
  let left = 0;
  for (const key of [...rows.keys()].sort((a, b) => a - b)) {
    const row = known(rows, key).sort((a, b) => a.middle - b.middle);
    const height = Math.max(...row.map((cell) => cell.height));
    let edge = -Infinity;
    for (const cell of row) {
      cell.x = Math.max(cell.middle - cell.width / 2, edge);
      cell.y = top + (height - cell.height) / 2;
      edge = cell.x + cell.width + GAP;
      left = Math.min(left, cell.x);
      right = Math.max(right, cell.x + cell.width);
      cells.push(cell);
    }
    top += height + (height ? ROW_GAP : 0);
  }
  for (const cell of cells) cell.x -= left;
  return { cells, width: right - left, height: Math.max(0, top - ROW_GAP) };
}
