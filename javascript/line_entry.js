// Only what joins a widget's model to an explorer that is drawn already.

import { announce } from "./live.js";

/** @import { Rendered } from "./types.d.ts" */

export { Line } from "./live.js";

export const widget = {
  initialize(/** @type {Rendered} */ { model }) {
    announce(model);
  },
};
