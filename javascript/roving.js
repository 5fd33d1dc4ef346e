// Arrow keys move the focus between rows, bars or buttons, so that screen readers follow.

import { targetOf } from "./dom.js";

/** @import { Part, Selection } from "./types.d.ts" */

/** @type {Record<string, number>} */
export const ARROWS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

/**
 * Arrow keys between the buttons of a container, of which Tab reaches one; they wrap around.
 *
 * @param {HTMLElement} container
 * @param {(place: number) => HTMLElement | undefined} reach returns the button that gets the focus
 */
export function oneStop(container, reach) {
  container.addEventListener("keydown", (event) => {
    const buttons = [...container.querySelectorAll("button")];
    const at = buttons.findIndex((button) => button === event.target);
    if (at < 0 || !(event.key in ARROWS)) return;
    reach((at + ARROWS[event.key] + buttons.length) % buttons.length)?.focus();
    event.preventDefault();
  });
}

/**
 * `parts` are `{element, things}` in order, in a container that Tab reaches.  The focused part is
 * previewed; Enter pins it.
 *
 * @param {HTMLElement} container
 * @param {Part[]} parts
 * @param {Selection} selection
 */
export function roving(container, parts, selection) {
  /** @type {Map<Element, Part>} */
  const whole = new Map(parts.map((part) => [part.element, part]));
  for (const { element } of parts) element.setAttribute("tabindex", "-1");
  container.addEventListener("keydown", (event) => {
    const part = whole.get(targetOf(event));
    if (event.key === "Enter" && part?.things.length) selection.pin(part.things);
    if (!(event.key in ARROWS) || (!part && event.target !== container)) return;
    const there = parts.filter((each) => container.contains(each.element));
    const next = part ? there.indexOf(part) + ARROWS[event.key] : 0;
    there[Math.max(0, Math.min(there.length - 1, next))]?.element.focus();
    event.preventDefault();
  });
  container.addEventListener("focusin", (event) => {
    const part = whole.get(targetOf(event));
    if (part) selection.preview(part.things);
  });
  container.addEventListener("focusout", () => selection.preview([]));
}
