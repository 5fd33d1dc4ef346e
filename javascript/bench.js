// A page that Python sends as a tree `[tag, attributes, ...children]`: build it and keep it updated.

import { copyText, html } from "./dom.js";
import { build } from "./tree.js";

/** @import { Model } from "./types.d.ts" */

/**
 * Add a copy button before each Markdown text.
 *
 * @param {HTMLElement} root
 */
export function addButtons(root) {
  /** @type {NodeListOf<HTMLElement>} */
  const texts = root.querySelectorAll(".lab-markdown");
  for (const text of texts) {
    const { copy = "", copied = "" } = text.dataset;
    const button = html("button", {
      type: "button",
      onclick: async () => {
        await copyText(text.textContent || "");
        button.textContent = copied;
        setTimeout(() => { button.textContent = copy; }, 1500);
      },
    }, copy);
    text.closest("details")?.before(button);
  }
}

/**
 * Draw the model's tree and redraw it on every change; the elapsed time counts on in between.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 */
export function follow(model, root) {
  let shown = performance.now();
  const draw = () => {
    root.replaceChildren(build(model.get("tree")));
    shown = performance.now();
  };
  const count = () => {
    const label = /** @type {HTMLElement | null} */ (root.querySelector(".lab-since"));
    if (!label) return;
    const seconds = Number(label.dataset.since) + (performance.now() - shown) / 1000;
    label.textContent = `${seconds.toFixed(1)} s`;
  };
  model.on("change:tree", draw);
  draw();
  const clock = setInterval(count, 100);
  return () => {
    clearInterval(clock);
    model.off("change:tree", draw);
  };
}
