// Export of drawings as SVG or PNG, with all computed styles inlined.

import { download, html } from "./dom.js";
import { say } from "./say.js";

/** @import { Drawing } from "./types.d.ts" */

const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family",
  "font-size", "font-weight", "text-anchor", "paint-order"];
const SHARPER = 2;
const AROUND = 10;

/**
 * The two export buttons; `drawing()` returns an SVG element and its size.
 *
 * @param {string} name
 * @param {() => Drawing} drawing
 */
export function exportButtons(name, drawing) {
  const button = (/** @type {string} */ label, /** @type {() => void} */ action) => html("button", {
    type: "button", title: say("save as {label}", { label }), onclick: action,
    "aria-label": say("save as {label}", { label }),
  }, label);
  return [
    button("SVG", () => download(`${name}.svg`, "image/svg+xml", standalone(drawing()))),
    button("PNG", async () => {
      const found = drawing();
      download(`${name}.png`, "image/png", await painted(standalone(found), found));
    }),
  ];
}

/**
 * The text of an SVG file: a copy of the element with inline styles.
 *
 * @param {Drawing} drawing
 */
function standalone({ element, width, height }) {
  const copied = /** @type {SVGElement} */ (element.cloneNode(true));
  writeStyles(element, copied);
  copied.removeAttribute("transform");
  const explorer = /** @type {Element} */ (element.closest(".lab-explorer"));
  const paper = getComputedStyle(explorer).backgroundColor;
  const [w, h] = [width, height].map((side) => Math.ceil(side) + 2 * AROUND);
  const inside = new XMLSerializer().serializeToString(copied);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">`
    + `<rect width="${w}" height="${h}" fill="${paper}"/>`
    + `<g transform="translate(${AROUND} ${AROUND})">${inside}</g></svg>\n`;
}

/**
 * @param {Element} shown
 * @param {Element} copied
 */
function writeStyles(shown, copied) {
  const style = getComputedStyle(shown);
  copied.setAttribute("style", PROPERTIES.map((name) => `${name}:${style.getPropertyValue(name)}`)
    .join(";").replaceAll('"', "'"));
  [...shown.children].forEach((child, i) => writeStyles(child, copied.children[i]));
}

/**
 * @param {string} text
 * @param {Drawing} drawing
 * @returns {Promise<Blob>}
 */
function painted(text, { width, height }) {
  const picture = new Image();
  const [w, h] = [width, height].map((side) => SHARPER * (Math.ceil(side) + 2 * AROUND));
  const canvas = html("canvas", { width: w, height: h });
  return new Promise((done, failed) => {
    picture.onload = () => {
      canvas.getContext("2d")?.drawImage(picture, 0, 0, w, h);
      canvas.toBlob((file) => (file ? done(file) : failed(new Error(`no PNG of ${w} by ${h}`))), "image/png");
    };
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}
