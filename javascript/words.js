// Tooltips for terms of the glossary, on hover, on focus, and for screen readers.

import { html, targetOf } from "./dom.js";
import { enlarged } from "./present.js";

const FOCUSABLE = ["BUTTON", "SELECT", "INPUT"];
const TIP_GAP = 6;

export class Words {
  /**
   * Tooltips are added to `root`.
   *
   * @param {HTMLElement} root
   * @param {Record<string, string>} meanings `{term: sentence}` (see words.py)
   */
  constructor(root, meanings) {
    this.root = root;
    this.meanings = meanings || {};
    this.tip = html("div", { class: "lab-tip", role: "tooltip", hidden: true });
    const at = (/** @type {Event} */ event) => this.show(
      /** @type {HTMLElement | null} */ (targetOf(event).closest("[data-word]")));
    root.addEventListener("mouseover", at);
    root.addEventListener("focusin", (event) => targetOf(event).matches(":focus-visible") && at(event));
    for (const end of ["mouseleave", "focusout", "pointerdown"]) {
      root.addEventListener(end, () => this.show(null));
    }
    root.addEventListener("scroll", () => this.show(null), true);
    root.addEventListener("keydown", (event) => event.key === "Escape" && this.show(null));
  }

  /**
   * The meaning of a heading in the pane with this title; "" if it has none.
   *
   * @param {string} heading
   */
  meaning(heading, pane = "") {
    const bare = (/** @type {string} */ text) => text.trim().toLowerCase().replace(/^>|\s+\d+$/g, "");
    const [name, title] = [bare(heading), bare(pane)];
    const forms = [name, name.replace(/s$/, ""), name.replace(/es$/, "")];
    const places = [...forms.map((form) => `${title} ${form}`), ...forms];
    const place = places.find((each) => Object.hasOwn(this.meanings, each));
    return place === undefined ? "" : this.meanings[place];
  }

  /**
   * Add the meaning of its heading to an element as a tooltip, followed by its title.
   *
   * @template {HTMLElement} E
   * @param {E} element
   * @param {string} heading
   */
  explain(element, heading, pane = "") {
    const sentence = this.meaning(heading, pane);
    if (!sentence) return element;
    const said = [sentence, element.title].filter(Boolean).join("\n");
    element.removeAttribute("title");
    element.dataset.word = said;
    element.setAttribute("aria-description", said);
    if (!FOCUSABLE.includes(element.tagName)) {
      element.tabIndex = 0;
      element.classList.add("lab-word");
    }
    return element;
  }

  /** @param {HTMLElement | null} element */
  show(element) {
    this.tip.hidden = !element;
    if (!element) return;
    this.tip.textContent = element.dataset.word ?? "";
    if (!this.tip.isConnected) this.root.append(this.tip);
    const [box, all] = [element.getBoundingClientRect(), this.root.getBoundingClientRect()];
    const scale = enlarged(this.root);
    const { offsetWidth: width, offsetHeight: height } = this.tip;
    const left = Math.min((box.left - all.left) / scale, all.width / scale - width - TIP_GAP);
    const below = (box.bottom - all.top) / scale + TIP_GAP;
    const above = (box.top - all.top) / scale - height - TIP_GAP;
    this.tip.style.left = `${Math.max(TIP_GAP, left)}px`;
    this.tip.style.top = `${Math.max(TIP_GAP, below + height < all.height / scale ? below : above)}px`;
  }
}
