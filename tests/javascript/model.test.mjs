// What needs no page: links, selection, packing, colours, placement.

import assert from "node:assert/strict";
import { test } from "node:test";
import { coloured } from "../../javascript/colours.js";
import { Links, lineNumber } from "../../javascript/links.js";
import { Placement } from "../../javascript/place.js";
import { Selection } from "../../javascript/selection.js";

// f.py:2 → sin → buf0, f.py:3 → cos → buf0; nothing came of f.py:9
const DATA = {
  kind: ["source", "source", "node", "node", "buffer", "source"],
  scope: ["f.py", "f.py", "g0", "g0", "g0", "f.py"],
  label: ["f.py:3", "f.py:2", "cos", "sin", "buf0", "f.py:9"],
  parents: [[], [], [0], [1], [2, 3], []],
};

test("the way of a thing is all it came from and all it became, and nothing beside it", () => {
  const links = new Links(DATA);
  assert.deepEqual([...links.related([3])].sort(), [1, 3, 4]);
  assert.deepEqual([...links.related([4])].sort(), [0, 1, 2, 3, 4]);
  assert.deepEqual([...links.related([5])], [5]);
});

test("a cue is the first source line by its number, with + where there are several", () => {
  const links = new Links(DATA);
  assert.deepEqual(links.cue([4]), { hue: 0, number: "2+", title: "f.py:2, f.py:3" });
  assert.deepEqual(links.cue([2]), { hue: 1, number: "3", title: "f.py:3" });
  assert.equal(links.cue([5]), null, "a line that became nothing has no colour");
  assert.equal(lineNumber("C:/a/b.py:41"), 41);
});

test("hover previews, a click pins, the same click lets go", () => {
  const selection = new Selection(new Links(DATA));
  const heard = [];
  const stop = selection.listen((lit, things) => heard.push([lit && [...lit].sort(), things]));
  selection.preview([3]);
  selection.preview([3]);
  assert.deepEqual(heard, [[[1, 3, 4], [3]]], "the same again is no news");
  selection.pin([2]);
  selection.preview([]);
  assert.deepEqual(selection.things, [2], "what is pinned stays");
  selection.pin([2]);
  assert.deepEqual(heard.at(-1), [null, []]);
  stop();
  selection.pin([4]);
  assert.deepEqual(heard.at(-1), [null, []]);
  selection.clear();
  assert.deepEqual(selection.things, []);
});

test("words are coloured, none is lost, and a text goes on in the next line", () => {
  const first = coloured('x = f("a")  # why """', "python");
  assert.equal(first.words.map(([, text]) => text).join(""), 'x = f("a")  # why """');
  assert.deepEqual(first.words.find(([kind]) => kind === "comment"), ["comment", '# why """']);
  assert.equal(first.open, null, "a comment opens no text");
  const { open } = coloured('s = """one', "python");
  assert.deepEqual(coloured("two", "python", open), { words: [["string", "two"]], open: '"""' });
  assert.equal(coloured('three"""', "python", open).open, null);
  assert.equal(coloured("/* a", "cpp").open, "/*");
});

const PICTURE = {
  items: [["a", "a", "", "input", "", [0], ""], ["b", "b", "", "call", "", [1], "F"],
    ["c", "c", "", "output", "", [2], ""]],
  frames: [["F", "layer", "", "", "", false, []]],
  edges: [0, 1, 1, 2],
  inside: {
    "": { size: [80, 160], names: ["a", "F", "c"], routes: [],
      boxes: [[0, 0, 40, 26], [0, 56, 60, 26], [0, 112, 40, 26]] },
    F: { size: [40, 26], names: ["b"], boxes: [[0, 0, 40, 26]], routes: [] },
  },
};

test("a closed frame is one box; open, it has room for what is in it, and the rest moves", () => {
  const placement = new Placement(PICTURE);
  const closed = placement.place();
  assert.deepEqual([...closed.boxes.keys()], ["a", "F", "c"]);
  assert.equal(placement.visible("b"), "F");
  assert.equal(closed.arrows.length, 2);
  placement.reveal("b");
  const open = placement.place();
  const [frame, inner, below] = ["F", "b", "c"].map((name) => open.boxes.get(name));
  assert.ok(inner.y > frame.y && inner.y + inner.height <= frame.y + frame.height);
  assert.ok(below.y >= frame.y + frame.height, "nothing overlaps");
  assert.ok(open.height > closed.height);
});
