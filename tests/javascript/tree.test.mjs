// Trees as text: what is copied from a view, and what a search in one that is closed looks at.

import assert from "node:assert/strict";
import { test } from "node:test";
import { atStep, partText, searched, textLines } from "../../javascript/tree.js";

const row = (things, ...cells) => ["tr", { "data-things": things }, ...cells.map((cell) => (
  ["td", {}, ...[cell].flat()]))];
const TABLE = ["div", { class: "lab-table" },
  ["p", { class: "lab-note" }, "Open a row."],
  ["table", {},
    ["thead", {}, ["tr", {}, ["th", { scope: "col" }, "pair"], ["th", {}, "decision"]]],
    ["tbody", {},
      row("3 4", [["span", { class: "lab-sign ok" }, "✓"], "buf0 + buf1"], "fused"),
      ["tr", { class: "lab-more", hidden: "" }, ["td", {}, ["table", {}, ["tr", {},
        ["td", { class: "lab-sign no" }, "✗"], ["td", {}, "same_device"], ["td", {}, "ok"]]]]],
      row("", "in all", "1")]]];

test("a table is copied by its cells, without signs and without what is folded away", () => {
  assert.deepEqual(textLines(TABLE), ["Open a row.", "pair\tdecision", "buf0 + buf1\tfused",
    "in all\t1"]);
});

test("a search looks at rows and at those that they open, not at heads and notes", () => {
  assert.deepEqual(searched(TABLE), ["buf0 + buf1\tfused", "same_device\tok", "in all\t1"]);
});

test("a part of a drawing says what its title says", () => {
  const bar = ["g", { "data-things": "7" }, ["title", {}, "buf0: 4.0 kB"], ["rect", { x: "1" }]];
  const drawing = ["svg", {}, ["text", { x: "0" }, "live bytes"], bar];
  assert.equal(partText(bar), "buf0: 4.0 kB");
  assert.deepEqual(textLines(drawing), ["buf0: 4.0 kB"]);
  assert.deepEqual(searched(drawing), ["buf0: 4.0 kB"]);
});

test("a tree has at each step of a slider what belongs there, and what always does", () => {
  const tree = ["p", {}, "kept: ", ["b", { "data-steps": "0" }, "all"],
    ["b", { "data-steps": "1 2" }, "few", ["i", { "data-steps": "10" }, "!"]]];
  assert.deepEqual([0, 1, 2, 3, 10].map((step) => partText(atStep(tree, step))),
    ["kept: \tall", "kept: \tfew", "kept: \tfew", "kept: ", "kept: "]);
  assert.equal(tree.length, 5, "the tree itself is as it was");
});
