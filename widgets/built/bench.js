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

  // bench_entry.js
  var bench_entry_exports = {};
  __export(bench_entry_exports, {
    addButtons: () => addButtons,
    benchWidget: () => benchWidget,
    choiceWidget: () => choiceWidget,
    stepsInPage: () => stepsInPage,
    stepsWidget: () => stepsWidget
  });

  // dom.js
  var SVG = "http://www.w3.org/2000/svg";
  function html(tag, attributes, ...children) {
    return furnish(document.createElement(tag), attributes, children);
  }
  function svg(tag, attributes, ...children) {
    return furnish(document.createElementNS(SVG, tag), attributes, children);
  }
  function furnish(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === void 0 || value === false) continue;
      if (typeof value === "function") {
        element.addEventListener(name.slice(2), value);
      } else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter(isThere));
    return element;
  }
  var isThere = (child) => child !== null && child !== void 0 && child !== false && child !== "";
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
  function notebookTheme() {
    const { body } = document;
    if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false" ? "dark" : "light";
    if (body.dataset.vscodeThemeKind) {
      return body.dataset.vscodeThemeKind.includes("light") ? "light" : "dark";
    }
    const { theme } = body.dataset;
    return theme === "light" || theme === "dark" ? theme : null;
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
    const element = inside(tag, attributes);
    if (!("hidden" in attributes)) fill(element, node, each, inside);
    each(element, node);
    return element;
  }
  function fill(element, node, each, make = HTML) {
    element.append(...childrenOf(node).map((child) => typeof child === "string" ? child : build(child, each, make)));
  }
  var childrenOf = ([, , ...children]) => children;

  // bench.js
  function addButtons(root) {
    const texts = root.querySelectorAll(".lab-markdown");
    for (const text of texts) {
      const { copy = "", copied = "" } = text.dataset;
      const button = html("button", {
        type: "button",
        onclick: async () => {
          await copyText(text.textContent || "");
          button.textContent = copied;
          setTimeout(() => {
            button.textContent = copy;
          }, 1500);
        }
      }, copy);
      text.closest("details")?.before(button);
    }
  }
  function follow(model, root) {
    followTheme(root);
    let shown = performance.now();
    const draw = () => {
      root.replaceChildren(build(model.get("tree")));
      shown = performance.now();
    };
    const count = () => {
      const label = root.querySelector(".lab-since");
      if (!label) return;
      const seconds = Number(label.dataset.since) + (performance.now() - shown) / 1e3;
      label.textContent = `${seconds.toFixed(1)} s`;
    };
    model.on("change:tree", draw);
    draw();
    const clock = setInterval(count, 100);
    return () => {
      clearInterval(clock);
      model.off("change:tree", draw);
    };
  }
  function choose(model, root) {
    followTheme(root);
    const places = () => [...root.querySelectorAll("[data-select], [data-view]")];
    const draw = () => {
      const held = places().findIndex((place) => place.matches(":focus"));
      root.replaceChildren(build(model.get("tree")));
      addButtons(root);
      places()[held]?.focus({ preventScroll: true });
    };
    const set = (event) => {
      const place = targetOf(event).closest("[data-select], [data-view]");
      if (!place) return;
      const { select, view } = place.dataset;
      if (view) model.set("view", view);
      else model.set("selected", JSON.parse(select ?? "{}"));
      model.save_changes();
    };
    const enter = (event) => {
      if (event.key === "Enter" && targetOf(event).matches("tr")) set(event);
    };
    root.addEventListener("click", set);
    root.addEventListener("keydown", enter);
    model.on("change:tree", draw);
    draw();
    return () => {
      root.removeEventListener("click", set);
      root.removeEventListener("keydown", enter);
      model.off("change:tree", draw);
    };
  }

  // live.js
  var page = globalThis;
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
      const line = channels().get(channel);
      if (isGone()) document.removeEventListener(ARRIVED, look);
      if (!line || isGone()) return;
      document.removeEventListener(ARRIVED, look);
      connect(line);
    };
    document.addEventListener(ARRIVED, look);
    look();
  }
  function channels() {
    page[CHANNELS] ??= /* @__PURE__ */ new Map();
    return page[CHANNELS];
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

  // debug.js
  function stepsInPage(root, channel, texts) {
    const held = new WeakRef(root);
    speak(texts);
    whenLive(channel, (line) => {
      const here = held.deref();
      if (!here) return;
      steps(line.model, here, async (word) => {
        const { error } = await line.ask({ do: word });
        if (!error) return;
        for (const button of here.querySelectorAll("[data-do]")) button.remove();
        here.append(html("p", { class: "lab-machine", role: "alert" }, say(error)));
      });
    }, () => !held.deref());
  }
  function steps(model, root, send = (word) => model.send({ do: word })) {
    followTheme(root);
    const draw = () => {
      const held = root.querySelector("[data-do]:focus");
      root.replaceChildren(build(model.get("tree")));
      const buttons = [...root.querySelectorAll("[data-do]")];
      if (held) (buttons.find((each) => each.dataset.do === held.dataset.do) || buttons[0])?.focus();
    };
    const ask = (event) => {
      const button = targetOf(event).closest("[data-do]");
      if (button?.dataset.do) send(button.dataset.do);
    };
    root.addEventListener("click", ask);
    model.on("change:tree", draw);
    draw();
    return () => {
      root.removeEventListener("click", ask);
      model.off("change:tree", draw);
    };
  }

  // bench_entry.js
  var benchWidget = {
    render: ({ model, el }) => follow(model, el)
  };
  var choiceWidget = {
    render: ({ model, el }) => choose(model, el)
  };
  var stepsWidget = {
    initialize({ model }) {
      announce(model);
    },
    render: ({ model, el }) => steps(model, el)
  };
  return __toCommonJS(bench_entry_exports);
})();
