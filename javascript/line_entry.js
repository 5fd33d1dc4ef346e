// Entry point that only connects a widget's model to an existing explorer.

import { announce } from "./live.js";

/** @import { Rendered } from "./types.d.ts" */

export { Line } from "./live.js";

export const widget = {
  initialize(/** @type {Rendered} */ { model }) {
    announce(model);
  },
};
