// Helpers for building a page.  Text is always inserted as text; nothing parses HTML.

/** @import { Attributes, Child, Children } from "./types.d.ts" */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element: attributes, `on...` listeners, then children (elements, strings or null).
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Children} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function html(tag, attributes, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/**
 * The same for SVG.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Children} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @template {Element} E
 * @param {E} element
 * @param {Attributes | undefined} attributes
 * @param {Children[]} children
 */
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter(isThere));
  return element;
}

/**
 * Replace the children of an element.
 *
 * @param {Element} element
 * @param {...Children} children
 */
export function refill(element, ...children) {
  element.replaceChildren(...children.flat().filter(isThere));
}

/**
 * @param {Child} child
 * @returns {child is Node | string}
 */
const isThere = (child) => child !== null && child !== undefined && child !== false && child !== "";

/**
 * Show the current step and the elapsed seconds; screen readers read only the step.  Returns a function
 * that stops the clock.
 *
 * @param {HTMLElement} place
 * @param {string} doing
 */
export function countSeconds(place, doing) {
  const start = performance.now();
  const since = html("span", { "aria-hidden": "true" });
  const tell = () => { since.textContent = `${((performance.now() - start) / 1000).toFixed(1)} s`; };
  tell();
  refill(place, `${doing} … `, since);
  const clock = setInterval(tell, 100);
  return () => clearInterval(clock);
}

/**
 * The element that an event happened on.
 *
 * @param {Event} event
 */
export function targetOf(event) {
  return /** @type {HTMLElement} */ (event.target);
}

/**
 * Copy text, also without clipboard permission (a local file, an older browser).
 *
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = html("textarea", { style: "position:fixed;opacity:0" });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/**
 * Download a file.
 *
 * @param {string} name
 * @param {string} type
 * @param {string | Blob} content
 */
export function download(name, type, content) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = html("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
