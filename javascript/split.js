// The lines between panes: drag one, or focus it and press an arrow key, to resize the panes.
//
// Shares of the width and height are CSS variables of the area around the panes.  The page stores the
// last shares, so that the next explorer opens with them.

import { html } from "./dom.js";
import { say } from "./say.js";

/** @typedef {"left" | "top"} Side the first column, or the first row */

const STORED = "inductor_lab.panes";
const SMALLEST = 15;
const LARGEST = 85;
const STEP = 2;
const EQUAL = 50;
/** @type {Record<string, number>} */
const MOVES = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP };

/**
 * The area that contains the panes and the two lines between them.
 *
 * @param {HTMLElement} panes
 */
export function resizable(panes) {
  const area = html("div", { class: "lab-work" }, panes);
  const shares = stored();
  area.append(line(area, "left", shares), line(area, "top", shares));
  return area;
}

/**
 * @param {HTMLElement} area
 * @param {Side} side
 * @param {Record<Side, number>} shares
 */
function line(area, side, shares) {
  const isColumn = side === "left";
  const label = isColumn ? say("width of the left panes") : say("height of the upper panes");
  const element = html("div", {
    class: `lab-split lab-split-${side}`, role: "separator", tabindex: 0, "aria-label": label,
    title: say("drag to resize; double-click for equal sizes"),
    "aria-orientation": isColumn ? "vertical" : "horizontal",
    "aria-valuemin": SMALLEST, "aria-valuemax": LARGEST,
  });
  /** @param {number} wanted */
  const set = (wanted) => {
    const share = Math.max(SMALLEST, Math.min(LARGEST, wanted));
    shares[side] = share;
    area.style.setProperty(`--${side}`, `${share}%`);
    element.setAttribute("aria-valuenow", String(Math.round(share)));
  };
  element.addEventListener("pointerdown", (event) => {
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
    element.focus({ preventScroll: true });
  });
  element.addEventListener("pointermove", (event) => {
    if (!element.hasPointerCapture(event.pointerId)) return;
    const box = area.getBoundingClientRect();
    set(100 * (isColumn ? (event.clientX - box.left) / box.width
      : (event.clientY - box.top) / box.height));
  });
  element.addEventListener("lostpointercapture", () => store(shares));
  element.addEventListener("dblclick", () => { set(EQUAL); store(shares); });
  element.addEventListener("keydown", (event) => {
    const wanted = event.key === "Home" ? SMALLEST : event.key === "End" ? LARGEST
      : event.key in MOVES ? shares[side] + MOVES[event.key] : null;
    if (wanted === null) return;
    set(wanted);
    store(shares);
    event.preventDefault();
    event.stopPropagation();
  });
  set(shares[side]);
  return element;
}

/** @returns {Record<Side, number>} */
function stored() {
  try {
    const { left, top } = JSON.parse(localStorage.getItem(STORED) || "{}");
    return { left: Number(left) || EQUAL, top: Number(top) || EQUAL };
  } catch { // a page that may not store anything
    return { left: EQUAL, top: EQUAL };
  }
}

/** @param {Record<Side, number>} shares */
function store(shares) {
  try {
    localStorage.setItem(STORED, JSON.stringify(shares));
  } catch { // a page that may not store anything
  }
}
