// A search in pieces: quick ones at once, long ones give way, and a new one ends the old.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inSteps, PATIENCE, PAUSE, Pieces, REST } from "../../javascript/pieces.js";

/** Pieces whose clock goes on by `each` with every look, and what they have put off. */
function clocked(each) {
  const waiting = [];
  let time = 0;
  const pieces = new Pieces(() => { time += each; return time; }, (next) => waiting.push(next));
  return { pieces, waiting };
}

test("what is quick is done at once", () => {
  const { pieces, waiting } = clocked(0);
  const done = [];
  pieces.run(inSteps([1, 2, 3, 4, 5], (value) => done.push(value), 2));
  assert.deepEqual(done, [1, 2, 3, 4, 5]);
  assert.equal(waiting.length, 0);
});

test("what takes long gives way after each piece", () => {
  const { pieces, waiting } = clocked(PATIENCE);
  const done = [];
  pieces.run(inSteps([1, 2, 3], (value) => done.push(value), 1));
  assert.deepEqual(done, [1]);
  while (waiting.length) waiting.shift()();
  assert.deepEqual(done, [1, 2, 3]);
});

test("a step that asks for it lets the page have its turn", () => {
  const { pieces, waiting } = clocked(0);
  const done = [];
  pieces.run((function* steps() {
    done.push("key");
    yield REST;
    done.push("scroll");
  })());
  assert.deepEqual(done, ["key"]);
  while (waiting.length) waiting.shift()();
  assert.deepEqual(done, ["key", "scroll"]);
});

test("a new search ends the one before", () => {
  const { pieces, waiting } = clocked(PATIENCE);
  const done = [];
  pieces.run(inSteps(["a", "b"], (value) => done.push(value), 1));
  pieces.run(inSteps(["c", "d"], (value) => done.push(value), 1));
  while (waiting.length) waiting.shift()();
  assert.deepEqual(done, ["a", "c", "d"]);
});

test("a pause is waited for, and a key in it leaves out what comes after", () => {
  const waits = [];
  const pieces = new Pieces(() => 0, (next, wait) => waits.push([next, wait]));
  const done = [];
  const steps = function* steps(name) {
    done.push(name);
    yield PAUSE;
    done.push(`${name} opened`);
  };
  pieces.run(steps("a"));
  pieces.run(steps("b"));
  assert.deepEqual(waits.map(([, wait]) => wait), [PAUSE, PAUSE]);
  for (const [next] of waits) next();
  assert.deepEqual(done, ["a", "b", "b opened"]);
});
