// The traits of the explorer's widget, with an explorer that has no page.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Links } from "../../javascript/links.js";
import { Selection } from "../../javascript/selection.js";
import { shareTraits } from "../../javascript/traits.js";

// f.py:2 → sin → buf0; g1 has a node sin too
const links = new Links({
  kind: ["source", "node", "buffer", "node"],
  scope: ["f.py", "g0.forward", "g0.forward", "g1.forward"],
  label: ["f.py:2", "sin", "buf0", "sin"],
  parents: [[], [0], [1], []],
});
const block = (title, first, ...lines) => ({ title, first, language: "", lines });
const PANES = {
  source: { views: [{ kind: "text", blocks: [block("", 2, ["y = sin(x)", [0]])] }] },
  "g0.forward.graph": { views: [{ kind: "graph" }] },
  "g1.forward.graph": { views: [{ kind: "graph" }] },
  "g0.forward.code": { views: [{
    kind: "text",
    blocks: [block("k0   cpp", 1, ["void k0()"], ["sin", [1]]), block("k1   cpp", 1, ["buf0", [2]])],
  }] },
};

function start(given = {}) {
  const state = { view: "source", selected: {}, ...given };
  const heard = [];
  const listeners = {};
  const model = {
    sent: [],
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      listeners[`change:${name}`]?.();
    },
    save_changes: () => model.sent.push({ ...state }),
    on: (name, told) => { listeners[name] = told; },
    off: (name) => { delete listeners[name]; },
  };
  const explorer = {
    links, doc: { panes: PANES }, order: Object.keys(PANES), selection: new Selection(links),
    focused: { id: "source" }, moved() {}, chosenOf: () => 0,
    show(id) {
      const goTo = (line) => {
        const all = PANES[id].views[0].blocks.flatMap((each) => each.lines);
        heard.push(line);
        explorer.selection.hold(all[line - 1][1] || [], line - 1);
      };
      explorer.focused = { id, view: { goTo } };
      explorer.moved();
      return explorer.focused;
    },
  };
  return { model, explorer, state, heard, end: shareTraits(model, explorer), listeners };
}

test("a click sets the traits, once", () => {
  const { model, explorer, state } = start();
  explorer.show("g0.forward.code");
  explorer.selection.pin([2], 2);
  assert.deepEqual(state.selected,
    { stage: "g0.forward.code", kernel: "k1", line: 1, node: "buf0" });
  assert.equal(state.view, "g0.forward.code");
  assert.equal(model.sent.length, 2);
  explorer.selection.preview([1]);
  explorer.selection.preview([]);
  assert.equal(model.sent.length, 2, "hovering selects nothing");
  explorer.selection.clear();
  assert.deepEqual(state.selected, {});
  explorer.show("source");
  explorer.selection.pin([0], 0);
  assert.deepEqual(state.selected, { stage: "source", line: 2 });
});

test("what a program sets is shown, and stays as it was set", () => {
  const { model, explorer, state, heard } = start();
  model.set("selected", { stage: "g0.forward.code", kernel: "k1" });
  assert.deepEqual([explorer.selection.things, heard], [[2], [3]]);
  assert.deepEqual(state.selected, { stage: "g0.forward.code", kernel: "k1" });
  assert.equal(state.view, "g0.forward.code");
  model.set("selected", { stage: "g0.forward.code", line: 2 });
  assert.deepEqual(explorer.selection.things, [1]);
  model.set("selected", { stage: "g1.forward.graph", node: "sin" });
  assert.deepEqual([explorer.selection.things, explorer.focused.id], [[3], "g1.forward.graph"]);
  model.set("selected", { stage: "g0.forward.graph", node: "sin" });
  assert.deepEqual(explorer.selection.things, [1]);
  model.set("selected", {});
  assert.deepEqual(explorer.selection.things, []);
  model.set("view", "source");
  assert.equal(explorer.focused.id, "source");
});

test("a wrong value moves nothing and is taken back", () => {
  const { model, explorer, state } = start();
  const before = { stage: "g0.forward.graph", node: "sin" };
  model.set("selected", before);
  const wrong = [{ stage: "nowhere" }, { stage: "g0.forward.code", line: 9 },
    { stage: "g0.forward.graph", line: 1 }, { stage: "source", node: "cosine" }];
  for (const selected of wrong) {
    model.set("selected", selected);
    assert.deepEqual([state.selected, explorer.selection.things], [before, [1]]);
  }
  model.set("view", "nowhere");
  assert.deepEqual([state.view, explorer.focused.id], ["g0.forward.graph", "g0.forward.graph"]);
});

test("a widget that is shown later shows its traits, and a removed one follows nothing", () => {
  const { explorer, end, listeners } = start({ view: "g1.forward.graph",
    selected: { stage: "g0.forward.graph", node: "buf0" } });
  assert.deepEqual([explorer.focused.id, explorer.selection.things], ["g0.forward.graph", [2]]);
  end();
  assert.deepEqual(Object.keys(listeners), []);
});
