// Entry point for pages made of trees from Python: benchmarks, and the stepper.

import { choose, follow } from "./bench.js";
import { steps } from "./debug.js";
import { announce } from "./live.js";

/** @import { Rendered } from "./types.d.ts" */

export { addButtons } from "./bench.js";
export { stepsInPage } from "./debug.js";

export const benchWidget = {
  render: (/** @type {Rendered} */ { model, el }) => follow(model, el),
};
export const choiceWidget = {
  render: (/** @type {Rendered} */ { model, el }) => choose(model, el),
};
export const stepsWidget = {
  initialize(/** @type {Rendered} */ { model }) {
    announce(model);
  },
  render: (/** @type {Rendered} */ { model, el }) => steps(model, el),
};
