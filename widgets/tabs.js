// Several explorers in one output: a row of tabs above the one that is shown.

import { html, refill } from "./dom.js";
import { render } from "./explorer.js";
import { followTheme } from "./theme.js";

/** `documents` are [document, channel, title]; each is drawn when its tab is first opened. */
export function renderTabs(root, documents) {
  const panels = documents.map(() => html("div", { role: "tabpanel", hidden: true }));
  const tabs = documents.map(([, , title], i) => html("button", {
    type: "button", role: "tab", onclick: () => open(i), onkeydown: (event) => move(event, i),
  }, title));
  const drawn = new Set();

  function open(i) {
    if (!drawn.has(i)) render(panels[i].appendChild(html("div")), ...documents[i].slice(0, 2));
    drawn.add(i);
    panels.forEach((panel, n) => { panel.hidden = n !== i; });
    tabs.forEach((tab, n) => {
      tab.setAttribute("aria-selected", String(n === i));
      tab.tabIndex = n === i ? 0 : -1;
    });
  }

  function move(event, i) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    const next = (i + by + tabs.length) % tabs.length;
    open(next);
    tabs[next].focus();
    event.preventDefault();
  }

  root.classList.add("lab-explorers");
  followTheme(root);
  refill(root, html("div", { role: "tablist", class: "lab-explorer-tabs" }, tabs), ...panels);
  open(documents.length - 1);
}
