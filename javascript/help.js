// The list of keys that `?` opens.

import { html } from "./dom.js";
import { say } from "./say.js";

/** @type {[key: string, what: string][]} */
const KEYS = [
  ["hover", "light up what a line or box came from and became"],
  ["click, Enter", "pin it; again to let go"],
  ["Esc", "clear"],
  ["[ ]", "previous and next phase in the focused pane"],
  ["/", "search; Enter for the next; closed panes are named with what they hold"],
  ["d", "the diff, where there is one"],
  ["f + -", "fit and zoom a graph"],
  ["n p", "next and previous box of a graph"],
  ["arrows", "line by line, among phases and tabs, or move a graph"],
  ["P", "large type, for an audience"],
  ["F", "the whole screen; again or Esc to come back"],
  ["?", "this list"],
];

/** @param {() => void} close */
export function helpPanel(close) {
  const rows = KEYS.map(([key, what]) => html("tr", {},
    html("td", {}, html("kbd", {}, say(key))), html("td", {}, say(what))));
  return html("div", {
    class: "lab-help", role: "dialog", "aria-label": say("keys"), tabindex: -1, onclick: close,
  }, html("table", {}, rows));
}
