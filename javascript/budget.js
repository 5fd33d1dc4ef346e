// A tree with parts for each step of a slider: what each memory budget saves for the backward.

import { html, targetOf } from "./dom.js";
import { say } from "./say.js";
import { atStep, isAt, textLines } from "./tree.js";
import { treeView } from "./view.js";

/** @import { BudgetView, Context, Drawn } from "./types.d.ts" */

/**
 * The view's tree at one step, and a slider; in a live explorer, releasing the slider recompiles.
 *
 * @param {BudgetView} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function budgetView(view, context) {
  const last = view.budgets.length - 1;
  view.state ??= { at: view.at };
  const { state } = view;
  const shown = treeView({ kind: "tree", name: view.name, tree: view.tree }, context);
  const said = /** @type {HTMLElement} */ (shown.element.querySelector(".lab-budget-said"));
  const showStep = stepped(shown.element);
  const slider = html("input", {
    type: "range", min: 0, max: last, value: last - state.at, "aria-label": say("memory budget"),
    oninput: () => move(), onchange: () => settle(),
  });
  const move = () => {
    state.at = last - Number(slider.value);
    showStep(state.at);
    slider.setAttribute("aria-valuetext", said.textContent);
    shown.element.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
  };
  const settle = () => context.whatIf?.setBudget(
    state.at === view.at ? null : view.budgets[state.at]);
  shown.element.addEventListener("click", (event) => {
    const bar = /** @type {HTMLElement | null} */ (targetOf(event).closest("[data-step]"));
    if (!bar) return;
    slider.value = String(last - Number(bar.dataset.step));
    move();
    settle();
  });
  said.before(html("div", { class: "lab-budget-scale" },
    html("span", {}, say("recompute")), slider, html("span", {}, say("save"))));
  move();
  return {
    element: html("div", { class: "lab-budget" }, shown.element),
    light: shown.light,
    find: (query) => shown.find(query).filter((part) => part.isConnected),
    text: () => `${textLines(atStep(view.tree, state.at)).join("\n")}\n`,
  };
}

/**
 * Returns a function that removes the parts of an element that are not in a step, and restores the
 * others.
 *
 * @param {HTMLElement} element
 */
function stepped(element) {
  const parents = new Set([...element.querySelectorAll("[data-steps]")].map((part) => part.parentNode));
  const whole = [...parents].flatMap((parent) => (
    parent ? [{ parent: /** @type {Element} */ (parent), children: [...parent.childNodes] }] : []));
  return (/** @type {number} */ step) => {
    for (const { parent, children } of whole) {
      parent.replaceChildren(...children.filter((child) => (
        !(child instanceof Element) || isAt(child.getAttribute("data-steps"), step))));
    }
  };
}
