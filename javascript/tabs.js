// Several explorers in one output, as tabs.

import { html, refill } from "./dom.js";
import { renderZipped } from "./explorer.js";
import { oneStop } from "./roving.js";
import { followTheme } from "./theme.js";

/**
 * `documents` are [compressed document, channel, title].
 *
 * @param {HTMLElement} root
 * @param {[zipped: string, channel: string | null, title: string][]} documents
 */
export function renderTabs(root, documents) {
  tabbed(root, documents.map(([, , title]) => title), (place, i) => {
    const [zipped, channel] = documents[i];
    renderZipped(place, zipped, channel);
  });
}

/**
 * Tabs with these titles; `draw` is called when a tab is first opened.  The last one is open.
 *
 * @param {HTMLElement} root
 * @param {string[]} titles
 * @param {(place: HTMLElement, i: number) => void} draw
 */
export function tabbed(root, titles, draw) {
  const panels = titles.map(() => html("div", { role: "tabpanel", hidden: true }));
  const tabs = titles.map((title, i) => html("button", {
    type: "button", role: "tab", onclick: () => open(i),
  }, title));
  /** @type {Set<number>} */
  const drawn = new Set();

  function open(/** @type {number} */ i) {
    if (!drawn.has(i)) draw(panels[i].appendChild(html("div")), i);
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
  open(titles.length - 1);
}
