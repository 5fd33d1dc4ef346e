// Made by `npm run build` in javascript, from sources f34ed2fe34b0c641.
"use strict";
var inductorLab = (() => {
  var __defProp = Object.defineProperty;
  var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
  var __getOwnPropNames = Object.getOwnPropertyNames;
  var __hasOwnProp = Object.prototype.hasOwnProperty;
  var __export = (target, all) => {
    for (var name in all)
      __defProp(target, name, { get: all[name], enumerable: true });
  };
  var __copyProps = (to, from, except, desc) => {
    if (from && typeof from === "object" || typeof from === "function") {
      for (let key of __getOwnPropNames(from))
        if (!__hasOwnProp.call(to, key) && key !== except)
          __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
    }
    return to;
  };
  var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);

  // page_entry.js
  var page_entry_exports = {};
  __export(page_entry_exports, {
    Line: () => Line,
    announce: () => announce,
    coloured: () => coloured,
    render: () => render,
    renderTabs: () => renderTabs,
    widget: () => widget
  });

  // dom.js
  var SVG = "http://www.w3.org/2000/svg";
  function html(tag, attributes, ...children) {
    return furnish(document.createElement(tag), attributes, children);
  }
  function svg(tag, attributes, ...children) {
    return furnish(document.createElementNS(SVG, tag), attributes, children);
  }
  function furnish(element2, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === void 0 || value === false) continue;
      if (typeof value === "function") {
        element2.addEventListener(name.slice(2), value);
      } else element2.setAttribute(name, value === true ? "" : String(value));
    }
    element2.append(...children.flat().filter(isThere));
    return element2;
  }
  function refill(element2, ...children) {
    element2.replaceChildren(...children.flat().filter(isThere));
  }
  var isThere = (child) => child !== null && child !== void 0 && child !== false && child !== "";
  function countSeconds(place, doing) {
    const start = performance.now();
    const since = html("span", { "aria-hidden": "true" });
    const tell = () => {
      since.textContent = `${((performance.now() - start) / 1e3).toFixed(1)} s`;
    };
    tell();
    refill(place, `${doing} … `, since);
    const clock = setInterval(tell, 100);
    return () => clearInterval(clock);
  }
  function targetOf(event) {
    return event.target;
  }
  async function copyText(text) {
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
  function download(name, type, content) {
    const address2 = URL.createObjectURL(new Blob([content], { type }));
    const link = html("a", { href: address2, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address2), 1e3);
  }

  // say.js
  var spokenTexts = {};
  function speak(texts) {
    spokenTexts = texts || {};
  }
  function say(text, values = null) {
    const said = Object.hasOwn(spokenTexts, text) ? spokenTexts[text] : text;
    if (values === null) return said;
    return said.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
  }

  // tree.js
  var ACTIVE = /^(a|area|base|embed|form|iframe|link|meta|object|script)$/i;
  var HTML = html;
  var SVG2 = svg;
  function build(node, each = () => {
  }, make = HTML) {
    const [tag, attributes] = node;
    if (ACTIVE.test(tag)) throw new Error(`a view has no <${tag}>`);
    const inside = tag === "svg" ? SVG2 : make;
    const element2 = inside(tag, attributes);
    if (!("hidden" in attributes)) fill(element2, node, each, inside);
    each(element2, node);
    return element2;
  }
  function fill(element2, node, each, make = HTML) {
    element2.append(...childrenOf(node).map((child) => typeof child === "string" ? child : build(child, each, make)));
  }
  var childrenOf = ([, , ...children]) => children;
  function atStep(node, step2) {
    const there = childrenOf(node).filter((child) => typeof child === "string" || isAt(child[1]["data-steps"], step2));
    return [
      node[0],
      node[1],
      ...there.map((child) => typeof child === "string" ? child : atStep(child, step2))
    ];
  }
  function isAt(steps, step2) {
    return typeof steps !== "string" || steps.split(" ").includes(String(step2));
  }
  var ASIDE = /(^| )lab-sign( |$)/;
  var LINES = ["p", "h3", "tr"];
  function partText(node) {
    const children = childrenOf(node);
    const title = children.find((child) => typeof child !== "string" && child[0] === "title");
    return title ? inlineText(title) : children.filter(isShown).map(inlineText).join("	");
  }
  function textLines(node) {
    if (typeof node === "string" || "hidden" in node[1]) return [];
    if ("data-things" in node[1] || LINES.includes(node[0])) return [partText(node)];
    return childrenOf(node).flatMap(textLines);
  }
  function searched(node) {
    if (typeof node === "string" || node[0] === "thead") return [];
    const own = "data-things" in node[1] || node[0] === "tr" && !("hidden" in node[1]);
    return own ? [partText(node)] : childrenOf(node).flatMap(searched);
  }
  var isShown = (node) => typeof node === "string" || !ASIDE.test(node[1].class || "");
  function inlineText(node) {
    if (typeof node === "string") return node;
    return childrenOf(node).filter(isShown).map(inlineText).join("");
  }

  // export.js
  var PROPERTIES = [
    "fill",
    "stroke",
    "stroke-width",
    "stroke-dasharray",
    "opacity",
    "font-family",
    "font-size",
    "font-weight",
    "text-anchor",
    "paint-order"
  ];
  var SHARPER = 2;
  var AROUND = 10;
  function exportButtons(name, drawing) {
    const button = (label, action) => html("button", {
      type: "button",
      title: say("save as {label}", { label }),
      onclick: action,
      "aria-label": say("save as {label}", { label })
    }, label);
    return [
      button("SVG", () => download(`${name}.svg`, "image/svg+xml", standalone(drawing()))),
      button("PNG", async () => {
        const found = drawing();
        download(`${name}.png`, "image/png", await painted(standalone(found), found));
      })
    ];
  }
  function standalone({ element: element2, width, height }) {
    const copied = element2.cloneNode(true);
    writeStyles(element2, copied);
    copied.removeAttribute("transform");
    const explorer = element2.closest(".lab-explorer");
    const paper = getComputedStyle(explorer).backgroundColor;
    const [w, h] = [width, height].map((side) => Math.ceil(side) + 2 * AROUND);
    const inside = new XMLSerializer().serializeToString(copied);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${w}" height="${h}" viewBox="0 0 ${w} ${h}"><rect width="${w}" height="${h}" fill="${paper}"/><g transform="translate(${AROUND} ${AROUND})">${inside}</g></svg>
`;
  }
  function writeStyles(shown, copied) {
    const style = getComputedStyle(shown);
    copied.setAttribute("style", PROPERTIES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";").replaceAll('"', "'"));
    [...shown.children].forEach((child, i) => writeStyles(child, copied.children[i]));
  }
  function painted(text, { width, height }) {
    const picture = new Image();
    const [w, h] = [width, height].map((side) => SHARPER * (Math.ceil(side) + 2 * AROUND));
    const canvas = html("canvas", { width: w, height: h });
    return new Promise((done, failed) => {
      picture.onload = () => {
        canvas.getContext("2d")?.drawImage(picture, 0, 0, w, h);
        canvas.toBlob((file) => file ? done(file) : failed(new Error(`no PNG of ${w} by ${h}`)), "image/png");
      };
      picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    });
  }

  // roving.js
  var ARROWS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };
  function oneStop(container, reach) {
    container.addEventListener("keydown", (event) => {
      const buttons = [...container.querySelectorAll("button")];
      const at = buttons.findIndex((button) => button === event.target);
      if (at < 0 || !(event.key in ARROWS)) return;
      reach((at + ARROWS[event.key] + buttons.length) % buttons.length)?.focus();
      event.preventDefault();
    });
  }
  function roving(container, parts, selection) {
    const whole = new Map(parts.map((part) => [part.element, part]));
    for (const { element: element2 } of parts) element2.setAttribute("tabindex", "-1");
    container.addEventListener("keydown", (event) => {
      const part = whole.get(targetOf(event));
      if (event.key === "Enter" && part?.things.length) selection.pin(part.things);
      if (!(event.key in ARROWS) || !part && event.target !== container) return;
      const there = parts.filter((each) => container.contains(each.element));
      const next = part ? there.indexOf(part) + ARROWS[event.key] : 0;
      there[Math.max(0, Math.min(there.length - 1, next))]?.element.focus();
      event.preventDefault();
    });
    container.addEventListener("focusin", (event) => {
      const part = whole.get(targetOf(event));
      if (part) selection.preview(part.things);
    });
    container.addEventListener("focusout", () => selection.preview([]));
  }

  // known.js
  function known(map, key) {
    const found = map.get(key);
    if (found === void 0) throw new Error(`unknown key ${key}`);
    return found;
  }
  function push(map, key, value) {
    const list = map.get(key);
    if (list) list.push(value);
    else map.set(key, [value]);
  }

  // selection.js
  var Selection = class {
    /** @param {Pick<Links, "related">} links */
    constructor(links) {
      this.links = links;
      this.pinned = [];
      this.line = null;
      this.hovered = [];
      this.listeners = /* @__PURE__ */ new Set();
      this.shown = "";
    }
    /**
     * `listener(lit, things)` is called when the highlighted things change; `lit` is null for none.
     *
     * @param {Listener} listener
     */
    listen(listener) {
      this.listeners.add(listener);
      return () => this.listeners.delete(listener);
    }
    /** @param {Thing[]} things */
    preview(things) {
      this.hovered = things;
      this.tell();
    }
    /**
     * Pin these things, those of a `line` of a text view; pinning them again unpins them.
     *
     * @param {Thing[]} things
     * @param {number | null} line
     */
    pin(things, line2 = null) {
      if (String(things) === String(this.pinned)) this.clear();
      else this.hold(things, line2);
    }
    /**
     * Pin these things and no others.
     *
     * @param {Thing[]} things
     * @param {number | null} line
     */
    hold(things, line2 = null) {
      this.pinned = things;
      this.line = line2;
      this.hovered = [];
      this.tell(true);
    }
    clear() {
      this.hold([]);
    }
    get things() {
      return this.hovered.length ? this.hovered : this.pinned;
    }
    tell(scroll = false) {
      const things = this.things;
      const key = String(things);
      if (key === this.shown && !scroll) return;
      this.shown = key;
      const lit = things.length ? this.links.related(things) : null;
      for (const listener of this.listeners) listener(lit, things, scroll && things.length > 0);
    }
  };
  var Shows = class {
    /** @param {HTMLElement} container */
    constructor(container) {
      this.container = container;
      this.elements = /* @__PURE__ */ new Map();
      this.lit = /* @__PURE__ */ new Set();
    }
    /**
     * @param {Element} element
     * @param {Thing[]} things
     */
    add(element2, things) {
      for (const thing of things) push(this.elements, thing, element2);
    }
    /**
     * Highlight the elements of these things, and no others.
     *
     * @param {Lit} lit
     */
    light(lit) {
      const now = /* @__PURE__ */ new Set();
      if (lit) for (const thing of lit) (this.elements.get(thing) || []).forEach((e) => now.add(e));
      for (const element2 of this.lit) if (!now.has(element2)) element2.classList.remove("lit");
      for (const element2 of now) if (!this.lit.has(element2)) element2.classList.add("lit");
      this.lit = now;
      this.container.classList.toggle("dim", now.size > 0);
    }
    /**
     * The first highlighted element in page order.
     *
     * @returns {HTMLElement | null}
     */
    first() {
      return this.container.querySelector(".lit");
    }
  };

  // view.js
  function treeView(view, context) {
    const { selection } = context;
    const known3 = /* @__PURE__ */ new Map();
    const later = /* @__PURE__ */ new Map();
    const see = (element3, node) => {
      const attributes = node[1];
      if ("data-things" in attributes) known3.set(element3, new Part(element3, node));
      if ("hidden" in attributes) later.set(element3, node);
      if ("data-pair" in attributes) element3.children[1].append(pairButton(attributes, context));
      if ("data-term" in attributes && attributes.scope !== "col") {
        context.words.explain(element3, attributes["data-term"] || element3.textContent);
      }
    };
    const element2 = build(view.tree, see);
    element2.setAttribute("tabindex", "0");
    const shows = new Shows(element2);
    const parts = [...known3.values()];
    for (const part of parts) shows.add(part.element, part.things);
    for (const [folded, node] of later) openFromAbove(folded, () => fill(folded, node, see));
    addFiles(element2, view);
    for (const drawing of element2.querySelectorAll("svg.lab-drawing")) {
      new ResizeObserver(() => drawing.clientWidth && cutNames(drawing)).observe(drawing);
    }
    const thingsAt = (event) => {
      const part = targetOf(event).closest("[data-things]");
      return part && known3.get(part)?.things || [];
    };
    element2.addEventListener("mouseover", (event) => selection.preview(thingsAt(event)));
    element2.addEventListener("mouseleave", () => selection.preview([]));
    element2.addEventListener("click", (event) => {
      const things = thingsAt(event);
      if (things.length && !targetOf(event).closest("button")) selection.pin(things);
    });
    roving(element2, parts, selection);
    return {
      element: element2,
      light: (lit, scroll) => {
        shows.light(lit);
        if (scroll) shows.first()?.scrollIntoView({ block: "nearest" });
      },
      find: (query) => parts.filter((part) => part.has(query)).map((part) => part.element),
      text: () => `${textLines(view.tree).join("\n")}
`
    };
  }
  var Part = class {
    /**
     * @param {HTMLElement} element
     * @param {Branch} node
     */
    constructor(element2, node) {
      this.element = element2;
      this.node = node;
      this.things = node[1]["data-things"].split(" ").filter(Boolean).map(Number);
      this.text = void 0;
      if (this.things.length) element2.classList.add("linked");
    }
    /** @param {string} query */
    has(query) {
      const text = this.text ?? partText(this.node).toLowerCase();
      this.text = text;
      return text.includes(query);
    }
  };
  function cutNames(drawing) {
    const names = drawing.querySelectorAll("svg > text");
    for (const name of names) {
      const bar = name.ownerSVGElement;
      if (bar === drawing) continue;
      name.dataset.whole ??= name.textContent ?? "";
      name.textContent = name.dataset.whole;
      const [room, wide2] = [
        bar.width.baseVal.value - 2 * name.x.baseVal[0].value,
        name.getComputedTextLength()
      ];
      if (wide2 <= room) continue;
      const letters = Math.floor(name.dataset.whole.length * room / wide2) - 1;
      name.textContent = letters > 0 ? `${name.dataset.whole.slice(0, letters)}…` : "";
    }
  }
  function openFromAbove(folded, fillIt) {
    const button = html("button", {
      class: "lab-open",
      type: "button",
      "aria-expanded": "false",
      "aria-label": say("details"),
      onclick: () => {
        folded.hidden = !folded.hidden;
        if (!folded.childElementCount) fillIt();
        button.setAttribute("aria-expanded", String(!folded.hidden));
        button.textContent = folded.hidden ? "▸" : "▾";
      }
    }, "▸");
    folded.previousElementSibling?.firstElementChild?.prepend(button);
  }
  function pairButton(attributes, context) {
    const [choice, producer, consumer, part] = attributes["data-pair"].split(" ");
    return html("button", {
      class: "lab-pair",
      type: "button",
      "aria-label": say(`${choice} fusion of {producer} and {consumer}`, { producer, consumer }),
      title: say(`recompile and ${choice} fusion of this pair in {part}`, { part }),
      onclick: () => context.whatIf?.togglePair(
        choice,
        [producer, consumer, part]
      )
    }, say(choice));
  }
  function addFiles(element2, view) {
    const files = (view.files || []).map((file) => html("button", {
      type: "button",
      class: "lab-save",
      title: file.tip,
      onclick: () => download(file.name, file.type, JSON.stringify(file.data))
    }, file.label));
    const drawing = element2.querySelector("svg.lab-drawing");
    const pictures = drawing ? exportButtons(view.name, () => ({
      element: drawing,
      width: drawing.width.baseVal.value,
      height: drawing.height.baseVal.value
    })) : [];
    element2.querySelector(".lab-note")?.append(" ", ...files, ...pictures);
  }

  // budget.js
  function budgetView(view, context) {
    const last = view.budgets.length - 1;
    view.state ??= { at: view.at };
    const { state } = view;
    const shown = treeView({ kind: "tree", name: view.name, tree: view.tree }, context);
    const said = shown.element.querySelector(".lab-budget-said");
    const showStep = stepped(shown.element);
    const slider = html("input", {
      type: "range",
      min: 0,
      max: last,
      value: last - state.at,
      "aria-label": say("memory budget"),
      oninput: () => move(),
      onchange: () => settle()
    });
    const move = () => {
      state.at = last - Number(slider.value);
      showStep(state.at);
      slider.setAttribute("aria-valuetext", said.textContent);
      shown.element.querySelector(".chosen")?.scrollIntoView({ block: "nearest" });
    };
    const settle = () => context.whatIf?.setBudget(
      state.at === view.at ? null : view.budgets[state.at]
    );
    shown.element.addEventListener("click", (event) => {
      const bar = targetOf(event).closest("[data-step]");
      if (!bar) return;
      slider.value = String(last - Number(bar.dataset.step));
      move();
      settle();
    });
    said.before(html(
      "div",
      { class: "lab-budget-scale" },
      html("span", {}, say("recompute")),
      slider,
      html("span", {}, say("save"))
    ));
    move();
    return {
      element: html("div", { class: "lab-budget" }, shown.element),
      light: shown.light,
      find: (query) => shown.find(query).filter((part) => part.isConnected),
      text: () => `${textLines(atStep(view.tree, state.at)).join("\n")}
`
    };
  }
  function stepped(element2) {
    const parents = new Set([...element2.querySelectorAll("[data-steps]")].map((part) => part.parentNode));
    const whole = [...parents].flatMap((parent) => parent ? [{ parent, children: [...parent.childNodes] }] : []);
    return (step2) => {
      for (const { parent, children } of whole) {
        parent.replaceChildren(...children.filter((child) => !(child instanceof Element) || isAt(child.getAttribute("data-steps"), step2)));
      }
    };
  }

  // present.js
  function togglePresenter(root) {
    root.classList.toggle("presenting");
  }
  function toggleFullScreen(root) {
    const done = document.fullscreenElement === root ? document.exitFullscreen() : root.requestFullscreen?.();
    done?.catch(() => {
    });
  }
  function enlarged(root) {
    return root.getBoundingClientRect().width / root.offsetWidth || 1;
  }
  function deepLinks(explorer) {
    const { root } = explorer;
    if (!root.classList.contains("lab-page") || location.protocol === "about:") return;
    const held = new WeakRef(explorer);
    addEventListener("hashchange", function changed() {
      const alive = held.deref();
      if (alive) follow(alive);
      else removeEventListener("hashchange", changed);
    });
    root.addEventListener("click", (event) => {
      const line2 = targetOf(event).closest(".lab-line");
      const pane = line2?.closest(".lab-pane")?.dataset.pane;
      if (pane && line2?.dataset.line) history.replaceState(null, "", address(pane, line2.dataset.line));
    });
    follow(explorer);
  }
  var address = (pane, line2) => `#${pane}/${Number(line2) + 1}`;
  function follow(explorer) {
    const [id, line2] = decodeURIComponent(location.hash.slice(1)).split("/");
    const pane = explorer.doc.panes[id];
    if (!pane) return;
    const text = line2 ? pane.views.findIndex((view) => view.kind === "text") : -1;
    const slot = explorer.show(id, false, text < 0 ? null : text);
    if (text >= 0) slot.view.goTo?.(Number(line2));
  }

  // place.js
  var GAP = 18;
  var ROW_GAP = 30;
  var MARGIN = 12;
  var HEAD = 24;
  var CHARACTER = 7.3;
  var Placement = class {
    /** @param {GraphPicture} picture */
    constructor(picture) {
      this.items = new Map(picture.items.map((item) => [item[0], item]));
      this.frames = new Map(picture.frames.map((frame) => [frame[0], frame]));
      const ends = picture.edges.map((place) => picture.items[place][0]);
      this.edges = ends.flatMap((end, i) => i % 2 ? [] : [[end, ends[i + 1]]]);
      this.inside = picture.inside;
      this.open = new Set(picture.frames.filter((frame) => frame[5]).map((frame) => frame[0]));
      this.boxes = /* @__PURE__ */ new Map();
      this.routes = /* @__PURE__ */ new Map();
      this.sizes = /* @__PURE__ */ new Map();
    }
    /** Everything visible: `{width, height, boxes: Map(name → box), frames: [...], arrows: [...]}`. */
    place() {
      this.boxes = /* @__PURE__ */ new Map();
      this.routes = /* @__PURE__ */ new Map();
      this.sizes = /* @__PURE__ */ new Map();
      const { width, height } = this.measure("");
      this.settle("", 0, 0);
      return { width, height, boxes: this.boxes, arrows: this.arrows() };
    }
    /** @param {string} name */
    isOpen(name) {
      return this.frames.has(name) && this.open.has(name);
    }
    /**
     * Lay out one level from the inside out; its boxes are relative to its top left corner.
     *
     * @param {string} level
     */
    measure(level) {
      const layout = this.inside[level];
      const rows = /* @__PURE__ */ new Map();
      for (const [i, [x, y, w, h]] of layout.boxes.entries()) {
        const name = layout.names[i];
        const size = this.sizeOf(name, w, h);
        push(rows, Math.round(y + h / 2), { name, middle: x + w / 2, x: 0, y: 0, ...size });
      }
      layout.routes.forEach(([, , points], i) => {
        for (let p = 2; p < points.length - 2; p += 2) {
          const bend = { bend: [i, p], middle: points[p], x: 0, y: 0, width: 0, height: 0 };
          push(rows, nearest(rows, Math.round(points[p + 1])), bend);
        }
      });
      const placed = placeRows(rows);
      this.sizes.set(level, placed);
      return placed;
    }
    /**
     * @param {string} name
     * @param {number} width
     * @param {number} height
     * @returns {Size}
     */
    sizeOf(name, width, height) {
      const frame = this.frames.get(name);
      if (!frame) return { width, height };
      if (!this.open.has(name)) return closedSize(frame);
      const within = this.measure(name);
      const label = frame[1].length * CHARACTER;
      return {
        width: Math.max(within.width, label) + 2 * MARGIN,
        height: within.height + HEAD + MARGIN
      };
    }
    /**
     * Convert coordinates within a level to those of the picture.
     *
     * @param {string} level
     * @param {number} left
     * @param {number} top
     */
    settle(level, left, top) {
      const { cells } = known(this.sizes, level);
      const bends = /* @__PURE__ */ new Map();
      for (const cell of cells) {
        const box = { x: left + cell.x, y: top + cell.y, width: cell.width, height: cell.height };
        if ("bend" in cell) {
          push(bends, cell.bend[0], [cell.bend[1], box.x, box.y]);
        } else {
          this.boxes.set(cell.name, { ...box, level });
          if (this.isOpen(cell.name)) this.settle(cell.name, box.x + MARGIN, box.y + HEAD);
        }
      }
      this.inside[level].routes.forEach(([source, target], i) => {
        const between = (bends.get(i) || []).sort((a, b) => a[0] - b[0]).map(([, x, y]) => [x, y]);
        this.routes.set(`${source}
${target}`, between);
      });
    }
    /** One arrow for each pair of visible boxes that an edge connects. */
    arrows() {
      const found = /* @__PURE__ */ new Map();
      for (const [source, target] of this.edges) {
        const from = this.visible(source);
        const to = this.visible(target);
        if (from === to) continue;
        const key = `${from}
${to}`;
        if (found.has(key)) continue;
        const a = known(this.boxes, from);
        const b = known(this.boxes, to);
        const bends = a.level === b.level ? this.routes.get(key) || [] : [];
        const up = b.y < a.y;
        found.set(key, {
          from,
          to,
          points: [
            [a.x + a.width / 2, up ? a.y : a.y + a.height],
            ...bends,
            [b.x + b.width / 2, up ? b.y + b.height : b.y]
          ]
        });
      }
      return [...found.values()];
    }
    /**
     * The item itself, or the outermost closed frame around it.
     *
     * @param {string} name
     */
    visible(name) {
      let shown = name;
      for (let frame = known(this.items, name)[6]; frame; frame = known(this.frames, frame)[4]) {
        if (!this.open.has(frame)) shown = frame;
      }
      return shown;
    }
    /**
     * Open every frame around an item.
     *
     * @param {string} name
     */
    reveal(name) {
      for (let frame = known(this.items, name)[6]; frame; frame = known(this.frames, frame)[4]) {
        this.open.add(frame);
      }
    }
  };
  function nearest(rows, y) {
    for (const near of [y, y - 1, y + 1]) if (rows.has(near)) return near;
    return y;
  }
  function closedSize([, label, sub]) {
    const cut = (text) => Math.min(text.length, 44);
    return {
      width: Math.max(cut(label), 0.9 * cut(sub)) * CHARACTER + 40,
      height: sub ? 40 : 26
    };
  }
  function placeRows(rows) {
    const cells = [];
    let top = 0;
    let right = 0;
    let left = 0;
    for (const key of [...rows.keys()].sort((a, b) => a - b)) {
      const row = known(rows, key).sort((a, b) => a.middle - b.middle);
      const height = Math.max(...row.map((cell) => cell.height));
      let edge = -Infinity;
      for (const cell of row) {
        cell.x = Math.max(cell.middle - cell.width / 2, edge);
        cell.y = top + (height - cell.height) / 2;
        edge = cell.x + cell.width + GAP;
        left = Math.min(left, cell.x);
        right = Math.max(right, cell.x + cell.width);
        cells.push(cell);
      }
      top += height + (height ? ROW_GAP : 0);
    }
    for (const cell of cells) cell.x -= left;
    return { cells, width: right - left, height: Math.max(0, top - ROW_GAP) };
  }

  // graph.js
  var PAD = 14;
  var LONGEST = 44;
  var LETTER = 6.6;
  function graphView(view, context) {
    return new GraphView(view, context);
  }
  var GraphView = class {
    /**
     * @param {GraphPicture} view
     * @param {Context} context
     */
    constructor(view, context) {
      this.view = view;
      this.context = context;
      this.placement = new Placement(view);
      this.drawing = svg("g", {});
      this.paper = svg("svg", {
        class: "lab-paper",
        role: "group",
        "aria-label": view.told
      }, this.drawing);
      this.element = html("div", { class: "lab-graph", tabindex: 0 }, this.tools(), this.paper);
      this.shows = new Shows(this.element);
      this.scale = 1;
      this.x = this.y = 0;
      this.fitted = false;
      this.size = { width: 0, height: 0 };
      this.nodes = /* @__PURE__ */ new Map();
      this.contents = null;
      this.lowered = null;
      this.hits = [];
      this.current = null;
      this.draw();
      this.listen();
      new ResizeObserver(() => this.fitted || this.fit()).observe(this.element);
    }
    tools() {
      const button = (label, title, action) => html("button", {
        type: "button",
        title,
        "aria-label": title,
        onclick: action
      }, label);
      return html(
        "div",
        { class: "lab-tools" },
        this.placement.frames.size ? [
          button("⊞", say("open all frames"), () => this.openAll(true)),
          button("⊟", say("close all frames"), () => this.openAll(false))
        ] : null,
        button("+", say("zoom in (+)"), () => this.zoom(1.25)),
        button("−", say("zoom out (-)"), () => this.zoom(0.8)),
        button(say("fit"), say("fit (f)"), () => this.fit()),
        exportButtons(this.view.title, () => ({ element: this.drawing, ...this.size }))
      );
    }
    draw() {
      const isSearched = this.drawing.querySelector(".found") !== null;
      const placed = this.placement.place();
      this.size = placed;
      this.shows.elements.clear();
      this.nodes = /* @__PURE__ */ new Map();
      const frames = [];
      const boxes = [];
      const titles = [];
      for (const [name, box] of placed.boxes) {
        const isOpen = this.placement.isOpen(name);
        (isOpen ? frames : boxes).push(this.box(name, box, isOpen));
        if (isOpen) titles.push(frameTitle(known(this.placement.frames, name)[1], box));
      }
      const arrows = placed.arrows.map((arrow) => arrowElement(arrow));
      refill(this.drawing, frames, arrows, boxes, titles);
      if (isSearched) for (const hit of this.hits) this.groupOf(hit).classList.add("found");
    }
    /**
     * The box of an item, or of the closed frame that contains it.
     *
     * @param {string} item
     */
    groupOf(item) {
      return known(this.nodes, this.placement.visible(item)).group;
    }
    /**
     * @param {string} name
     * @param {Box} box
     * @param {boolean} isOpen
     */
    box(name, { x, y, width, height }, isOpen) {
      const frame = this.placement.frames.get(name);
      const [, label, sub, role, tip, things] = frame ? this.boxOf(frame, isOpen) : known(this.placement.items, name);
      const cue = frame ? null : this.context.links.cue(things);
      const at = { x: x + width / 2, y: y + (sub ? 16.5 : height / 2 + 4), "text-anchor": "middle" };
      const group = svg(
        "g",
        {
          class: `lab-node ${role}${things.length ? " linked" : ""}`,
          "data-name": name,
          "data-hue": cue ? cue.hue : null,
          tabindex: -1,
          role: frame ? "button" : "img",
          "aria-expanded": frame ? String(isOpen) : null,
          "aria-label": frame && !isOpen ? null : [label, sub].filter(Boolean).join(", ")
        },
        svg("title", {}, tip),
        svg("rect", { x, y, width, height, rx: role === "input" ? 13 : 4 }),
        cue ? svg("rect", { class: "cue", x: x + 2, y: y + 5, width: 4, height: height - 10, rx: 2 }) : null,
        isOpen ? null : svg("text", at, frame ? `▸ ${shorten(label)}` : shorten(label)),
        sub && !isOpen ? svg(
          "text",
          { x: x + width / 2, y: y + 31, "text-anchor": "middle", class: "sub" },
          shorten(sub)
        ) : null
      );
      this.nodes.set(name, { group, things, x, y, width, height });
      if (!isOpen) this.shows.add(group, things);
      return group;
    }
    /**
     * A frame in the form of an item.
     *
     * @param {Frame} frame
     * @param {boolean} isOpen
     * @returns {Item}
     */
    boxOf(frame, isOpen) {
      const [name, label, sub, tip, parent] = frame;
      return [name, label, sub, isOpen ? "frame" : "closed", tip, this.thingsIn(frame), parent];
    }
    /**
     * The things of a closed frame: those of all its items.
     *
     * @param {Frame} frame
     */
    thingsIn(frame) {
      if (frame[6].length) return frame[6];
      if (!this.contents) this.contents = contentsOf(this.placement);
      return this.contents.get(frame[0]) || [];
    }
    listen() {
      const { selection } = this.context;
      const at = (event) => {
        const group = targetOf(event).closest(".lab-node");
        const name = group?.dataset.name ?? "";
        return { name, node: this.nodes.get(name) };
      };
      let dragged = null;
      this.paper.addEventListener("mouseover", (event) => {
        const { name, node } = at(event);
        selection.preview(node && !this.placement.isOpen(name) ? node.things : []);
      });
      this.paper.addEventListener("mouseleave", () => selection.preview([]));
      this.paper.addEventListener("pointerdown", (event) => {
        const large = enlarged(this.element);
        dragged = { x: event.clientX / large - this.x, y: event.clientY / large - this.y, far: 0, large };
      });
      this.paper.addEventListener("pointermove", (event) => {
        if (!dragged || !event.buttons) return;
        const x = event.clientX / dragged.large - dragged.x;
        const y = event.clientY / dragged.large - dragged.y;
        dragged.far += Math.abs(x - this.x) + Math.abs(y - this.y);
        this.move(x, y);
      });
      this.paper.addEventListener("click", (event) => {
        if (dragged && dragged.far > 4) return;
        const { name, node } = at(event);
        if (this.placement.frames.has(name)) this.toggle(name);
        else if (node?.things.length) selection.pin(node.things);
      });
      this.element.addEventListener("wheel", (event) => {
        if (!event.ctrlKey && !event.metaKey && !this.element.matches(":focus-within")) return;
        event.preventDefault();
        if (event.ctrlKey || event.metaKey) this.zoom(event.deltaY < 0 ? 1.1 : 1 / 1.1, event);
        else this.move(this.x - event.deltaX, this.y - event.deltaY);
      }, { passive: false });
      this.element.addEventListener("keydown", (event) => this.key(event));
    }
    /** @param {KeyboardEvent} event */
    key(event) {
      const pan = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
      if (pan[event.key]) {
        this.move(this.x + pan[event.key][0], this.y + pan[event.key][1]);
        event.preventDefault();
      } else if (event.key === "n" || event.key === "p") {
        this.step(event.key === "n" ? 1 : -1);
      } else if (event.key === "Enter" && this.current) {
        if (this.placement.frames.has(this.current)) this.toggle(this.current);
        else this.context.selection.pin(known(this.nodes, this.current).things);
      }
    }
    /**
     * Move the keyboard focus to the next or previous box.
     *
     * @param {number} by
     */
    step(by) {
      const names = [...this.nodes.keys()];
      const at = this.current === null ? Math.min(-by, 0) : names.indexOf(this.current);
      const name = names[(at + by + names.length) % names.length];
      this.nodes.get(this.current ?? "")?.group.classList.remove("current");
      this.current = name;
      const node = known(this.nodes, name);
      node.group.classList.add("current");
      node.group.focus({ preventScroll: true });
      this.show(node);
      this.context.selection.preview(this.placement.isOpen(name) ? [] : node.things);
    }
    /** @param {string} name */
    toggle(name) {
      const { open } = this.placement;
      const before = known(this.nodes, name);
      if (open.has(name)) open.delete(name);
      else open.add(name);
      this.redraw();
      const after = known(this.nodes, name);
      this.move(
        this.x + (before.x + before.width / 2 - after.x - after.width / 2) * this.scale,
        this.y + (before.y - after.y) * this.scale
      );
    }
    /** @param {boolean} all */
    openAll(all) {
      this.placement.open = new Set(all ? this.placement.frames.keys() : []);
      this.redraw();
      this.fit();
    }
    redraw() {
      const held = this.drawing.matches(":focus-within");
      this.draw();
      if (held) this.nodes.get(this.current ?? "")?.group.focus({ preventScroll: true });
      this.context.selection.tell(true);
    }
    light(lit, scroll) {
      this.shows.light(lit);
      const first = scroll && this.shows.first();
      if (first) this.show(known(this.nodes, first.dataset.name));
    }
    /**
     * Pan so that a box is visible.
     *
     * @param {Box} box
     */
    show({ x, y, width, height }) {
      const { clientWidth, clientHeight } = this.paper;
      const [left, top] = [this.x + x * this.scale, this.y + y * this.scale];
      const inside = left >= 0 && top >= 0 && left + width * this.scale <= clientWidth && top + height * this.scale <= clientHeight;
      if (inside) return;
      this.move(
        clientWidth / 2 - (x + width / 2) * this.scale,
        clientHeight / 2 - (y + height / 2) * this.scale
      );
    }
    /**
     * @param {number} x
     * @param {number} y
     */
    move(x, y) {
      this.x = x;
      this.y = y;
      this.fitted = true;
      this.drawing.setAttribute("transform", `translate(${x} ${y}) scale(${this.scale})`);
    }
    /**
     * @param {number} factor
     * @param {WheelEvent} [event]
     */
    zoom(factor, event) {
      const { paper } = this;
      const area = paper.getBoundingClientRect();
      const large = enlarged(this.element);
      const [px, py] = event ? [(event.clientX - area.left) / large, (event.clientY - area.top) / large] : [paper.clientWidth / 2, paper.clientHeight / 2];
      const scale = Math.min(4, Math.max(0.03, this.scale * factor));
      const ratio = scale / this.scale;
      this.scale = scale;
      this.move(px - (px - this.x) * ratio, py - (py - this.y) * ratio);
    }
    /** Fit the whole picture if it stays readable, otherwise show its top at a readable size. */
    fit() {
      const { clientWidth, clientHeight } = this.paper;
      if (!clientWidth || !clientHeight) return;
      const wide2 = (clientWidth - 2 * PAD) / Math.max(1, this.size.width);
      const high = (clientHeight - 2 * PAD) / Math.max(1, this.size.height);
      const whole = Math.min(wide2, high, 1);
      this.scale = whole > 0.35 ? whole : Math.max(Math.min(wide2, 0.7), 0.2);
      const spare = (clientHeight - this.size.height * this.scale) / 2;
      this.move((clientWidth - this.size.width * this.scale) / 2, Math.min(Math.max(spare, PAD), 40));
      this.fitted = false;
    }
    /**
     * For each item that contains a text, its box or that of the closed frame around it.
     *
     * @param {string} query
     */
    find(query) {
      this.lowered ??= this.view.items.map((item) => item.slice(0, 5).join("\n").toLowerCase());
      const { lowered: lowered2 } = this;
      this.hits = this.view.items.filter((_, i) => lowered2[i].includes(query)).map(([name]) => name);
      return this.hits.map((name) => this.groupOf(name));
    }
    /**
     * Open the frames around hits of the last search; returns whether any frame was opened.
     *
     * @param {number[]} places
     */
    reveal(places) {
      const { open } = this.placement;
      const before = open.size;
      for (const place of places) this.placement.reveal(this.hits[place]);
      if (open.size > before) this.redraw();
      return open.size > before;
    }
    /**
     * Pan to an element returned by `find`.
     *
     * @param {Element} group
     */
    showElement(group) {
      this.show(known(this.nodes, group.dataset.name));
    }
    text() {
      return this.view.items.map((item) => `${item[1]}	${item[2]}`).join("\n") + "\n";
    }
  };
  function contentsOf(placement) {
    const contents = /* @__PURE__ */ new Map();
    for (const [, , , , , things, inside] of placement.items.values()) {
      for (let frame = inside; frame; frame = known(placement.frames, frame)[4]) {
        for (const thing of things) push(contents, frame, thing);
      }
    }
    return contents;
  }
  function shorten(text) {
    if (text.length <= LONGEST) return text;
    return `${text.slice(0, LONGEST / 2 - 1)}…${text.slice(-LONGEST / 2)}`;
  }
  function frameTitle(label, { x, y }) {
    const title = `▾ ${shorten(label)}`;
    return svg(
      "g",
      { class: "lab-frame-title" },
      svg("rect", { x: x + 8, y: y + 4, width: title.length * LETTER + 8, height: 17, rx: 3 }),
      svg("text", { x: x + 12, y: y + 16, class: "sub" }, title)
    );
  }
  function arrowElement({ points }) {
    let path = `M${points[0][0]} ${points[0][1]}`;
    for (let i = 1; i < points.length; i++) {
      const [[x0, y0], [x1, y1]] = [points[i - 1], points[i]];
      const middle = (y0 + y1) / 2;
      path += `C${x0} ${middle} ${x1} ${middle} ${x1} ${y1}`;
    }
    const [, before] = points[points.length - 2];
    const [x, y] = points[points.length - 1];
    const back = before <= y ? 6 : -6;
    return svg(
      "g",
      { class: "lab-arrow" },
      svg("path", { d: path }),
      svg("path", { class: "head", d: `M${x} ${y}l-3.5 ${-back}h7z` })
    );
  }

  // guards.js
  var DTYPES = [
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "uint8",
    "bool",
    "complex64"
  ];
  var TYPES = { tensor: /Tensor|Parameter/, array: /ndarray/ };
  var STATES = { holds: "✓", fails: "✗", unknown: "·" };
  function guardsView(view, context) {
    view.state ??= { values: copy(view.inputs), said: "", calls: [] };
    const { state } = view;
    const element2 = html("div", { class: "lab-table lab-guards", tabindex: 0 });
    const verdict = html("p", { class: "lab-guard-verdict", role: "status" });
    const body = html("div", {});
    const calls = html("div", { class: "lab-calls" });
    const shown = { rows: [], shows: new Shows(element2) };
    const judge = () => {
      const found = view.entries.map((entry) => judged(entry.checks, state.values));
      const hit = found.findIndex((states) => !states.includes("fails"));
      refill(verdict, ...verdictParts(view, found, hit, state.values, context));
      verdict.className = `lab-guard-verdict ${hit < 0 ? "no" : "ok"}`;
      shown.rows = [];
      shown.shows = new Shows(element2);
      refill(body, view.entries.map((entry, i) => checkTable(entry, found[i], shown, context)));
    };
    const edited = () => {
      state.said = "";
      refill(said);
      judge();
      askVersions();
    };
    let asked = 0;
    const askVersions = async () => {
      if (!context.whatIf) return;
      asked += 1;
      const [mine, changed] = [asked, edits(view, state.values)];
      const answer = await context.whatIf.line.ask({ show: "guards", edits: changed });
      if (mine !== asked || answer.hit === void 0) return;
      if (answer.hit === null && verdict.classList.contains("no")) return;
      refill(verdict, ...answerParts(answer.hit, answer.reasons ?? {}));
      verdict.className = `lab-guard-verdict ${answer.hit === null ? "no" : "ok"}`;
    };
    const said = html("p", { class: "lab-note lab-guard-said", role: "status" }, state.said);
    const form = html(
      "div",
      { class: "lab-guard-form" },
      state.values.map((value) => inputRow(value, edited)),
      html(
        "div",
        { class: "lab-guard-actions" },
        html("button", { type: "button", onclick: () => reset(view, state, refillForm) }, say("reset")),
        html("button", {
          type: "button",
          class: "lab-run-it",
          title: say("call the compiled function with these inputs"),
          onclick: async () => {
            await runIt(view, state, context, said, judge);
            await askVersions();
            refill(calls, callTable(state.calls));
          }
        }, say("run it"))
      )
    );
    const refillForm = () => {
      form.querySelectorAll(".lab-guard-input").forEach((row, i) => {
        row.replaceWith(inputRow(state.values[i], edited));
      });
      edited();
    };
    element2.append(html("p", { class: "lab-note" }, view.note), form, verdict, said, calls, body);
    refill(calls, callTable(state.calls));
    judge();
    return {
      element: element2,
      light: (lit, scroll) => {
        shown.shows.light(lit);
        if (scroll) shown.shows.first()?.scrollIntoView({ block: "nearest" });
      },
      find: (query) => shown.rows.filter((r) => r.text.toLowerCase().includes(query)).map((r) => r.element),
      text: () => `${verdict.textContent}
${callText(state.calls)}${shown.rows.map((r) => r.text).join("\n")}
`
    };
  }
  var copy = (data) => JSON.parse(JSON.stringify(data));
  function reset(view, state, refillForm) {
    state.values = copy(view.inputs);
    refillForm();
  }
  function edits(view, values) {
    const changed = {};
    values.forEach((value, i) => {
      const before = { ...view.inputs[i] };
      for (const [name, now] of Object.entries(value)) {
        if (String(now) === String(before[name]) || name === "stride") continue;
        changed[value.source] ||= {};
        changed[value.source][name] = now;
      }
    });
    return changed;
  }
  async function runIt(view, state, context, said, judge) {
    if (!context.whatIf) return;
    said.textContent = say("running …");
    const answer = await context.whatIf.line.ask({ show: "again", edits: edits(view, state.values) });
    state.said = say(answer.error || answer.verdict || "");
    if (answer.entry) view.entries.push(answer.entry);
    if (answer.call) {
      const now = performance.now();
      state.first ??= now;
      state.calls.push({ ...answer.call, at: `${((now - state.first) / 1e3).toFixed(1)} s` });
    }
    judge();
    said.textContent = state.said;
  }
  function callTable(calls) {
    if (!calls.length) return null;
    const head = ["call", "at", "took", "what", "guards that failed"];
    return html(
      "table",
      {},
      html("caption", {}, say("calls made here")),
      html("thead", {}, html("tr", {}, head.map((name) => html("th", {}, say(name))))),
      html("tbody", {}, calls.map(({ at, took, what, why }, i) => html(
        "tr",
        {},
        [i + 1, at, took, what, why.join("\n")].map((cell) => html("td", {}, String(cell)))
      )))
    );
  }
  var callText = (calls) => calls.map(({ at, took, what, why }, i) => `call ${i + 1} at ${at}, ${took}: ${[what, ...why].join("; ")}
`).join("");
  function inputRow(value, edited) {
    const fields = isTensor(value) ? tensorFields(value, edited) : [plainField(value, edited)].flat();
    return html(
      "div",
      { class: "lab-guard-input", "data-input": value.name },
      html("b", {}, value.name),
      fields
    );
  }
  var isTensor = (value) => value.kind === "tensor" || value.kind === "array";
  function tensorFields(value, edited) {
    const change = (facts) => {
      Object.assign(value, facts);
      edited();
    };
    const refused = html("span", { class: "lab-refused", role: "alert" });
    const sizes = html("input", {
      value: value.size.join(", "),
      size: wide(value.size.join(", ")),
      "data-fact": "size",
      "aria-label": say("size of {name}", { name: value.name })
    });
    sizes.addEventListener("input", () => {
      const parts = sizes.value.split(",").map((part) => part.trim()).filter(Boolean);
      const bad = parts.some((part) => !/^\d{1,9}$/.test(part));
      sizes.size = wide(sizes.value);
      refuse(sizes, refused, bad, say("integers, such as 8, 16"));
      if (!bad) change({ size: parts.map(Number), stride: null });
    });
    const possible = DTYPES.filter((name) => value.kind === "tensor" || name !== "bfloat16");
    const known3 = possible.includes(value.dtype) ? possible : [value.dtype, ...possible];
    const dtype = html("select", {
      "aria-label": say("dtype of {name}", { name: value.name }),
      "data-fact": "dtype",
      onchange: () => {
        change({ dtype: dtype.value });
      }
    }, known3.map((name) => html("option", { selected: name === value.dtype }, name)));
    const grad = html("input", {
      type: "checkbox",
      checked: value.requires_grad,
      "data-fact": "requires_grad",
      onchange: () => {
        change({ requires_grad: grad.checked });
      }
    });
    const label = value.kind === "tensor" ? html("label", {}, grad, " requires_grad") : null;
    return ["[", sizes, "]", refused, dtype, label];
  }
  function plainField(value, edited) {
    if (value.kind === "bool") {
      const box = html("input", {
        type: "checkbox",
        checked: Boolean(value.value),
        "aria-label": value.name,
        "data-fact": "value",
        onchange: () => {
          value.value = box.checked;
          edited();
        }
      });
      return box;
    }
    const refused = html("span", { class: "lab-refused", role: "alert" });
    const whole = value.kind === "int";
    const field = html("input", {
      value: String(value.value),
      "aria-label": value.name,
      "data-fact": "value",
      size: wide(String(value.value)),
      oninput: () => {
        const text = field.value;
        const number = text.trim() ? Number(text) : NaN;
        const bad = value.kind !== "str" && (Number.isNaN(number) || whole && !Number.isInteger(number));
        field.size = wide(text);
        refuse(field, refused, bad, say(whole ? "an integer" : "a number"));
        if (bad) return;
        value.value = value.kind === "str" ? text : Number(text);
        edited();
      }
    });
    return [field, refused];
  }
  var wide = (text) => Math.min(Math.max(text.length + 1, 8), 60);
  function refuse(field, said, bad, what) {
    field.setAttribute("aria-invalid", String(bad));
    said.textContent = bad ? what : "";
  }
  function verdictParts(view, found, hit, values, context) {
    if (hit >= 0) {
      const which = view.entries.length > 1 ? ` ${view.entries[hit].title}` : "";
      return [
        html("b", {}, say("hit")),
        " ",
        say("all guards hold: the compiled code{which} is reused", { which })
      ];
    }
    const last = view.entries[found.length - 1];
    const check = last.checks[found[found.length - 1].indexOf("fails")];
    const [text, condition, , where, things] = check;
    const link = where ? html("button", {
      type: "button",
      onclick: () => things.length && context.selection.pin(things)
    }, where) : null;
    return [
      html("b", {}, say("recompile")),
      ` ${say("first failing guard:")} `,
      html("code", {}, text),
      " ",
      mismatch(condition, values),
      " ",
      link
    ];
  }
  function answerParts(hit, reasons) {
    if (hit !== null) {
      return [
        html("b", {}, say("hit")),
        " ",
        say("all guards hold: the compiled code{which} is reused", { which: ` ${hit}` })
      ];
    }
    const failed = Object.entries(reasons).map(([name, text]) => html(
      "div",
      {},
      `${name}: `,
      html("code", {}, text)
    ));
    return [html("b", {}, say("recompile")), ` ${say("first failing guard:")} `, ...failed];
  }
  function mismatch(condition, values) {
    if (condition?.[0] !== "tensor") return "";
    const [, source, dtype, needsGrad, sizes] = condition;
    const input = values.find((value) => value.source === source);
    if (!input || !isTensor(input)) return "";
    if (input.dtype !== dtype) return `(dtype is ${input.dtype})`;
    if (!agree(sizes, input.size)) return `(size is ${input.size.join(", ")})`;
    if (input.requires_grad !== needsGrad) return `(requires_grad is ${input.requires_grad})`;
    return `(stride is ${strides(input)?.join(", ")})`;
  }
  function checkTable(entry, states, shown, context) {
    const first = states.indexOf("fails");
    const rows = entry.checks.map(([text, , kind, where, things], i) => {
      const row = html(
        "tr",
        {
          class: `lab-check ${states[i]}${i === first ? " first" : ""}${things.length ? " linked" : ""}`,
          onmouseenter: () => context.selection.preview(things),
          onmouseleave: () => context.selection.preview([]),
          onclick: () => things.length && context.selection.pin(things)
        },
        html("td", {}, html("span", {
          class: `lab-sign ${{ holds: "ok", fails: "no", unknown: "" }[states[i]]}`,
          title: say(states[i] === "unknown" ? "does not depend on the editable inputs" : states[i])
        }, STATES[states[i]]), text),
        html("td", {}, kind),
        html("td", {}, where)
      );
      shown.shows.add(row, things);
      shown.rows.push({ element: row, text: `${STATES[states[i]]} ${text}	${kind}	${where}` });
      return row;
    });
    const heads = [say("guards of {title}", { title: entry.title }), say("kind"), say("created by")];
    return html("table", {}, html("thead", {}, html(
      "tr",
      {},
      heads.map((head) => html("th", { scope: "col" }, head))
    )), html("tbody", {}, rows));
  }
  function judged(checks, values) {
    const inputs = new Map(values.map((value) => [value.source, value]));
    return checks.map(([, condition]) => {
      const value = condition ? evaluate(condition, inputs) : void 0;
      return value === void 0 ? "unknown" : value ? "holds" : "fails";
    });
  }
  function evaluate(condition, inputs) {
    const all = (operands) => operands.map((each) => evaluate(each, inputs));
    if (condition[0] === "const") return condition[1];
    if (condition[0] === "compare") return compare(condition[1], all(condition[2]));
    if (condition[0] === "op") return OPERATORS[condition[1]](...all(condition[2]));
    const input = inputs.get(condition[1]);
    if (!input) return void 0;
    switch (condition[0]) {
      case "input":
        return input.value;
      case "size":
        return input.size?.[condition[2]];
      case "stride":
        return strides(input)?.[condition[2]];
      case "type":
        return input.kind === condition[2] || isTensor(input) && TYPES[input.kind].test(condition[2]);
      default:
        return isTensor(input) ? sameTensor(input, condition) : void 0;
    }
  }
  function sameTensor(input, [, , dtype, needsGrad, sizes, steps]) {
    return input.dtype === dtype && input.requires_grad === needsGrad && agree(sizes, input.size) && agree(steps, strides(input) || []);
  }
  function agree(wanted, found) {
    return wanted.length === found.length && wanted.every((each, i) => each === null || each === found[i]);
  }
  function strides({ size, stride }) {
    if (stride || !size) return stride;
    return size.map((_, i) => size.slice(i + 1).reduce((all, each) => all * Math.max(each, 1), 1));
  }
  function compare(signs, values) {
    if (values.includes(void 0)) return void 0;
    return signs.every((sign2, i) => RELATIONS[sign2](values[i], values[i + 1]));
  }
  var RELATIONS = {
    "==": (a, b) => a === b,
    "!=": (a, b) => a !== b,
    "<": (a, b) => a < b,
    "<=": (a, b) => a <= b,
    ">": (a, b) => a > b,
    ">=": (a, b) => a >= b
  };
  var known2 = (compute) => (...values) => values.includes(void 0) ? void 0 : compute(...values);
  var OPERATORS = {
    "+": known2((a, b) => a + b),
    "-": known2((a, b) => a - b),
    "*": known2((a, b) => a * b),
    "//": known2((a, b) => Math.floor(a / b)),
    "%": known2((a, b) => a - b * Math.floor(a / b)),
    "**": known2((a, b) => a ** b),
    neg: known2((a) => -a),
    not: known2((a) => !a),
    isnan: known2((a) => Number.isNaN(a)),
    min: known2(Math.min),
    max: known2(Math.max),
    and: known2((...all) => all.every(Boolean)),
    or: known2((...all) => all.some(Boolean))
  };

  // help.js
  var KEYS = [
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
    ["?", "show these shortcuts"]
  ];
  function helpPanel(close) {
    const rows = KEYS.map(([key, what]) => html(
      "tr",
      {},
      html("td", {}, html("kbd", {}, say(key))),
      html("td", {}, say(what))
    ));
    return html("div", {
      class: "lab-help",
      role: "dialog",
      "aria-label": say("keyboard shortcuts"),
      tabindex: -1,
      onclick: close
    }, html("table", {}, rows));
  }

  // keys.js
  var page = globalThis;
  var USED_LAST = /* @__PURE__ */ Symbol.for("inductor_lab.used last");
  var NO_SHORTCUTS = "data-lm-suppress-shortcuts";
  var MOVES = [
    "Enter",
    " ",
    "Escape",
    "ArrowUp",
    "ArrowDown",
    "ArrowLeft",
    "ArrowRight",
    "Home",
    "End",
    "PageUp",
    "PageDown",
    "n",
    "p"
  ];
  function keyboard(explorer) {
    const { root } = explorer;
    const used = () => {
      page[USED_LAST] = new WeakRef(root);
    };
    root.addEventListener("pointerdown", used);
    root.addEventListener("focusin", used);
    root.addEventListener("keydown", (event) => pressed(explorer, event));
    listenToPage(new WeakRef(explorer));
  }
  function listenToPage(held) {
    document.addEventListener("keydown", function elsewhere(event) {
      const alive = held.deref();
      if (!alive) document.removeEventListener("keydown", elsewhere);
      else if (event.target === document.body && isMeant(alive.root)) pressed(alive, event);
    });
  }
  function isMeant(root) {
    const last = page[USED_LAST]?.deref();
    if (!root.isConnected) return false;
    if (last?.isConnected) return last === root;
    return document.querySelectorAll(".lab-explorer").length === 1;
  }
  function pressed(explorer, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      clearAll(explorer);
      return;
    }
    if (isField(targetOf(event))) return;
    const action = ACTIONS[event.key];
    if (action) {
      action(explorer);
      event.preventDefault();
      event.stopPropagation();
    }
  }
  function keepKeys(root) {
    const held = new WeakRef(root);
    window.addEventListener("keydown", function mark(event) {
      const alive = held.deref(), focused = targetOf(event);
      if (!alive) window.removeEventListener("keydown", mark, true);
      else if (alive.contains(focused)) focused.toggleAttribute(NO_SHORTCUTS, isShortcut(event));
    }, true);
  }
  function isShortcut(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (isField(targetOf(event))) return true;
    if (event.shiftKey && event.key === "Enter") return false;
    return event.key in ACTIONS || MOVES.includes(event.key);
  }
  var isField = (element2) => ["INPUT", "SELECT", "TEXTAREA"].includes(element2.tagName);
  var ACTIONS = {
    "[": (explorer) => step(explorer, -1),
    "]": (explorer) => step(explorer, 1),
    "/": (explorer) => explorer.search.field.focus(),
    "?": (explorer) => explorer.help(),
    P: (explorer) => togglePresenter(explorer.root),
    F: (explorer) => toggleFullScreen(explorer.root),
    d: (explorer) => showDiff(explorer),
    f: (explorer) => explorer.focused.view.fit?.(),
    "+": (explorer) => explorer.focused.view.zoom?.(1.25),
    "=": (explorer) => explorer.focused.view.zoom?.(1.25),
    "-": (explorer) => explorer.focused.view.zoom?.(0.8)
  };
  function clearAll(explorer) {
    if (explorer.closeHelp) explorer.closeHelp();
    const { field } = explorer.search;
    explorer.search.clear();
    explorer.selection.clear();
    if (field === document.activeElement) explorer.enter(explorer.focused);
  }
  function step(explorer, by) {
    const { order, focused } = explorer;
    const next = (order.indexOf(focused.id) + by + order.length) % order.length;
    explorer.fill(focused, order[next]);
    explorer.enter(focused);
  }
  function showDiff(explorer) {
    const { id } = explorer.focused;
    const index = explorer.doc.panes[id].views.findIndex((view) => view.name.includes("diff"));
    if (index >= 0) explorer.show(id, false, index);
  }

  // links.js
  var Links = class {
    /** @param {LinkColumns} data */
    constructor(data) {
      this.kind = data.kind;
      this.scope = data.scope;
      this.label = data.label;
      this.parents = data.parents;
      this.children = this.parents.map(() => []);
      this.parents.forEach((parents, thing) => parents.forEach((p) => this.children[p].push(thing)));
      this.colours = this.numberColours();
      this.sources = /* @__PURE__ */ new Map();
    }
    /** Source lines with descendants, in order of appearance: thing → 0, 1, 2, ... */
    numberColours() {
      const lines = this.kind.map((_, thing) => thing).filter((thing) => this.kind[thing] === "source" && this.children[thing].length > 0).sort((a, b) => lineNumber(this.label[a]) - lineNumber(this.label[b]));
      return new Map(lines.map((thing, order) => [thing, order]));
    }
    /**
     * The node or buffer with this label; of several, that of the graph that a pane shows.
     *
     * @param {string | undefined} label
     * @param {string} pane
     */
    named(label, pane) {
      const found = this.label.flatMap((each, thing) => each === label && this.kind[thing] !== "source" ? [thing] : []);
      return found.find((thing) => `${pane}.`.startsWith(`${this.scope[thing]}.`)) ?? found[0];
    }
    /**
     * The given things with all their ancestors and descendants.
     *
     * @param {Thing[]} things
     */
    related(things) {
      const found = /* @__PURE__ */ new Set();
      this.follow(things, this.parents, found);
      const below = /* @__PURE__ */ new Set();
      this.follow(things, this.children, below);
      below.forEach((thing) => found.add(thing));
      return found;
    }
    /**
     * @param {Thing[]} things
     * @param {Thing[][]} next
     * @param {Set<Thing>} found
     */
    follow(things, next, found) {
      const waiting = [...things];
      for (let thing = waiting.pop(); thing !== void 0; thing = waiting.pop()) {
        if (found.has(thing)) continue;
        found.add(thing);
        waiting.push(...next[thing]);
      }
    }
    /**
     * The source lines that these things came from, each once.
     *
     * @param {Thing[]} things
     */
    sourcesOf(things) {
      const lines = /* @__PURE__ */ new Set();
      for (const thing of things) this.sourcesOfOne(thing).forEach((line2) => lines.add(line2));
      return [...lines];
    }
    /** @param {Thing} thing */
    sourcesOfOne(thing) {
      const known3 = this.sources.get(thing);
      if (known3) return known3;
      const above = /* @__PURE__ */ new Set();
      this.follow([thing], this.parents, above);
      const lines = [...above].filter((t) => this.kind[t] === "source");
      this.sources.set(thing, lines);
      return lines;
    }
    /**
     * The cue of some things: the colour and number of their first source line; null without one.
     *
     * @param {Thing[]} things
     * @returns {Cue | null}
     */
    cue(things) {
      const lines = this.sourcesOf(things).filter((line2) => this.colours.has(line2));
      if (!lines.length) return null;
      lines.sort((a, b) => known(this.colours, a) - known(this.colours, b));
      const more = lines.length > 1 ? "+" : "";
      return {
        hue: known(this.colours, lines[0]) % HUES,
        number: `${lineNumber(this.label[lines[0]])}${more}`,
        title: lines.map((line2) => this.label[line2]).join(", ")
      };
    }
  };
  var HUES = 8;
  function lineNumber(label) {
    return Number(label.slice(label.lastIndexOf(":") + 1));
  }

  // live.js
  var page2 = globalThis;
  var CHANNELS = /* @__PURE__ */ Symbol.for("inductor_lab.channels");
  var ARRIVED = "inductor_lab.arrived";
  var PATIENCE = 3e5;
  var GONE = ["dead", "terminating", "restarting", "autorestarting"];
  var STOPPED = "The kernel that compiled this has stopped. Run the cell again.";
  var Line = class {
    /** @param {Model} model */
    constructor(model) {
      this.model = model;
      this.waiting = /* @__PURE__ */ new Map();
      this.count = 0;
      this.gone = false;
      model.on("msg:custom", (answer) => {
        const id = answer.id ?? "";
        const done = this.waiting.get(id);
        this.waiting.delete(id);
        if (done) done(answer);
      });
      model.on("comm_live_update", () => this.hangUp());
      model.on("destroy", () => this.hangUp());
      kernelOf(model)?.statusChanged?.connect((_, status) => GONE.includes(status) && this.hangUp());
    }
    /** Close the connection: all pending and all later requests fail. */
    hangUp() {
      this.gone = true;
      for (const done of this.waiting.values()) done({ error: STOPPED });
      this.waiting.clear();
      const name = this.model.get("channel");
      if (channels().get(name) === this) channels().delete(name);
    }
    /**
     * Promises the answer to `request`: `{error}` if it fails or times out.
     *
     * @param {Request} request
     * @returns {Promise<Answer>}
     */
    ask(request) {
      const kernel = kernelOf(this.model);
      if (kernel && (kernel.isDisposed || GONE.includes(kernel.status))) this.hangUp();
      if (this.gone) return Promise.resolve({ error: STOPPED });
      const id = `${this.model.get("channel")}.${this.count++}.${Math.random()}`;
      return new Promise((done) => {
        this.waiting.set(id, done);
        setTimeout(() => {
          if (this.waiting.delete(id)) done({ error: "No answer: is the kernel still running?" });
        }, PATIENCE);
        this.model.send({ id, ...request });
      });
    }
  };
  function kernelOf(model) {
    const manager = model.widget_manager;
    return manager?.kernel || manager?.context?.sessionContext?.session?.kernel;
  }
  function announce(model) {
    channels().set(model.get("channel"), new Line(model));
    document.dispatchEvent(new CustomEvent(ARRIVED));
  }
  function whenLive(channel, connect, isGone = () => false) {
    const look = () => {
      const line2 = channels().get(channel);
      if (isGone()) document.removeEventListener(ARRIVED, look);
      if (!line2 || isGone()) return;
      document.removeEventListener(ARRIVED, look);
      connect(line2);
    };
    document.addEventListener(ARRIVED, look);
    look();
  }
  function channels() {
    page2[CHANNELS] ??= /* @__PURE__ */ new Map();
    return page2[CHANNELS];
  }

  // pack.js
  function unpack({ shared, data }) {
    const values = [];
    const made = (value) => {
      if (typeof value === "string") {
        if (value[0] !== "~") return value;
        return value[1] === "~" ? value.slice(1) : values[parseInt(value.slice(1), 36)];
      }
      if (Array.isArray(value)) return list(value);
      if (value === null || typeof value !== "object") return value;
      return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, made(inner)]));
    };
    const list = (value) => {
      const first = typeof value[0] === "string" ? value[0] : "";
      if (first === "~|") return value.slice(1).map(made).join("\n");
      if (first === "~#") return form(value);
      if (first === "~*") return runs(value);
      if (!first.startsWith("~:")) return value.map(made);
      const names = values[parseInt(first.slice(2), 36)];
      return Object.fromEntries(names.map((name, i) => [name, made(value[i + 1])]));
    };
    const form = ([, text, ...numbers]) => {
      let at = 0;
      return String(made(text)).replace(/~/g, () => String(numbers[at++]));
    };
    const runs = (value) => value.slice(1).flatMap((inner, i) => i % 2 ? [] : Array.from({ length: Number(value[i + 2]) }, () => made(inner)));
    for (const value of shared) values.push(made(value));
    return made(data);
  }

  // split.js
  var STORED = "inductor_lab.panes";
  var SMALLEST = 15;
  var LARGEST = 85;
  var STEP = 2;
  var EQUAL = 50;
  var MOVES2 = { ArrowLeft: -STEP, ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP };
  function resizable(panes) {
    const area = html("div", { class: "lab-work" }, panes);
    const shares = stored();
    area.append(line(area, "left", shares), line(area, "top", shares));
    return area;
  }
  function line(area, side, shares) {
    const isColumn = side === "left";
    const label = isColumn ? say("width of the left panes") : say("height of the upper panes");
    const element2 = html("div", {
      class: `lab-split lab-split-${side}`,
      role: "separator",
      tabindex: 0,
      "aria-label": label,
      title: say("drag to resize; double-click for equal sizes"),
      "aria-orientation": isColumn ? "vertical" : "horizontal",
      "aria-valuemin": SMALLEST,
      "aria-valuemax": LARGEST
    });
    const set = (wanted) => {
      const share = Math.max(SMALLEST, Math.min(LARGEST, wanted));
      shares[side] = share;
      area.style.setProperty(`--${side}`, `${share}%`);
      element2.setAttribute("aria-valuenow", String(Math.round(share)));
    };
    element2.addEventListener("pointerdown", (event) => {
      element2.setPointerCapture(event.pointerId);
      event.preventDefault();
      element2.focus({ preventScroll: true });
    });
    element2.addEventListener("pointermove", (event) => {
      if (!element2.hasPointerCapture(event.pointerId)) return;
      const box = area.getBoundingClientRect();
      set(100 * (isColumn ? (event.clientX - box.left) / box.width : (event.clientY - box.top) / box.height));
    });
    element2.addEventListener("lostpointercapture", () => store(shares));
    element2.addEventListener("dblclick", () => {
      set(EQUAL);
      store(shares);
    });
    element2.addEventListener("keydown", (event) => {
      const wanted = event.key === "Home" ? SMALLEST : event.key === "End" ? LARGEST : event.key in MOVES2 ? shares[side] + MOVES2[event.key] : null;
      if (wanted === null) return;
      set(wanted);
      store(shares);
      event.preventDefault();
      event.stopPropagation();
    });
    set(shares[side]);
    return element2;
  }
  function stored() {
    try {
      const { left, top } = JSON.parse(localStorage.getItem(STORED) || "{}");
      return { left: Number(left) || EQUAL, top: Number(top) || EQUAL };
    } catch {
      return { left: EQUAL, top: EQUAL };
    }
  }
  function store(shares) {
    try {
      localStorage.setItem(STORED, JSON.stringify(shares));
    } catch {
    }
  }

  // colours.js
  var words = (text) => `\\b(?:${text.trim().replace(/\s+/g, "|")})\\b`;
  var NUMBER = "\\b(?:0[xXfd][\\da-fA-F.]+(?:[pP][-+]?\\d+)?|\\d[\\d_]*\\.?\\d*(?:[eE][-+]?\\d+)?)[fFuUlL]*\\b";
  var STRING = `"(?:\\\\.|[^"\\\\])*"|'(?:\\\\.|[^'\\\\])*'`;
  var CALLED = "\\b[A-Za-z_]\\w*(?=\\()";
  var PYTHON = {
    comment: "#.*",
    string: `[rbfRBF]{0,2}(?:${STRING})`,
    keyword: words(`False None True and as assert async await break class continue def del elif else
    except finally for from global if import in is lambda nonlocal not or pass raise return try
    while with yield match case`),
    type: `@[\\w.]+|${words("self cls int float bool str tuple list dict set torch tl triton")}`,
    called: CALLED,
    number: NUMBER
  };
  var CPP = {
    comment: "//.*",
    string: `#\\s*pragma .*|#\\s*include .*|${STRING}`,
    keyword: words(`alignas auto break case const constexpr continue default do else extern for if
    inline namespace noexcept operator return sizeof static struct switch template typedef typename
    union using while volatile restrict __restrict true false nullptr #define #if #endif`),
    type: `\\b\\w+_t\\b|${words(`void bool char short int long float double unsigned signed half
    bfloat16`)}`,
    called: `${CALLED}|\\b[a-z_]\\w*(?=<[\\w, ]+>\\()`,
    number: NUMBER
  };
  var ASSEMBLY = {
    comment: "//.*|; *\\S.*|#.*|<[A-Za-z_][^>]*>",
    string: STRING,
    keyword: "^\\s*(?:[\\da-f]+:\\s+)?(?:@!?%\\w+\\s+)?[a-z][\\w.:]*(?=\\s|;|$)|^\\s*\\.[\\w.]+",
    type: "%[\\w.]+|" + words(`[xyz]mm\\d+ [re]?[abcd]x [re]?[sd]il? [re]?[bs]p r\\d+[dwb]? [wxvqsd]\\d+ k[0-7]
    [abcd]l`) + "|\\.[a-z]\\w*",
    called: words("BYTE WORD DWORD QWORD XMMWORD YMMWORD ZMMWORD PTR"),
    number: NUMBER
  };
  var MLIR = {
    comment: "//.*|;.*|loc\\(.*",
    string: STRING,
    keyword: "\\b[a-z_]\\w*\\.[\\w.]+|" + words(`define declare attributes ret br call tail load store
    add sub mul fadd fsub fmul fdiv icmp fcmp select getelementptr extractvalue insertvalue phi
    bitcast zext sext trunc fptrunc fpext module public private`),
    type: "[!#][\\w.]+|\\btensor(?=<)|" + words("[if]\\d+ bf16 float double half ptr void index"),
    called: "@[\\w.$]+",
    number: `${NUMBER}|%[\\w.]+`
  };
  var LANGUAGES = Object.fromEntries(Object.entries({
    python: PYTHON,
    triton: PYTHON,
    cpp: CPP,
    assembly: ASSEMBLY,
    mlir: MLIR
  }).map(([name, kinds]) => [name, new RegExp(
    Object.entries(kinds).map(([kind, words2]) => `(?<${kind}>${words2})`).join("|"),
    "g"
  )]));
  var LONG = { python: ['"""', "'''"], triton: ['"""', "'''"], cpp: ["/*"] };
  var CLOSES = { "/*": "*/" };
  var OPENS = /"""|'''|\/\*/g;
  function coloured(line2, language, open = null) {
    const found = [];
    const plain = (text) => text && found.push(...matched(text, LANGUAGES[language]));
    let rest = line2;
    while (rest) {
      if (open === null) {
        const at = firstOpening(rest, language);
        plain(rest.slice(0, at));
        rest = rest.slice(at);
        if (!rest) break;
        const opens = rest.startsWith("/*") ? "/*" : rest.slice(0, 3);
        open = opens;
        found.push([kindOf(opens), opens]);
        rest = rest.slice(opens.length);
      }
      const close = CLOSES[open] || open;
      const end = rest.indexOf(close);
      const inside = end < 0 ? rest : rest.slice(0, end + close.length);
      if (inside) found.push([kindOf(open), inside]);
      rest = rest.slice(inside.length);
      if (end >= 0) open = null;
      else break;
    }
    return { words: found, open };
  }
  var kindOf = (open) => open === "/*" ? "comment" : "string";
  function firstOpening(text, language) {
    const known3 = LONG[language] || [];
    for (const { 0: what, index } of text.matchAll(OPENS)) {
      const before = text.slice(0, index);
      if (known3.includes(what) && !/#|\/\//.test(before)) return index;
    }
    return text.length;
  }
  function* matched(text, language) {
    let at = 0;
    for (const match of text.matchAll(language)) {
      const kinds = Object.entries(match.groups || {});
      const [kind] = kinds.find(([, words2]) => words2 !== void 0) || [null];
      if (match.index > at) yield [null, text.slice(at, match.index)];
      yield [kind, match[0]];
      at = match.index + match[0].length;
    }
    if (at < text.length) yield [null, text.slice(at)];
  }
  function colourer(lines, size, language) {
    if (!LANGUAGES[language]) return null;
    const opened = [null];
    return (chunk, each) => {
      for (let known3 = opened.length; known3 <= chunk; known3++) {
        opened.push(goThrough(
          lines.slice((known3 - 1) * size, known3 * size),
          language,
          opened[known3 - 1]
        ));
      }
      goThrough(lines.slice(chunk * size, (chunk + 1) * size), language, opened[chunk], each);
    };
  }
  function goThrough(lines, language, open, each = null) {
    lines.forEach(([text, , mark], i) => {
      const found = coloured(text, language, mark === void 0 ? open : null);
      open = mark === void 0 ? found.open : null;
      if (text && mark !== "@") each?.(i, found.words);
    });
    return open;
  }

  // edit.js
  function kernelEditor(view, context) {
    const kernels = view.blocks.filter(isKernel);
    if (!kernels.length) return {};
    const place = html("div", { class: "lab-editing" });
    const button = html("button", {
      type: "button",
      class: "lab-edit",
      title: say("edit a kernel and run it on copies of the inputs"),
      onclick: () => {
        view.editing = view.editing ? null : kernels[0];
        show();
      }
    }, say("edit"));
    const show = () => {
      const { editing } = view;
      button.setAttribute("aria-expanded", String(Boolean(editing)));
      const held = place.querySelector(":focus");
      refill(place, editing && isKernel(editing) ? new Editor(editing, chooser(), context).element : null);
      if (held) place.querySelector("select")?.focus();
    };
    const chooser = () => {
      const choose = html("select", {
        "aria-label": say("choose a kernel"),
        onchange: () => {
          view.editing = kernels[choose.selectedIndex];
          show();
        }
      }, kernels.map((block) => html("option", { selected: block === view.editing }, block.kernel[1])));
      return choose;
    };
    show();
    return { actions: [button], above: place };
  }
  var isKernel = (block) => block.kernel !== void 0;
  var Editor = class {
    /**
     * @param {KernelBlock} block
     * @param {HTMLElement} choose
     * @param {Context} context
     */
    constructor(block, choose, context) {
      const original = block.lines.map((line2) => line2[0]).join("\n");
      block.draft ||= { text: original, said: "" };
      this.draft = block.draft;
      this.block = block;
      this.context = context;
      this.numbers = html("div", { class: "lab-editor-numbers", "aria-hidden": "true" });
      this.area = html("textarea", {
        spellcheck: "false",
        "aria-label": say("source of {name}", { name: block.kernel[1] }),
        wrap: "off",
        oninput: () => this.changed()
      });
      this.area.value = block.draft.text;
      this.said = html("p", { class: "lab-editor-said", role: "status" });
      this.errors = html("ul", { class: "lab-editor-errors" });
      this.isRunning = false;
      this.stop = html("button", {
        type: "button",
        class: "lab-stop",
        title: say("end the edited kernel that runs"),
        hidden: true,
        onclick: () => this.context.whatIf?.line.ask({ show: "stop" })
      }, say("stop"));
      this.element = html(
        "div",
        { class: "lab-editor" },
        html(
          "div",
          { class: "lab-editor-head" },
          choose,
          html("button", { type: "button", onclick: () => this.ask() }, say("run")),
          this.stop,
          html("button", {
            type: "button",
            onclick: () => {
              this.area.value = original;
              this.changed();
            }
          }, say("restore generated code")),
          this.said
        ),
        this.errors,
        html("div", { class: "lab-editor-text" }, this.numbers, this.area)
      );
      this.number();
      this.tell(block.draft);
    }
    changed() {
      this.draft.text = this.area.value;
      this.number();
    }
    /** @param {number[]} wrong numbers of lines */
    number(wrong = []) {
      const count = this.area.value.split("\n").length;
      const lines = Array.from({ length: count }, (_, i) => html("div", {
        class: wrong.includes(i + 1) ? "wrong" : ""
      }, String(i + 1)));
      refill(this.numbers, lines);
      this.area.rows = count;
      this.area.cols = Math.max(...this.area.value.split("\n").map((line2) => line2.length)) + 1;
    }
    /** @param {Draft} draft */
    tell({ said, right, errors = [] }) {
      this.said.className = `lab-editor-said ${right === void 0 ? "" : right ? "ok" : "no"}`;
      this.said.textContent = errors.length ? say("{n} errors", { n: errors.length }) : said;
      this.number(errors.map(([line2]) => line2));
      refill(this.errors, errors.map(([line2, text]) => html("li", {}, html("button", {
        type: "button",
        onclick: () => this.goTo(line2)
      }, line2 ? say("line {line}: {text}", { line: line2, text }) : text))));
    }
    /** @param {number} line */
    goTo(line2) {
      const lines = this.area.value.split("\n");
      const start = lines.slice(0, Math.max(line2 - 1, 0)).join("\n").length + (line2 > 1 ? 1 : 0);
      this.area.focus();
      this.area.setSelectionRange(start, start + (lines[line2 - 1] || "").length);
    }
    async ask() {
      const { draft, block: { kernel: [part, kernel] } } = this;
      if (!this.context.whatIf || this.isRunning) return;
      const done = countSeconds(this.said, say("compiling and running"));
      this.isRunning = true;
      this.stop.hidden = false;
      const request = { show: "kernel", part, kernel, text: draft.text };
      const answer = await this.context.whatIf.line.ask(request);
      done();
      this.isRunning = false;
      this.stop.hidden = true;
      Object.assign(draft, outcome(answer));
      this.tell(draft);
    }
  };
  function outcome({ error, verdict, right, errors }) {
    return error ? { said: say(error), right: false, errors: [] } : { said: verdict, right, errors };
  }

  // text.js
  var views = 0;
  var CHUNK = 200;
  var LINE_HEIGHT = 18.75;
  var AT_ONCE = 300;
  var MARGIN2 = "600px";
  function textView(view, context) {
    const lines = new Lines(view, context);
    let lowered2;
    return {
      element: lines.element,
      ...kernelEditor(view, context),
      light: (lit, scroll) => lines.light(lit, scroll),
      goTo: (number) => lines.goTo(number - 1),
      find: (query) => {
        lowered2 ??= lines.all.map((line2) => line2.text.toLowerCase());
        return lowered2.flatMap((text, i) => text.includes(query) ? [lines.elementOf(i)] : []);
      },
      text: () => lines.all.map((line2) => line2.text).join("\n") + "\n",
      whole: () => lines.all.forEach((_, i) => lines.elementOf(i))
    };
  }
  var Lines = class {
    /**
     * @param {TextView} view
     * @param {Context} context
     */
    constructor(view, context) {
      this.context = context;
      this.id = `lab-text-${views++}`;
      this.element = html("div", {
        class: "lab-text",
        tabindex: 0,
        role: "listbox",
        "aria-label": say("{name}, lines", { name: say(view.name) })
      });
      this.all = [];
      this.places = /* @__PURE__ */ new Map();
      this.lit = /* @__PURE__ */ new Set();
      this.current = -1;
      const seen = /* @__PURE__ */ new WeakMap();
      this.watch = new IntersectionObserver((entries) => {
        for (const { isIntersecting, target } of entries) {
          if (!isIntersecting) continue;
          this.watch.unobserve(target);
          seen.get(target)?.();
        }
      }, { rootMargin: MARGIN2, scrollMargin: MARGIN2 });
      for (const block of view.blocks) this.element.append(this.block(block, seen));
      this.listen();
    }
    /**
     * @param {Block} block
     * @param {WeakMap<Element, () => void>} seen
     */
    block(block, seen) {
      const body = html("div", { class: "lab-block" });
      if (block.title) {
        const style = block.title === "⋯" ? "lab-block-title gap" : "lab-block-title";
        body.append(html("div", { class: style }, block.title));
      }
      const colours = colourer(block.lines, CHUNK, block.language);
      for (let start = 0; start < block.lines.length; start += CHUNK) {
        const first = this.all.length;
        const count = Math.min(CHUNK, block.lines.length - start);
        const element2 = chunkOf(count);
        element2.style.height = `${count * LINE_HEIGHT}px`;
        const chunk = { element: element2, first, count };
        block.lines.slice(start, start + count).forEach(([text, things = [], mark = ""], i) => {
          for (const thing of things) push(this.places, thing, this.all.length);
          const number = block.first ? block.first + start + i : "";
          this.all.push({ text, things, mark, number, chunk, element: null });
        });
        if (first < AT_ONCE) this.build(chunk);
        seen.set(element2, () => {
          this.build(chunk);
          colours?.(start / CHUNK, (i, words2) => this.colour(first + i, words2));
        });
        this.watch.observe(element2);
        body.append(element2);
      }
      return body;
    }
    /** @param {TextLine["chunk"]} chunk */
    build({ element: element2, first, count }) {
      if (element2.childElementCount) return;
      element2.style.height = "";
      for (let i = first; i < first + count; i++) {
        const line2 = this.line(i);
        this.all[i].element = line2;
        element2.append(line2);
      }
    }
    /**
     * The element of a line, which is built if it is not there yet.
     *
     * @param {number} i
     */
    elementOf(i) {
      const line2 = this.all[i];
      if (!line2.element) this.build(line2.chunk);
      return line2.element;
    }
    /** @param {number} i */
    line(i) {
      const { text, things, mark, number } = this.all[i];
      const { links } = this.context;
      const cue = links.cue(things);
      const classes = [
        "lab-line",
        things.length ? "linked" : "",
        MARKS[mark] || "",
        this.lit.has(i) ? "lit" : ""
      ];
      return html(
        "div",
        {
          id: `${this.id}-${i}`,
          role: text.trim() ? "option" : "presentation",
          "aria-selected": text.trim() ? "false" : null,
          class: classes.filter(Boolean).join(" "),
          "data-line": i,
          "data-hue": cue ? cue.hue : null
        },
        html("span", { class: "lab-no", "aria-hidden": "true" }, String(number)),
        html(
          "span",
          { class: "lab-cue", title: cue ? say("from {lines}", { lines: cue.title }) : null },
          cue && links.kind[things[0]] !== "source" ? cue.number : ""
        ),
        html("span", { class: "lab-mark" }, mark === "@" ? "" : mark),
        html("code", {}, text || " ")
      );
    }
    /**
     * @param {number} i
     * @param {Word[]} words
     */
    colour(i, words2) {
      this.elementOf(i).lastElementChild?.replaceChildren(...words2.map(([kind, text]) => kind ? html("span", { class: `lab-${kind}` }, text) : text));
    }
    /**
     * Highlight the lines of these things, and no others; with `scroll` show the first.
     *
     * @param {Lit} lit
     * @param {boolean} [scroll]
     */
    light(lit, scroll) {
      const now = new Set([...lit ?? []].flatMap((thing) => this.places.get(thing) ?? []));
      for (const i of this.lit) if (!now.has(i)) this.all[i].element?.classList.remove("lit");
      for (const i of now) if (!this.lit.has(i)) this.all[i].element?.classList.add("lit");
      this.lit = now;
      this.element.classList.toggle("dim", now.size > 0);
      if (!scroll || !now.size) return;
      let first = this.all.length;
      for (const i of now) first = Math.min(first, i);
      this.elementOf(first).scrollIntoView({ block: "nearest" });
    }
    /** @param {number} i */
    goTo(i) {
      if (!this.all[i]) return;
      this.context.selection.hold(this.all[i].things, i);
      this.mark(i, true);
      this.elementOf(i).scrollIntoView({ block: "center" });
    }
    /**
     * @param {number} i
     * @param {boolean} is
     */
    mark(i, is) {
      if (!this.all[i]) return;
      const element2 = this.elementOf(i);
      element2.classList.toggle("current", is);
      if (this.all[i].text.trim()) element2.setAttribute("aria-selected", String(is));
    }
    listen() {
      const { element: element2, all, context: { selection } } = this;
      const lineOf = (event) => {
        const row = targetOf(event).closest(".lab-line");
        return row ? Number(row.dataset.line) : -1;
      };
      element2.addEventListener("mouseover", (event) => {
        selection.preview(all[lineOf(event)]?.things ?? []);
      });
      element2.addEventListener("mouseleave", () => selection.preview([]));
      element2.addEventListener("click", (event) => {
        const i = lineOf(event);
        if (all[i]?.things.length && !String(getSelection())) selection.pin(all[i].things, i);
      });
      element2.addEventListener("keydown", (event) => this.key(event));
    }
    /** @param {KeyboardEvent} event */
    key(event) {
      const { selection } = this.context;
      const step2 = STEPS[event.key];
      if (step2) {
        this.mark(this.current, false);
        this.current = Math.max(0, Math.min(this.all.length - 1, this.current + step2));
        this.mark(this.current, true);
        const element2 = this.elementOf(this.current);
        element2.scrollIntoView({ block: "nearest" });
        this.element.setAttribute("aria-activedescendant", element2.id);
        selection.preview(this.all[this.current].things);
        event.preventDefault();
      } else if (event.key === "Enter" && this.all[this.current]?.things.length) {
        selection.pin(this.all[this.current].things, this.current);
      }
    }
  };
  function inChunks(elements) {
    const chunks = [];
    for (let start = 0; start < elements.length; start += CHUNK) {
      const part = elements.slice(start, start + CHUNK);
      chunks.push(chunkOf(part.length));
      chunks[chunks.length - 1].append(...part);
    }
    return chunks;
  }
  function chunkOf(count) {
    const chunk = html("div", { class: "lab-chunk" });
    chunk.style.containIntrinsicHeight = `auto ${count * LINE_HEIGHT}px`;
    return chunk;
  }
  var STEPS = {
    ArrowDown: 1,
    ArrowUp: -1,
    PageDown: 20,
    PageUp: -20,
    Home: -Infinity,
    End: Infinity
  };
  var MARKS = { "+": "added", "-": "removed", "@": "gap" };

  // steps.js
  function stepsView(view, context) {
    view.state ??= { run: 0, at: 0 };
    const { state } = view;
    const stepper = new Stepper(view, state, context);
    return {
      element: stepper.element,
      light: (lit) => stepper.shows.light(lit),
      find: (query) => stepper.lines.filter((line2) => line2.textContent.toLowerCase().includes(query)),
      text: () => stepper.lines.map((line2) => line2.textContent).join("\n") + "\n"
    };
  }
  var Stepper = class {
    /**
     * @param {StepsView} view
     * @param {{run: number, at: number}} state
     * @param {Context} context
     */
    constructor(view, state, context) {
      this.view = view;
      this.state = state;
      this.context = context;
      this.slider = html("input", {
        type: "range",
        min: 0,
        "aria-label": say("instruction"),
        oninput: () => {
          this.go(Number(this.slider.value));
        }
      });
      this.said = html("span", { class: "lab-soft lab-step-said", role: "status" });
      this.code = html("div", { class: "lab-text lab-step-code", tabindex: 0, "aria-label": say("instructions") });
      this.shows = new Shows(this.code);
      this.stack = html("ol", { class: "lab-step-stack", "aria-label": say("symbolic stack, top first") });
      this.graph = html("div", { class: "lab-step-graph", "aria-label": say("graph so far") });
      const runs = html("select", {
        "aria-label": say("choose a run"),
        onchange: () => {
          this.choose(Number(runs.value));
        }
      }, view.runs.map((run, i) => html("option", { value: i, selected: i === state.run }, run.title)));
      this.lines = [];
      const button = (label, title, by) => html("button", {
        type: "button",
        title,
        "aria-label": title,
        onclick: () => this.go(this.state.at + by)
      }, label);
      this.element = html(
        "div",
        { class: "lab-steps" },
        html(
          "div",
          { class: "lab-step-head" },
          view.runs.length > 1 ? runs : null,
          button("◂", say("previous instruction"), -1),
          this.slider,
          button("▸", say("next instruction"), 1),
          this.said
        ),
        html(
          "div",
          { class: "lab-step-columns" },
          this.code,
          html(
            "div",
            { class: "lab-step-side" },
            html("h3", {}, say("stack before the instruction")),
            this.stack,
            html("h3", {}, say("graph after the instruction")),
            this.graph
          )
        )
      );
      this.code.addEventListener("keydown", (event) => this.key(event));
      this.code.addEventListener("click", (event) => {
        const line2 = targetOf(event).closest(".lab-line");
        if (line2) this.go(Number(line2.dataset.line));
      });
      this.choose(state.run, state.at);
    }
    get run() {
      return this.view.runs[this.state.run];
    }
    /** @param {number} run */
    choose(run, at = 0) {
      this.state.run = run;
      this.shows = new Shows(this.code);
      const { rows, total } = this.run;
      this.lines = rows.map((row, i) => this.line(row, i));
      const chunks = inChunks(this.lines);
      if (total > rows.length) {
        chunks.push(html("p", { class: "lab-note" }, say(
          "The first {n} of this run's {all} instructions.",
          { n: rows.length.toLocaleString("en"), all: total.toLocaleString("en") }
        )));
      }
      refill(this.code, chunks);
      this.slider.max = String(rows.length - 1);
      this.go(at, false);
    }
    /**
     * @param {Instruction} instruction
     * @param {number} i
     */
    line([depth, , line2, opname, argument, , added, , things], i) {
      const { texts } = this.view;
      const cue = this.context.links.cue(things);
      const row = html(
        "div",
        {
          class: `lab-line${things.length ? " linked" : ""}`,
          "data-line": i,
          "data-hue": cue?.hue,
          onmouseenter: () => this.context.selection.preview(things),
          onmouseleave: () => this.context.selection.preview([])
        },
        html("span", { class: "lab-no" }, line2 > 0 ? String(line2) : ""),
        html("code", {}, `${"  ".repeat(depth)}${texts[opname]} ${texts[argument]}`),
        added.length ? html("span", { class: "lab-step-adds", title: say("adds to the graph") }, `+${added.length}`) : null
      );
      this.shows.add(row, things);
      return row;
    }
    /** @param {KeyboardEvent} event */
    key(event) {
      const by = ARROWS[event.key];
      if (!by) return;
      this.go(this.state.at + by);
      event.preventDefault();
    }
    /** @param {number} to */
    go(to, preview = true) {
      const { rows, total } = this.run;
      const at = Math.max(0, Math.min(rows.length - 1, to));
      this.lines[this.state.at]?.classList.remove("current");
      this.state.at = at;
      const [, fn, line2, , , stack, , , things] = rows[at];
      this.lines[at].classList.add("current");
      this.lines[at].scrollIntoView({ block: "nearest" });
      this.slider.value = String(at);
      const { texts } = this.view;
      this.slider.setAttribute("aria-valuetext", this.lines[at].textContent);
      const place = line2 > 0 ? "{n} of {all}, in {name} line {line}" : "{n} of {all}, in {name}";
      this.said.textContent = say(
        place,
        { n: (at + 1).toLocaleString("en"), all: total.toLocaleString("en"), name: texts[fn], line: line2 }
      );
      refill(this.stack, stack.length ? [...stack].reverse().map((value) => html("li", {}, texts[value])) : html("li", { class: "lab-soft" }, say("empty")));
      refill(this.graph, this.graphLines(at));
      this.graph.querySelector(".added")?.scrollIntoView({ block: "nearest" });
      if (preview) this.context.selection.preview(things);
    }
    /**
     * The graph after instruction `at`; the nodes that it added are highlighted.
     *
     * @param {number} at
     */
    graphLines(at) {
      const { texts } = this.view;
      const lines = /* @__PURE__ */ new Map();
      const fresh = /* @__PURE__ */ new Set();
      this.run.rows.slice(0, at + 1).forEach(([, , , , , , added, renamed], i) => {
        for (const [old, now] of renamed) {
          const text = lines.get(texts[old]);
          if (text === void 0) continue;
          lines.delete(texts[old]);
          lines.set(texts[now], text);
          if (i === at) fresh.add(texts[now]);
        }
        for (const each of added) {
          const [name, ...rest] = texts[each].split(" = ");
          lines.set(name, rest.join(" = "));
          if (i === at) fresh.add(name);
        }
      });
      if (!lines.size) return html("p", { class: "lab-soft" }, say("no nodes yet"));
      return [...lines].map(([name, text]) => html("div", {
        class: `lab-line${fresh.has(name) ? " added" : ""}`
      }, html("code", {}, text ? `${name} = ${text}` : say("{name}: input", { name }))));
    }
  };

  // table.js
  var [ONE_LINE, MANY_LINES] = [24, 60];
  var SIGNS = { ok: "✓", no: "✗", warn: "!" };
  function tableTree({ name, columns, note, rows }) {
    const label = say("{name}, rows", { name: say(name) });
    const heads = columns.map((column) => {
      const term = column.replace(/^>/, "");
      return element("th", { ...numberOf(column), scope: "col", ...termOf(term) }, say(term));
    });
    return element(
      "div",
      { class: "lab-table", role: "group", "aria-label": label },
      note && element("p", { class: "lab-note" }, note),
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, ...heads)),
        element("tbody", {}, ...rows.flatMap((row) => rowTrees(row, columns)))
      )
    );
  }
  function tableTexts({ rows }) {
    return rows.flatMap(([cells, , , more = []]) => [
      cells.join("	"),
      ...more.map(([, term, ...others]) => [say(term), ...others].join("	"))
    ]);
  }
  function rowTrees([cells, things = [], mark = "", more = [], pair = "", steps = []], columns) {
    const shown = cells.map((cell, i) => element(
      "td",
      classOf(columns[i], cell),
      i || !mark ? "" : sign("span", mark),
      cell
    ));
    const attributes = { "data-things": things.join(" ") };
    if (pair) attributes["data-pair"] = pair;
    if (steps.length) attributes["data-steps"] = steps.join(" ");
    const row = element("tr", attributes, ...shown);
    if (!more.length) return [row];
    const inner = more.map(([inside, term, ...others]) => element(
      "tr",
      {},
      inside && sign("td", inside),
      element("td", termOf(term), say(term)),
      ...others.map((cell) => element("td", {}, cell))
    ));
    const held = element("td", { colspan: String(columns.length) }, element("table", {}, ...inner));
    return [row, element("tr", { class: "lab-more", hidden: "" }, held)];
  }
  function element(tag, attributes, ...children) {
    return [tag, attributes, ...children.filter((child) => child !== "")];
  }
  var sign = (tag, mark) => element(tag, { class: `lab-sign ${mark}` }, SIGNS[mark]);
  var termOf = (word) => ({ "data-term": say(word) === word ? "" : word });
  function numberOf(column) {
    return column.startsWith(">") ? { class: "number" } : {};
  }
  function classOf(column, cell) {
    if (column.startsWith(">")) return { class: "number" };
    if (cell.length <= ONE_LINE && /^\s*\S+\s*$/.test(cell)) return { class: "whole" };
    return cell.length > MANY_LINES ? { class: "long" } : {};
  }

  // pieces.js
  var PATIENCE2 = 25;
  var REST = 0;
  var PAUSE = 250;
  var Pieces = class {
    /** `now` is the clock; `later` runs a function after the browser has updated the page. */
    constructor(now = () => performance.now(), later = (next, wait) => {
      setTimeout(next, wait);
    }) {
      this.now = now;
      this.later = later;
      this.turn = 0;
    }
    /**
     * Run the steps of an iterator; pending steps of an earlier iterator are cancelled.  A step that
     * yields a number waits for this many milliseconds.
     *
     * @param {Iterator<number | undefined | void>} steps
     */
    run(steps) {
      this.turn += 1;
      const turn = this.turn;
      const go = () => {
        if (turn !== this.turn) return;
        const until = this.now() + PATIENCE2;
        do {
          const { done, value } = steps.next();
          if (done) return;
          if (value !== void 0) return this.later(go, value);
        } while (this.now() < until);
        this.later(go, REST);
      };
      go();
    }
  };
  function* inSteps(values, change, size = 100) {
    for (let start = 0; start < values.length; start += size) {
      values.slice(start, start + size).forEach(change);
      yield;
    }
  }

  // search.js
  var FEW = 50;
  var Search = class {
    /** @param {Explorer} explorer */
    constructor(explorer) {
      this.explorer = explorer;
      this.found = [];
      this.wanted = "";
      this.pieces = new Pieces();
      this.at = -1;
      this.field = html("input", {
        type: "search",
        placeholder: say("search  /"),
        "aria-label": say("search in all panes")
      });
      this.field.addEventListener("input", () => this.find(this.field.value));
      this.field.addEventListener("keydown", (event) => event.key === "Enter" && this.next(event.shiftKey ? -1 : 1));
      this.count = html("span", { class: "lab-found-count", role: "status" });
      this.elsewhere = html("div", {
        class: "lab-elsewhere",
        hidden: true,
        role: "group",
        "aria-label": say("found in closed panes")
      });
    }
    /** Clear the field and all highlights. */
    clear() {
      if (this.field.value) {
        this.field.value = "";
        this.find("");
      }
    }
    /** @param {string} query */
    find(query) {
      this.pieces.run(this.steps(query.trim().toLowerCase()));
    }
    /**
     * The steps of a search: first open panes, then closed panes; elements that hide a hit are opened
     * when no key has been pressed for a while.  Scrolling to the first hit triggers a page layout, so
     * the typed key is shown before.
     *
     * @param {string} wanted
     */
    *steps(wanted) {
      const old = this.found;
      this.found = [];
      this.wanted = wanted;
      this.count.setAttribute("aria-busy", "true");
      for (const { element: element2 } of old) element2.classList.remove("at");
      for (const slot of wanted ? this.explorer.slots : []) {
        const { view } = slot;
        this.found.push(...view.find(wanted).map((element2, place) => ({ slot, view, element: element2, place })));
        yield;
      }
      this.at = -1;
      this.count.textContent = wanted ? say("{n} found", { n: this.found.length }) : "";
      const still = new Set(this.found.map(({ element: element2 }) => element2));
      const mark = (element2) => element2.classList.add("found");
      if (this.found.length) {
        mark(this.found[0].element);
        yield REST;
        if (this.at < 0) this.next(1);
      }
      const marked = this.explorer.slots.flatMap(({ element: element2 }) => [
        ...element2.getElementsByClassName("found")
      ]);
      yield* inSteps(marked.filter((element2) => !still.has(element2)), (element2) => {
        element2.classList.remove("found");
      });
      yield* inSteps([...still], mark);
      yield* this.closedPanes(wanted);
      yield* this.hidden();
      this.count.removeAttribute("aria-busy");
    }
    /** Open the elements that hide hits, in panes with few hits. */
    *hidden() {
      for (const { view } of this.explorer.slots) {
        const hits = this.found.filter((hit) => hit.view === view);
        if (!view.reveal || !hits.length || hits.length > FEW) continue;
        yield PAUSE;
        this.reveal(view, hits);
      }
    }
    /**
     * Open the elements that hide hits of a view; this may replace the elements of all its hits.
     *
     * @param {Drawn} view
     * @param {Hit[]} hits
     */
    reveal(view, hits) {
      const isChanged = view.reveal?.(hits.map(({ place }) => place));
      if (!isChanged && hits.every(({ element: element2 }) => element2.isConnected)) return;
      const elements = view.find(this.wanted);
      for (const hit of this.found) if (hit.view === view) hit.element = elements[hit.place];
      if (this.found[this.at]?.view === view) this.goTo(this.found[this.at]);
    }
    /**
     * List the closed panes with matches, as buttons that open them.
     *
     * @param {string} wanted
     */
    *closedPanes(wanted) {
      const { doc, order, slots } = this.explorer;
      const open = new Set(slots.map((slot) => slot.id));
      const places = [];
      for (const id of wanted ? order.filter((each) => !open.has(each)) : []) {
        const counts = doc.panes[id].views.map((view) => occurrences(view, wanted));
        const most = counts.indexOf(Math.max(...counts));
        if (counts[most]) places.push({ id, view: most, count: counts.reduce((x, y) => x + y) });
        yield;
      }
      refill(this.elsewhere, places.map(({ id, view, count }) => html("button", {
        type: "button",
        onclick: () => {
          this.explorer.show(id, false, view);
          this.find(this.field.value);
        }
      }, `${this.explorer.title(id)}: ${count}`)));
      this.elsewhere.hidden = !places.length;
    }
    /**
     * Go to the next hit, or with -1 to the previous one.
     *
     * @param {number} step
     */
    next(step2) {
      if (!this.found.length) return;
      const { slots } = this.explorer;
      const isShown2 = ({ slot, view }) => slots.includes(slot) && slot.view === view;
      if (!this.found.every(isShown2)) return this.find(this.field.value);
      this.found[this.at]?.element.classList.remove("at");
      const isTyped = this.at < 0;
      this.at = (this.at + step2 + this.found.length) % this.found.length;
      const hit = this.found[this.at];
      this.explorer.focus(hit.slot);
      this.count.textContent = say("{n} of {all}", { n: this.at + 1, all: this.found.length });
      if (!isTyped) this.reveal(hit.view, [hit]);
      this.goTo(hit);
    }
    /** @param {Hit} hit */
    goTo({ view, element: element2 }) {
      element2.classList.add("at");
      if (view.showElement) view.showElement(element2);
      else element2.scrollIntoView({ block: "nearest" });
    }
  };
  function searchedTexts(view) {
    switch (view.kind) {
      case "text":
        return view.blocks.flatMap((block) => block.lines.map(([text]) => text));
      case "tree":
        return searched(view.tree);
      case "table":
        return tableTexts(view);
      case "budget":
        return searched(atStep(view.tree, view.state?.at ?? view.at));
      case "graph":
        return view.items.map(([, label, sub]) => `${label} ${sub}`);
      case "guards":
        return view.entries.flatMap((entry) => entry.checks.map(([text]) => text));
      case "steps":
        return view.texts;
    }
  }
  var lowered = /* @__PURE__ */ new WeakMap();
  function occurrences(view, wanted) {
    const texts = lowered.get(view) ?? searchedTexts(view).map((text) => text.toLowerCase());
    lowered.set(view, texts);
    return texts.filter((text) => text.includes(wanted)).length;
  }

  // theme.js
  function followTheme(root) {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const held = new WeakRef(root);
    const apply = () => {
      const alive = held.deref();
      if (!alive) {
        system.removeEventListener("change", apply);
        body.disconnect();
      } else if (!alive.dataset.chosen) {
        alive.dataset.theme = notebookTheme() || (system.matches ? "dark" : "light");
      }
    };
    const body = new MutationObserver(apply);
    system.addEventListener("change", apply);
    body.observe(document.body, { attributes: true });
    apply();
  }
  function toggleTheme(root) {
    root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
    root.dataset.chosen = "yes";
  }
  function notebookTheme() {
    const { body } = document;
    if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false" ? "dark" : "light";
    if (body.dataset.vscodeThemeKind) {
      return body.dataset.vscodeThemeKind.includes("light") ? "light" : "dark";
    }
    const { theme } = body.dataset;
    return theme === "light" || theme === "dark" ? theme : null;
  }

  // trail.js
  var MOST = 3;
  var LONGEST_CODE = 48;
  var Trail = class {
    /** @param {Explorer} explorer */
    constructor(explorer) {
      this.explorer = explorer;
      this.codeIndex = this.indexCode(explorer);
      this.element = html("footer", { class: "lab-trail", role: "status" });
      explorer.selection.listen((lit) => this.show(lit));
      this.show(null);
    }
    /** @param {Lit} lit */
    show(lit) {
      if (!lit) {
        refill(this.element, html(
          "span",
          { class: "lab-hint" },
          say("Hover over a line or a box to highlight related code in every stage. Click to pin, click again to unpin.")
        ));
        return;
      }
      const stages = [...this.sources(lit), ...this.nodes(lit), ...this.code(lit)];
      const parts = stages.flatMap((stage, i) => [
        i ? html("span", { class: "lab-arrow-text", "aria-hidden": "true" }, "→") : null,
        this.link(stage)
      ]);
      refill(this.element, parts);
    }
    /** @param {Stage} stage */
    link({ text, pane }) {
      return html("button", {
        type: "button",
        onclick: () => this.explorer.enter(this.explorer.show(pane, true)),
        title: say("show {pane}", { pane })
      }, text);
    }
    /**
     * @param {Set<Thing>} lit
     * @returns {Stage[]}
     */
    sources(lit) {
      const { links } = this.explorer;
      const lines = [...lit].filter((t) => links.kind[t] === "source");
      if (!lines.length) return [];
      const text = lines.length === 1 ? `${shortPath(links.label[lines[0]])}  ${this.codeOf(lines[0])}` : few(lines.map((line2) => shortPath(links.label[line2])));
      return [{ text, pane: "source" }];
    }
    /**
     * The text of a source line, shortened.
     *
     * @param {Thing} thing
     */
    codeOf(thing) {
      for (const block of blocksOf(this.explorer.doc.panes.source.views[0])) {
        const line2 = block.lines.find((each) => (each[1] || []).includes(thing));
        if (line2) return line2[0].trim().slice(0, LONGEST_CODE);
      }
      return "";
    }
    /**
     * Nodes and buffers, grouped by graph.
     *
     * @param {Set<Thing>} lit
     */
    nodes(lit) {
      const { links, order } = this.explorer;
      const scopes = /* @__PURE__ */ new Map();
      for (const thing of [...lit].sort((a, b) => a - b)) {
        if (links.kind[thing] === "source") continue;
        push(scopes, `${links.kind[thing]} ${links.scope[thing]}`, links.label[thing]);
      }
      const stages = [];
      for (const [key, names] of scopes) {
        const [kind, scope] = key.split(" ");
        const pane = order.find((id) => id === scope) || order.find((id) => id === `${scope}.${kind === "buffer" ? "loops" : "graph"}`);
        if (pane) stages.push({ text: `${few(names)} (${scope.split(".").pop()})`, pane });
      }
      return stages;
    }
    /**
     * Lines of generated code.
     *
     * @param {Set<Thing>} lit
     * @returns {Stage[]}
     */
    code(lit) {
      const lines = /* @__PURE__ */ new Map();
      for (const thing of lit) {
        for (const [block, line2] of this.codeIndex.get(thing) || []) push(lines, block, line2);
      }
      const found = [...lines].sort(([a], [b]) => a.order - b.order);
      const stages = found.slice(0, MOST).map(([block, numbers]) => ({
        text: `${block.name}: ${ranges([...new Set(numbers)].sort((a, b) => a - b))}`,
        pane: block.pane
      }));
      const more = found.length - MOST;
      if (more > 0) stages.push({ text: say("{more} more kernels", { more }), pane: found[MOST][0].pane });
      return stages;
    }
    /**
     * Thing → the lines of generated code that show it, as [block, line].
     *
     * @param {Explorer} explorer
     */
    indexCode({ doc, order }) {
      const index = /* @__PURE__ */ new Map();
      let place = 0;
      for (const pane of order.filter((id) => id.endsWith(".code"))) {
        for (const block of blocksOf(doc.panes[pane].views[0])) {
          const known3 = { pane, name: block.title.split(" ")[0], order: place++ };
          block.lines.forEach((line2, i) => (line2[1] || []).forEach((thing) => {
            push(index, thing, [known3, i + 1]);
          }));
        }
      }
      return index;
    }
  };
  var blocksOf = (view) => view.kind === "text" ? view.blocks : [];
  function shortPath(label) {
    return label.slice(label.lastIndexOf("/") + 1);
  }
  function few(names) {
    const shown = [...new Set(names)];
    const more = shown.length > MOST ? say(", {more} more", { more: shown.length - MOST }) : "";
    return shown.slice(0, MOST).join(", ") + more;
  }
  function ranges(numbers) {
    const runs = [];
    for (const n of numbers) {
      const last = runs[runs.length - 1];
      if (last && last[1] === n - 1) last[1] = n;
      else runs.push([n, n]);
    }
    const shown = runs.slice(0, MOST).map(([a, b]) => a === b ? `${a}` : `${a}–${b}`);
    return shown.join(", ") + (runs.length > MOST ? ", …" : "");
  }

  // whatif.js
  var WhatIf = class {
    /**
     * @param {Explorer} explorer
     * @param {Connection} line
     */
    constructor(explorer, line2) {
      this.explorer = explorer;
      this.line = line2;
      this.changes = /* @__PURE__ */ new Map();
      this.asked = 0;
      this.lower = /* @__PURE__ */ new Map();
      this.verdict = html("span", { class: "lab-verdict", role: "status" });
      this.chips = html("span", { class: "lab-chips" });
      this.choice = this.chooser();
      const bench = this.measureButton(
        "bench",
        "bench",
        say("benchmark against eager and stock torch.compile (lab.bench)")
      );
      const changes = [
        html("span", { class: "lab-whatif-title" }, say("What if")),
        this.chips,
        this.choice,
        bench
      ];
      this.element = html(
        "div",
        { class: "lab-whatif" },
        explorer.doc.switches.length ? changes : null,
        this.measureButton(
          "step memory",
          "memory",
          say("memory of one step with eager mode, stock and inductor_lab (lab.memory)")
        ),
        this.verdict
      );
    }
    /**
     * @param {string} label
     * @param {string} show the request
     * @param {string} title
     */
    measureButton(label, show, title) {
      return html("button", {
        type: "button",
        title,
        onclick: () => this.showMore({ show }, "measuring; this also compiles with stock")
      }, say(label));
    }
    chooser() {
      const groups = this.explorer.doc.switches.map(({ title, changes }) => html("optgroup", {
        label: say(title)
      }, changes.map(([label, change, meaning]) => option(label, change, meaning))));
      groups.push(html("optgroup", { label: say("also show") }, LOWER.map(
        ([label, request, meaning]) => option(say(label), request, say(meaning))
      )));
      const select2 = html("select", {
        "aria-label": say("choose a change and recompile"),
        onchange: () => {
          const label = select2.selectedOptions[0].dataset.label ?? "";
          const chosen = JSON.parse(select2.value);
          select2.selectedIndex = 0;
          if (chosen.show) this.showLower(chosen);
          else this.add(label, chosen);
        }
      }, html("option", { value: "" }, say("choose a change…")), groups);
      return select2;
    }
    /**
     * Forbid or force a pair; repeating the choice, or choosing the opposite, removes it.
     *
     * @param {"forbid" | "force"} choice
     * @param {Pair} pair
     */
    togglePair(choice, pair) {
      const [producer, consumer, part] = pair;
      const what = `${producer} + ${consumer} (${part})`;
      const label = `${say(choice)} ${what}`;
      const opposite = `${say(choice === "force" ? "forbid" : "force")} ${what}`;
      if (this.changes.has(opposite)) this.drop(opposite);
      else if (this.changes.has(label)) this.drop(label);
      else this.add(label, { [choice]: [pair] });
    }
    /**
     * @param {string} label
     * @param {Change} change
     */
    add(label, change) {
      const [[name, value]] = Object.entries(change);
      for (const [other, old] of this.changes) {
        if (!Array.isArray(value) && name in old) this.changes.delete(other);
      }
      this.changes.set(label, change);
      this.run();
    }
    /** @param {string} label */
    drop(label) {
      this.changes.delete(label);
      this.run();
    }
    /**
     * Set the memory budget; null is the compiled budget.
     *
     * @param {number | null} budget
     */
    setBudget(budget) {
      for (const [label, change] of this.changes) {
        if ("memory_budget" in change) this.changes.delete(label);
      }
      if (budget === null) this.run();
      else this.add(`${say("memory budget")} ${Math.ceil(budget * 1e3) / 1e3}`, { memory_budget: budget });
    }
    async run() {
      const held = this.chips.querySelector(":focus");
      refill(this.chips, [...this.changes.keys()].map((label) => html("button", {
        type: "button",
        class: "lab-chip",
        title: say("remove this change"),
        "aria-label": say("remove change: {label}", { label }),
        onclick: () => this.drop(label)
      }, `${label} ×`)));
      if (held) this.choice.focus();
      const number = ++this.asked;
      if (!this.changes.size) {
        this.verdict.textContent = "";
        this.explorer.removeGroup("what if");
        this.lowerAgain();
        return;
      }
      const done = countSeconds(this.verdict, say("compiling"));
      const answer = await this.line.ask({ changes: this.merged() });
      done();
      if (number !== this.asked) return;
      this.verdict.classList.toggle("no", Boolean(answer.error));
      this.verdict.textContent = say(answer.error || answer.verdict || "");
      if (!answer.panes) return;
      this.explorer.addGroup("what if", answer.panes);
      this.lowerAgain();
    }
    /**
     * Show panes below the generated code, and update them after every change.
     *
     * @param {Request} request
     */
    async showLower(request) {
      const title = await this.showMore(request);
      if (title) this.lower.set(title, request);
    }
    async lowerAgain() {
      const number = this.asked;
      for (const request of this.lower.values()) {
        const answer = await this.line.ask({ ...request, changes: this.merged() });
        if (number !== this.asked) return;
        if (answer.title && answer.panes) this.explorer.addGroup(answer.title, answer.panes, false);
      }
    }
    /**
     * Request more panes for the changed code; returns the title of their group, null if it failed or
     * if they replace panes of the document.
     *
     * @param {Request} request
     */
    async showMore(request, doing = "compiling") {
      const number = ++this.asked;
      const done = countSeconds(this.verdict, say(doing));
      const answer = await this.line.ask({ ...request, changes: this.merged() });
      done();
      if (number !== this.asked) return null;
      this.verdict.textContent = say(answer.error || "");
      if (!answer.panes) return null;
      if (answer.title) this.explorer.addGroup(answer.title, answer.panes);
      else this.explorer.replacePanes(answer.panes);
      return answer.title || null;
    }
    merged() {
      return merged([...this.changes.values()]);
    }
  };
  var LOWER = [
    [
      "Triton ladder for cuda:90",
      { show: "ladder", target: "cuda:90" },
      "TTIR, TTGIR, LLVM IR and PTX for NVIDIA Hopper (H100)"
    ],
    [
      "Triton ladder for hip:gfx942",
      { show: "ladder", target: "hip:gfx942" },
      "TTIR, TTGIR, LLVM IR and AMDGCN for AMD MI300"
    ],
    ["assembly of the C++ kernels", { show: "assembly" }, "machine code for the CPU"]
  ];
  function option(label, value, meaning) {
    return html(
      "option",
      { value: JSON.stringify(value), title: meaning, "data-label": label },
      `${label} – ${meaning}`
    );
  }
  function merged(changes) {
    const all = {};
    for (const change of changes) {
      for (const [name, value] of Object.entries(change)) {
        const before = all[name];
        all[name] = Array.isArray(before) && Array.isArray(value) ? [...before, ...value] : value;
      }
    }
    return all;
  }

  // words.js
  var FOCUSABLE = ["BUTTON", "SELECT", "INPUT"];
  var TIP_GAP = 6;
  var Words = class {
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
      const at = (event) => this.show(
        targetOf(event).closest("[data-word]")
      );
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
      const bare = (text) => text.trim().toLowerCase().replace(/^>|\s+\d+$/g, "");
      const [name, title] = [bare(heading), bare(pane)];
      const forms = [name, name.replace(/s$/, ""), name.replace(/es$/, "")];
      const places = [...forms.map((form) => `${title} ${form}`), ...forms];
      const place = places.find((each) => Object.hasOwn(this.meanings, each));
      return place === void 0 ? "" : this.meanings[place];
    }
    /**
     * Add the meaning of its heading to an element as a tooltip, followed by its title.
     *
     * @template {HTMLElement} E
     * @param {E} element
     * @param {string} heading
     */
    explain(element2, heading, pane = "") {
      const sentence = this.meaning(heading, pane);
      if (!sentence) return element2;
      const said = [sentence, element2.title].filter(Boolean).join("\n");
      element2.removeAttribute("title");
      element2.dataset.word = said;
      element2.setAttribute("aria-description", said);
      if (!FOCUSABLE.includes(element2.tagName)) {
        element2.tabIndex = 0;
        element2.classList.add("lab-word");
      }
      return element2;
    }
    /** @param {HTMLElement | null} element */
    show(element2) {
      this.tip.hidden = !element2;
      if (!element2) return;
      this.tip.textContent = element2.dataset.word ?? "";
      if (!this.tip.isConnected) this.root.append(this.tip);
      const [box, all] = [element2.getBoundingClientRect(), this.root.getBoundingClientRect()];
      const scale = enlarged(this.root);
      const { offsetWidth: width, offsetHeight: height } = this.tip;
      const left = Math.min((box.left - all.left) / scale, all.width / scale - width - TIP_GAP);
      const below = (box.bottom - all.top) / scale + TIP_GAP;
      const above = (box.top - all.top) / scale - height - TIP_GAP;
      this.tip.style.left = `${Math.max(TIP_GAP, left)}px`;
      this.tip.style.top = `${Math.max(TIP_GAP, below + height < all.height / scale ? below : above)}px`;
    }
  };

  // explorer.js
  function drawn(view, context) {
    switch (view.kind) {
      case "text":
        return textView(view, context);
      case "graph":
        return graphView(view, context);
      case "tree":
        return treeView(view, context);
      case "table":
        return treeView({ kind: "tree", name: view.name, tree: tableTree(view) }, context);
      case "budget":
        return budgetView(view, context);
      case "guards":
        return guardsView(view, context);
      case "steps":
        return stepsView(view, context);
    }
  }
  var MOST_PANES = 4;
  function render(root, packed, channel = null) {
    const start = performance.now();
    const explorer = new Explorer(root, unpack(packed));
    performance.measure("inductor_lab: draw", { start });
    const held = new WeakRef(explorer);
    if (channel) whenLive(channel, (line2) => held.deref()?.connect(line2), () => !held.deref());
    return explorer;
  }
  var Explorer = class {
    /**
     * @param {HTMLElement} root
     * @param {Document} doc
     */
    constructor(root, doc) {
      this.root = root;
      this.doc = doc;
      speak(doc.texts);
      this.links = new Links(doc.links);
      this.selection = new Selection(this.links);
      this.words = new Words(root, doc.words);
      this.context = { links: this.links, selection: this.selection, words: this.words, whatIf: null };
      this.order = [];
      this.orderPanes();
      this.chosen = /* @__PURE__ */ new Map();
      this.slots = [];
      this.search = new Search(this);
      this.closeHelp = null;
      this.moved = () => {
      };
      this.railButtons = /* @__PURE__ */ new Map();
      this.area = html("main", { class: "lab-panes" });
      this.trail = new Trail(this);
      root.classList.add("lab-explorer");
      root.tabIndex = -1;
      keepKeys(root);
      followTheme(root);
      this.head = this.header();
      this.nav = html("nav", { class: "lab-rail", "aria-label": say("phases") });
      oneStop(this.nav, (place) => this.railButtons.get(this.order[place]));
      this.fillRail();
      refill(
        root,
        this.head,
        html("div", { class: "lab-middle" }, this.nav, resizable(this.area)),
        this.trail.element
      );
      doc.open.forEach((id) => this.addSlot(id));
      this.focused = this.slots[0];
      this.focus(this.slots[0]);
      this.selection.listen((lit, _, scroll) => this.light(lit, scroll));
      keyboard(this);
      deepLinks(this);
      const held = new WeakRef(this);
      addEventListener("beforeprint", () => held.deref()?.slots.forEach(({ view }) => view.whole?.()));
    }
    orderPanes() {
      this.order = this.doc.groups.flatMap((group) => group.panes);
    }
    /**
     * Make the explorer live: a Python process answers on this connection.
     *
     * @param {Connection} line
     */
    connect(line2) {
      if (this.context.whatIf) return;
      this.context.whatIf = new WhatIf(this, line2);
      this.head.after(this.context.whatIf.element);
      this.root.classList.add("live");
    }
    /**
     * Add panes; show the first one if they are `wanted`.
     *
     * @param {string} title
     * @param {Record<string, Pane>} panes
     */
    addGroup(title, panes, wanted = true) {
      this.removeGroup(title, false);
      const ids = Object.keys(panes);
      this.doc.groups.unshift({ title, panes: ids });
      Object.assign(this.doc.panes, panes);
      this.orderPanes();
      this.fillRail();
      const shown = this.slots.filter((slot) => ids.includes(slot.id));
      for (const slot of shown) this.fill(slot, slot.id);
      if (!shown.length && wanted) this.fill(this.slots[1] || this.slots[0], ids[0]);
      else for (const slot of this.slots) if (!shown.includes(slot)) this.fill(slot, slot.id);
    }
    /**
     * Replace panes of the document, and show the first one.
     *
     * @param {Record<string, Pane>} panes
     */
    replacePanes(panes) {
      Object.assign(this.doc.panes, panes);
      this.fillRail();
      const ids = Object.keys(panes);
      const shown = this.slots.filter((slot) => ids.includes(slot.id));
      for (const slot of shown) this.fill(slot, slot.id);
      if (!shown.length) this.fill(this.slots[1] || this.slots[0], ids[0]);
    }
    /** @param {string} title */
    removeGroup(title, settle = true) {
      const gone = this.doc.groups.find((group) => group.title === title);
      if (!gone) return;
      this.doc.groups.splice(this.doc.groups.indexOf(gone), 1);
      if (!settle) return;
      this.orderPanes();
      this.fillRail();
      for (const slot of this.slots) {
        this.fill(slot, gone.panes.includes(slot.id) ? this.doc.open[1] || this.order[0] : slot.id);
      }
    }
    header() {
      const facts = this.doc.facts.map((fact) => this.words.explain(html("button", {
        type: "button",
        class: `lab-fact ${fact.mark}`,
        title: say("show {pane}", { pane: fact.pane }),
        onclick: () => this.enter(this.show(fact.pane, true))
      }, factParts(fact)), fact.label, "fact"));
      return html(
        "header",
        { class: "lab-header" },
        html("h1", {}, this.doc.title, html("span", { class: "lab-subtitle" }, this.doc.subtitle)),
        html("div", { class: "lab-facts" }, facts),
        html(
          "div",
          { class: "lab-actions" },
          this.search.field,
          this.search.count,
          html("button", {
            type: "button",
            title: say("light or dark theme"),
            "aria-label": say("light or dark theme"),
            onclick: () => toggleTheme(this.root)
          }, "◐"),
          html("button", {
            type: "button",
            title: say("presentation mode (P)"),
            "aria-label": say("presentation mode"),
            onclick: () => togglePresenter(this.root)
          }, "A"),
          html("button", {
            type: "button",
            title: say("full screen (F)"),
            "aria-label": say("full screen"),
            hidden: !document.fullscreenEnabled,
            onclick: () => toggleFullScreen(this.root)
          }, corners()),
          html("button", {
            type: "button",
            title: say("keyboard shortcuts (?)"),
            "aria-label": say("keyboard shortcuts"),
            onclick: () => this.help()
          }, "?")
        ),
        this.search.elsewhere
      );
    }
    fillRail() {
      this.railButtons = /* @__PURE__ */ new Map();
      const groups = this.doc.groups.filter((group) => group.panes.length).map((group) => [
        group.title ? html("h2", {}, say(group.title)) : null,
        ...group.panes.map((id) => this.railButton(id))
      ]);
      refill(this.nav, groups.flat());
    }
    /** @param {string} id */
    railButton(id) {
      const pane = this.doc.panes[id];
      const button = html(
        "button",
        {
          type: "button",
          "data-pane": id,
          title: say("Shift-click to open it in another pane"),
          onclick: (event) => this.enter(event.shiftKey ? this.addSlot(id) : this.show(id))
        },
        html("span", { class: "lab-rail-title" }, say(pane.title)),
        pane.problem ? html("span", { class: "lab-problem" }, `● ${say(pane.problem)}`) : null,
        html("span", { class: "lab-rail-count" }, pane.count),
        html("span", { class: "lab-rail-time" }, seconds(pane.seconds))
      );
      this.railButtons.set(id, button);
      return this.words.explain(button, pane.title);
    }
    /**
     * Open one more slot, or reuse the last slot if there are `MOST_PANES`.
     *
     * @param {string} id
     */
    addSlot(id) {
      if (this.slots.length >= MOST_PANES) {
        this.fill(this.slots[this.slots.length - 1], id);
        return this.slots[this.slots.length - 1];
      }
      const slot = { element: html("section", { class: "lab-pane" }), view: this.viewOf(id), id };
      slot.element.addEventListener("focusin", () => this.focus(slot));
      slot.element.addEventListener("pointerdown", () => this.focus(slot));
      this.slots.push(slot);
      this.area.append(slot.element);
      this.area.dataset.count = String(this.slots.length);
      this.fill(slot, id, slot.view);
      return slot;
    }
    /** @param {Slot} slot */
    closeSlot(slot) {
      if (this.slots.length === 1) return;
      this.slots.splice(this.slots.indexOf(slot), 1);
      slot.element.remove();
      this.area.dataset.count = String(this.slots.length);
      this.enter(this.slots[0]);
    }
    /**
     * Give the keyboard focus to a slot that the user opened.
     *
     * @param {Slot} slot
     */
    enter(slot) {
      this.focus(slot);
      slot.view.element.focus({ preventScroll: true });
    }
    /** @param {Slot} slot */
    focus(slot) {
      this.focused = slot;
      for (const each of this.slots) each.element.classList.toggle("focused", each === slot);
      this.markRail();
    }
    markRail() {
      for (const [id, button] of this.railButtons) {
        const shown = this.slots.some((slot) => slot.id === id);
        button.classList.toggle("shown", shown);
        const current = this.focused?.id === id;
        button.tabIndex = current ? 0 : -1;
        if (current) button.setAttribute("aria-current", "true");
        else button.removeAttribute("aria-current");
      }
      this.moved();
    }
    /**
     * Show a pane in its slot if it is open, otherwise in the focused slot.  With `keepFirst`, the first
     * slot is not replaced.
     *
     * @param {string} id
     * @param {boolean} keepFirst
     * @param {number | null} view
     */
    show(id, keepFirst = false, view = null) {
      if (view !== null) this.chosen.set(id, view);
      const there = this.slots.find((slot2) => slot2.id === id);
      const spared = keepFirst && this.slots.length > 1 && this.focused === this.slots[0];
      const slot = there || (spared ? this.slots[1] : this.focused);
      if (!there || view !== null) this.fill(slot, id);
      this.focus(slot);
      const narrow = matchMedia("(max-width: 820px)").matches;
      if (narrow) slot.element.scrollIntoView({ block: "nearest" });
      return slot;
    }
    /** @param {string} id */
    chosenOf(id) {
      return Math.min(this.chosen.get(id) || 0, this.doc.panes[id].views.length - 1);
    }
    /** @param {string} id */
    viewOf(id) {
      return drawn(this.doc.panes[id].views[this.chosenOf(id)], this.context);
    }
    /**
     * @param {Slot} slot
     * @param {string} id
     */
    fill(slot, id, view = this.viewOf(id)) {
      const pane = this.doc.panes[id];
      const held = slot.element.querySelector(":focus");
      slot.id = id;
      slot.view = view;
      if (!view.element.hasAttribute("tabindex")) view.element.tabIndex = -1;
      slot.element.setAttribute("aria-label", this.title(id));
      slot.element.dataset.pane = id;
      const body = html(
        "div",
        { class: "lab-body" },
        pane.note ? html("p", { class: "lab-note" }, pane.note) : null,
        slot.view.above,
        slot.view.element
      );
      for (const head2 of body.querySelectorAll("th")) {
        this.words.explain(head2, head2.dataset.term || head2.textContent || "", pane.title);
      }
      const head = this.paneHead(slot, pane, this.chosenOf(id));
      refill(slot.element, head, body);
      if (held?.parentElement?.className === head.className) head.querySelector("select")?.focus();
      else if (held) view.element.focus({ preventScroll: true });
      if (slot.view.fit) slot.view.fit();
      this.markRail();
      if (this.selection.things.length) this.selection.tell(true);
    }
    /**
     * @param {Slot} slot
     * @param {Pane} pane
     * @param {number} chosen the place of the view that is shown
     */
    paneHead(slot, pane, chosen) {
      const choose = html("select", {
        "aria-label": say("content of this pane"),
        onchange: () => {
          this.fill(slot, choose.value);
        }
      }, this.order.map((id) => html(
        "option",
        { value: id, selected: id === slot.id },
        this.title(id)
      )));
      const tabs = pane.views.map((view, i) => this.words.explain(html("button", {
        type: "button",
        role: "tab",
        "aria-selected": String(i === chosen),
        tabindex: i === chosen ? 0 : -1,
        onclick: () => this.enter(this.show(slot.id, false, i))
      }, say(view.name)), view.name, pane.title));
      const row = html("div", { role: "tablist", class: "lab-tabs" }, pane.views.length > 1 ? tabs : []);
      oneStop(row, (i) => {
        this.show(slot.id, false, i);
        return slot.element.querySelectorAll("[role=tab]")[i];
      });
      const copy2 = html("button", {
        type: "button",
        title: say("copy the text of this pane"),
        "aria-label": say("copy"),
        onclick: async () => {
          await copyText(slot.view.text());
          copy2.textContent = say("copied");
          setTimeout(() => {
            copy2.textContent = say("copy");
          }, 900);
        }
      }, say("copy"));
      const close = html("button", {
        type: "button",
        title: say("close this pane"),
        "aria-label": say("close"),
        onclick: () => this.closeSlot(slot)
      }, "×");
      return html("div", { class: "lab-pane-head" }, choose, row, html("span", { class: "lab-space" }), slot.view.actions || [], copy2, close);
    }
    /**
     * The title of a pane with its group: `forward · code`.
     *
     * @param {string} id
     */
    title(id) {
      const group = this.doc.groups.find((each) => each.panes.includes(id));
      const own = say(this.doc.panes[id].title);
      return group?.title ? `${say(group.title)} · ${own}` : own;
    }
    light(lit, scroll) {
      for (const slot of this.slots) slot.view.light(lit, scroll);
      this.root.classList.toggle("has-pin", this.selection.pinned.length > 0);
    }
    help() {
      if (this.closeHelp) {
        this.closeHelp();
        return;
      }
      const before = this.root.querySelector(":focus");
      const panel = helpPanel(() => this.closeHelp?.());
      this.closeHelp = () => {
        this.closeHelp = null;
        panel.remove();
        before?.focus({ preventScroll: true });
      };
      this.root.append(panel);
      panel.focus({ preventScroll: true });
    }
  };
  function factParts({ label, value }) {
    const shown = html("b", {}, value);
    if (/^[\d,]+$/.test(value)) return [shown, ` ${say(label)}`];
    const [before, after] = say("{label}: {value}", { label: say(label), value: "\n" }).split("\n");
    return [before, shown, after];
  }
  function corners() {
    return svg(
      "svg",
      { viewBox: "0 0 12 12", width: 11, height: 11, "aria-hidden": "true" },
      svg("path", {
        d: "M1 4V1h3M8 1h3v3M11 8v3H8M4 11H1V8",
        fill: "none",
        stroke: "currentColor",
        "stroke-width": 1.5
      })
    );
  }
  function seconds(value) {
    if (value === null || value === void 0) return "";
    return value >= 1 ? `${value.toFixed(2)} s` : `${(1e3 * value).toFixed(value < 0.01 ? 1 : 0)} ms`;
  }

  // traits.js
  function shareTraits(model, explorer) {
    const { selection } = explorer;
    let { pinned } = selection;
    let shown = {};
    let isShowing = false;
    const set = (name, value) => {
      if (isEqual(model.get(name), value)) return;
      model.set(name, value);
      model.save_changes();
    };
    const showView = () => {
      const id = model.get("view");
      if (id === explorer.focused.id) return;
      if (explorer.order.includes(id)) explorer.show(id, true);
      else set("view", explorer.focused.id);
    };
    const showSelected = () => {
      const wanted = model.get("selected");
      if (isShowing || isEqual(wanted, shown)) return;
      isShowing = true;
      const isKnown = select(explorer, wanted);
      isShowing = false;
      if (isKnown) shown = wanted;
      else set("selected", shown);
    };
    explorer.moved = () => set("view", explorer.focused.id);
    const stop = selection.listen(() => {
      if (selection.pinned === pinned) return;
      pinned = selection.pinned;
      if (isShowing) return;
      shown = selectedIn(explorer);
      set("selected", shown);
    });
    model.on("change:view", showView);
    model.on("change:selected", showSelected);
    showView();
    showSelected();
    return () => {
      stop();
      explorer.moved = () => {
      };
      model.off("change:view", showView);
      model.off("change:selected", showSelected);
    };
  }
  var isEqual = (a, b) => flat(a) === flat(b);
  function flat(value) {
    const names = value !== null && typeof value === "object" ? Object.keys(value).sort() : null;
    return JSON.stringify(value, names);
  }
  function selectedIn(explorer) {
    const { selection, focused, doc, links } = explorer;
    if (!selection.pinned.length) return {};
    const stage = focused.id;
    const { views: views2 } = doc.panes[stage];
    const text = textOf(views2);
    const isText = text !== void 0 && views2[explorer.chosenOf(stage)] === text;
    const node = selection.pinned.find((thing) => links.kind[thing] !== "source");
    return {
      stage,
      ...isText && selection.line !== null ? lineAt(text, stage, selection.line) : {},
      ...node === void 0 ? {} : { node: links.label[node] }
    };
  }
  function select(explorer, wanted) {
    const { selection, doc, order, links } = explorer;
    const { stage, kernel, line: line2, node } = wanted;
    if (!stage) {
      selection.clear();
      return true;
    }
    if (!order.includes(stage)) return false;
    const { views: views2 } = doc.panes[stage];
    const text = textOf(views2);
    if (text && (kernel || line2)) {
      const at = placeOf(text, wanted);
      if (at < 0) return false;
      const { view } = explorer.show(stage, true, views2.indexOf(text));
      view.goTo?.(at + 1);
      if (!line2) selection.hold(thingsOf(text, wanted), at);
      return true;
    }
    const thing = links.named(node, stage);
    if (kernel || line2 || node && thing === void 0) return false;
    explorer.show(stage, true);
    selection.hold(thing === void 0 ? [] : [thing]);
    return true;
  }
  var textOf = (views2) => views2.find((view) => view.kind === "text");
  function kernelOf2(block, stage) {
    return stage.endsWith(".code") ? block.title.split(" ")[0] : "";
  }
  function lineAt(text, stage, place) {
    let before = 0;
    for (const block of text.blocks) {
      if (place < before + block.lines.length) {
        const kernel = kernelOf2(block, stage);
        return { ...kernel ? { kernel } : {}, line: (block.first || 1) + place - before };
      }
      before += block.lines.length;
    }
    return {};
  }
  function placeOf(text, { stage = "", kernel, line: line2 }) {
    let before = 0;
    for (const block of text.blocks) {
      const within = line2 ? line2 - (block.first || 1) : 0;
      const isHere = !kernel || kernelOf2(block, stage) === kernel;
      if (isHere && within >= 0 && within < block.lines.length) return before + within;
      before += block.lines.length;
    }
    return -1;
  }
  function thingsOf(text, { stage = "", kernel }) {
    const block = text.blocks.find((each) => kernelOf2(each, stage) === kernel);
    return [...new Set(block?.lines.flatMap((line2) => line2[1] || []))];
  }

  // tabs.js
  function renderTabs(root, documents) {
    const panels = documents.map(() => html("div", { role: "tabpanel", hidden: true }));
    const tabs = documents.map(([, , title], i) => html("button", {
      type: "button",
      role: "tab",
      onclick: () => open(i)
    }, title));
    const drawn2 = /* @__PURE__ */ new Set();
    function open(i) {
      const [packed, channel] = documents[i];
      if (!drawn2.has(i)) render(panels[i].appendChild(html("div")), packed, channel);
      drawn2.add(i);
      panels.forEach((panel, n) => {
        panel.hidden = n !== i;
      });
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
    open(documents.length - 1);
  }

  // page_entry.js
  var widget = {
    initialize({ model }) {
      announce(model);
    },
    render({ model, el }) {
      const root = document.createElement("div");
      el.append(root);
      return shareTraits(model, render(root, model.get("document"), model.get("channel")));
    }
  };
  return __toCommonJS(page_entry_exports);
})();
