// Entry point of the explorer for pages and widgets, built as `widgets/built/page.js`.

import { render, renderZipped } from "./explorer.js";
import { announce } from "./live.js";
import { shareTraits } from "./traits.js";

/** @import { Rendered } from "./types.d.ts" */

export { coloured } from "./colours.js";
export { announce, Line } from "./live.js";
export { renderTabs, tabbed } from "./tabs.js";
export { render, renderZipped };

/** The anywidget interface: announce a model, and draw its document. */
export const widget = {
  initialize(/** @type {Rendered} */ { model }) {
    announce(model);
  },
  async render(/** @type {Rendered} */ { model, el }) {
    const root = document.createElement("div");
    el.append(root);
    const drawn = await renderZipped(root, model.get("document"), model.get("channel"));
    return shareTraits(model, drawn);
  },
};
