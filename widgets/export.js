// Pictures to take away: the drawing as it is seen, as SVG or PNG, with every colour written out.

import { download, html } from "./dom.js";

const PROPERTIES = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family",
  "font-size", "font-weight", "text-anchor", "paint-order"];
const SHARPER = 2;

/** Two buttons; `drawing()` gives `{element, width, height}`, an SVG element in the page's units. */
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
  const size = `width="${Math.ceil(width)}" height="${Math.ceil(height)}"`;
  const inside = new XMLSerializer().serializeToString(copied);
  return `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${Math.ceil(width)} ${
    Math.ceil(height)}"><rect width="100%" height="100%" fill="${paper}"/>${inside}</svg>\n`;
}

function writeStyles(shown, copied) {
  const style = getComputedStyle(shown);
  copied.setAttribute("style", PROPERTIES.map((name) => `${name}:${style.getPropertyValue(name)}`)
    .join(";").replaceAll('"', "'"));
  [...shown.children].forEach((child, i) => writeStyles(child, copied.children[i]));
}

function painted(text, { width, height }) {
  const picture = new Image();
  const canvas = html("canvas", { width: SHARPER * width, height: SHARPER * height });
  return new Promise((done) => {
    picture.onload = () => {
      canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  });
}
