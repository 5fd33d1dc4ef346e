// Presentation mode, full screen, and links to a line (`report.html#g0.forward.code/12`).

import { targetOf } from "./dom.js";

/** @import { Explorer } from "./types.d.ts" */

/**
 * Toggle presentation mode (large type).
 *
 * @param {HTMLElement} root
 */
export function togglePresenter(root) {
  root.classList.toggle("presenting");
}

/**
 * Toggle full screen, if the page may use it.
 *
 * @param {HTMLElement} root
 */
export function toggleFullScreen(root) {
  const done = document.fullscreenElement === root
    ? document.exitFullscreen() : root.requestFullscreen?.();
  done?.catch(() => {});
}

/**
 * The factor by which an element is enlarged.
 *
 * @param {HTMLElement} root
 */
export function enlarged(root) {
  return root.getBoundingClientRect().width / root.offsetWidth || 1;
}

/**
 * Keep the address of a report in sync with what it shows: `#pane/line`, counted from 1.  The address
 * of a notebook is not changed, and a frame in JupyterLab has none.
 *
 * @param {Explorer} explorer
 */
export function deepLinks(explorer) {
  const { root } = explorer;
  if (!root.classList.contains("lab-page") || location.protocol === "about:") return;
  const held = new WeakRef(explorer);
  addEventListener("hashchange", function changed() {
    const alive = held.deref();
    if (alive) follow(alive);
    else removeEventListener("hashchange", changed);
  });
  root.addEventListener("click", (event) => {
    const line = /** @type {HTMLElement | null} */ (targetOf(event).closest(".lab-line"));
    const pane = /** @type {HTMLElement | null | undefined} */ (line?.closest(".lab-pane"))?.dataset.pane;
    if (pane && line?.dataset.line) history.replaceState(null, "", address(pane, line.dataset.line));
  });
  follow(explorer);
}

const address = (/** @type {string} */ pane, /** @type {string} */ line) => (
  `#${pane}/${Number(line) + 1}`);

/** @param {Explorer} explorer */
function follow(explorer) {
  const [id, line] = decodeURIComponent(location.hash.slice(1)).split("/");
  const pane = explorer.doc.panes[id];
  if (!pane) return;
  const text = line ? pane.views.findIndex((view) => view.kind === "text") : -1;
  const slot = explorer.show(id, false, text < 0 ? null : text);
  if (text >= 0) slot.view.goTo?.(Number(line));
}
