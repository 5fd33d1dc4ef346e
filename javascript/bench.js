// A page that Python sends as a tree `[tag, attributes, ...children]`: build it and keep it updated.

import { copyText, html, targetOf } from "./dom.js";
import { followTheme } from "./theme.js";
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
  followTheme(root);
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

/**
 * Draw the model's tree; a click on an element with `data-select` or `data-view` sets that trait.
 *
 * @param {Model} model
 * @param {HTMLElement} root
 */
export function choose(model, root) {
  followTheme(root);
  const places = () => /** @type {HTMLElement[]} */ (
    [...root.querySelectorAll("[data-select], [data-view]")]);
  const draw = () => {
    const held = places().findIndex((place) => place.matches(":focus"));
    root.replaceChildren(build(model.get("tree")));
    addButtons(root);
    places()[held]?.focus({ preventScroll: true });
  };
  const set = (/** @type {Event} */ event) => {
    const place = /** @type {HTMLElement | null} */ (
      targetOf(event).closest("[data-select], [data-view]"));
    if (!place) return;
    const { select, view } = place.dataset;
    if (view) model.set("view", view);
    else model.set("selected", JSON.parse(select ?? "{}"));
    model.save_changes();
  };
  const enter = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && targetOf(event).matches("tr")) set(event);
  };
  root.addEventListener("click", set);
  root.addEventListener("keydown", enter);
  model.on("change:tree", draw);
  draw();
  return () => {
    root.removeEventListener("click", set);
    root.removeEventListener("keydown", enter);
    model.off("change:tree", draw);
  };
}
