// The stepper for a compiled call: Python holds the state, the page has the buttons.

import { html, targetOf } from "./dom.js";
import { whenLive } from "./live.js";
import { say, speak } from "./say.js";
import { followTheme } from "./theme.js";
import { build } from "./tree.js";

/** @import { Model } from "./types.d.ts" */

/**
 * Add buttons to a cell's output as soon as the model of `channel` exists.  Without a kernel the
 * output stays static.
 *
 * @param {HTMLElement} root
 * @param {string} channel
 * @param {Record<string, string>} [texts] in the notebook's language
 */
export function stepsInPage(root, channel, texts) {
  const held = new WeakRef(root);
  speak(texts);
  whenLive(channel, (line) => {
    const here = held.deref();
    if (!here) return;
    steps(line.model, here, async (word) => {
      const { error } = await line.ask({ do: word });
      if (!error) return;
      for (const button of here.querySelectorAll("[data-do]")) button.remove();
      here.append(html("p", { class: "lab-machine", role: "alert" }, say(error)));
    });
  }, () => !held.deref());
}

/**
 * Draw the model's tree; a button sends the value of its `data-do`.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 * @param {(word: string) => void} send
 */
export function steps(model, root, send = (word) => model.send({ do: word })) {
  followTheme(root);
  const draw = () => {
    const held = /** @type {HTMLElement | null} */ (root.querySelector("[data-do]:focus"));
    root.replaceChildren(build(model.get("tree")));
    const buttons = /** @type {HTMLElement[]} */ ([...root.querySelectorAll("[data-do]")]);
    if (held) (buttons.find((each) => each.dataset.do === held.dataset.do) || buttons[0])?.focus();
  };
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
