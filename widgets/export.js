// Pictures to take away: the drawing as it is seen, as SVG or PNG, with every colour written out.

import { download, html } from "./dom.js";

const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family",
  "font-size", "font-weight", "text-anchor", "paint-order"];
const SHARPER = 2;
const AROUND = 10;

/** Two buttons; `drawing()` gives `{element, width, height}`, an SVG element and its size. */
export function exportButtons(name, drawing) {
  const button = (label, action) => html("button", {
    type: "button", title: `save as ${label}`, "aria-label": `save as ${label}`, onclick: action,
  }, label);
  return [
    button("SVG", () => download(`${name}.svg`, "image/svg+xml", standalone(drawing()))),
    button("PNG", async () => {
      const found = drawing();
      download(`${name}.png`, "image/png", await painted(standalone(found), found));
    }),
  ];
}

/** The text of an SVG file: a copy of the element that needs no style sheet. */
function standalone({ element, width, height }) {
  const copied = element.cloneNode(true);
  writeStyles(element, copied);
  copied.removeAttribute("transform");
  const paper = getComputedStyle(element.closest(".lab-explorer")).backgroundColor;
  const [w, h] = [width, height].map((side) => Math.ceil(side) + 2 * AROUND);
  const inside = new XMLSerializer().serializeToString(copied);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}">`
    + `<rect width="${w}" height="${h}" fill="${paper}"/>`
    + `<g transform="translate(${AROUND} ${AROUND})">${inside}</g></svg>\n`;
}

function writeStyles(shown, copied) {
  const style = getComputedStyle(shown);
  copied.setAttribute("style", PROPERTIES.map((name) => `${name}:${style.getPropertyValue(name)}`)
    .join(";").replaceAll('"', "'"));
  [...shown.children].forEach((child, i) => writeStyles(child, copied.children[i]));
}

function painted(text, { width, height }) {
  const picture = new Image();
  const [w, h] = [width, height].map((side) => SHARPER * (Math.ceil(side) + 2 * AROUND));
  const canvas = html("canvas", { width: w, height: h });
  return new Promise((done) => {
    picture.onload = () => {
      canvas.getContext("2d").drawImage(picture, 0, 0, w, h);
      canvas.toBlob(done, "image/png");
    };
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}
