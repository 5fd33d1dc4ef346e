// The panel of keyboard shortcuts, opened with `?`.

import { html } from "./dom.js";
import { say } from "./say.js";

/** @type {[key: string, what: string][]} */
const KEYS = [
  ["hover", "highlight related code in every stage"],
  ["click, Enter", "click to pin; click again to unpin"],
  ["Esc", "clear"],
  ["[ ]", "previous and next stage in the focused pane"],
  ["/", "search; Enter: next match; closed panes are listed with their matches"],
  ["Shift-click", "open a stage in another pane"],
  ["line between panes", "drag it, or focus it and press arrow keys, to resize the panes"],
  ["d", "show the diff, if there is one"],
  ["f + -", "fit a graph, zoom in, zoom out"],
  ["n p", "next and previous box of a graph"],
  ["arrows", "move between lines, stages or tabs; pan a graph"],
  ["P", "presentation mode: large type"],
  ["F", "full screen; again or Esc to leave"],
  ["?", "show these shortcuts"],
];

/** @param {() => void} close */
export function helpPanel(close) {
  const rows = KEYS.map(([key, what]) => html("tr", {},
    html("td", {}, html("kbd", {}, say(key))), html("td", {}, say(what))));
  return html("div", {
    class: "lab-help", role: "dialog", "aria-label": say("keyboard shortcuts"), tabindex: -1, onclick: close,
  }, html("table", {}, rows));
}
