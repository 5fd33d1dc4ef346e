// Arrow keys among the rows or bars of a view: the focus itself moves, so that screen readers follow.

const STEPS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

/**
 * `parts` are `{element, things}` in order, in a container that Tab reaches.  The part that has the
 * focus is previewed; Enter pins it.
 */
export function roving(container, parts, selection) {
  const order = new Map(parts.map((part, i) => [part.element, i]));
  for (const { element } of parts) element.setAttribute("tabindex", "-1");
  container.addEventListener("keydown", (event) => {
    const at = order.get(event.target);
    if (event.key === "Enter" && parts[at]?.things.length) selection.pin(parts[at].things);
    if (!(event.key in STEPS) || (at === undefined && event.target !== container)) return;
    const next = at === undefined ? 0 : at + STEPS[event.key];
    parts[Math.max(0, Math.min(parts.length - 1, next))]?.element.focus();
    event.preventDefault();
  });
  container.addEventListener("focusin", (event) => {
    const part = parts[order.get(event.target)];
    if (part) selection.preview(part.things);
  });
  container.addEventListener("focusout", () => selection.preview([]));
}
