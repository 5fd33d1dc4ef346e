// A compiled call that is stepped through: Python holds it, the page has the buttons.

import { html, targetOf } from "./dom.js";
import { whenLive } from "./live.js";
import { build } from "./tree.js";

/** @import { Model } from "./types.d.ts" */

/**
 * What stands in a cell's output gets its buttons as soon as the model of `channel` is there.  A
 * notebook that is opened without its kernel keeps what stands there.
 *
 * @param {HTMLElement} root
 * @param {string} channel
 */
export function stepsInPage(root, channel) {
  const held = new WeakRef(root);
  whenLive(channel, (line) => {
    const here = held.deref();
    if (!here) return;
    steps(line.model, here, async (word) => {
      const { error } = await line.ask({ do: word });
      if (!error) return;
      for (const button of here.querySelectorAll("[data-do]")) button.remove();
      here.append(html("p", { class: "lab-machine", role: "alert" }, here.dataset.gone ?? error));
    });
  }, () => !held.deref());
}

/**
 * Draw what the model holds; a button with `data-do` sends that word.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 * @param {(word: string) => void} send
 */
export function steps(model, root, send = (word) => model.send({ do: word })) {
  const draw = () => root.replaceChildren(build(model.get("tree")));
  const ask = (/** @type {Event} */ event) => {
    const button = /** @type {HTMLElement | null} */ (targetOf(event).closest("[data-do]"));
    if (button?.dataset.do) send(button.dataset.do);
  };
  root.addEventListener("click", ask);
  model.on("change:tree", draw);
  draw();
  return () => {
    root.removeEventListener("click", ask);
    model.off("change:tree", draw);
  };
}
