// A compiled call that is stepped through: Python holds it, the page has the buttons.

import { targetOf } from "./dom.js";
import { build } from "./tree.js";

/** @import { Model } from "./types.d.ts" */

/**
 * Draw what the model holds; a button with `data-do` sends that word.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 */
export function steps(model, root) {
  const draw = () => root.replaceChildren(build(model.get("tree")));
  const ask = (/** @type {Event} */ event) => {
    const button = /** @type {HTMLElement | null} */ (targetOf(event).closest("[data-do]"));
    if (button) model.send({ do: button.dataset.do });
  };
  root.addEventListener("click", ask);
  model.on("change:tree", draw);
  draw();
  return () => {
    root.removeEventListener("click", ask);
    model.off("change:tree", draw);
  };
}
