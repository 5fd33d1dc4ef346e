// Several explorers in one output, as tabs.

import { html, refill } from "./dom.js";
import { renderZipped } from "./explorer.js";
import { oneStop } from "./roving.js";
import { followTheme } from "./theme.js";

/**
 * `documents` are [compressed document, channel, title]; each is drawn when its tab is first opened.
 *
 * @param {HTMLElement} root
 * @param {[zipped: string, channel: string | null, title: string][]} documents
 */
export function renderTabs(root, documents) {
  const panels = documents.map(() => html("div", { role: "tabpanel", hidden: true }));
  const tabs = documents.map(([, , title], i) => html("button", {
    type: "button", role: "tab", onclick: () => open(i),
  }, title));
  /** @type {Set<number>} */
  const drawn = new Set();

  function open(/** @type {number} */ i) {
    const [zipped, channel] = documents[i];
    if (!drawn.has(i)) renderZipped(panels[i].appendChild(html("div")), zipped, channel);
    drawn.add(i);
    panels.forEach((panel, n) => { panel.hidden = n !== i; });
    tabs.forEach((tab, n) => {
      tab.setAttribute("aria-selected", String(n === i));
      tab.tabIndex = n === i ? 0 : -1;
    });
  }

  const row = html("div", { role: "tablist", class: "lab-explorer-tabs" }, tabs);
  oneStop(row, (i) => {
    open(i);
    return tabs[i];
  });
  root.classList.add("lab-explorers");
  followTheme(root);
  refill(root, row, ...panels);
  open(documents.length - 1);
}
