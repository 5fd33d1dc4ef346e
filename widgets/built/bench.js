// Made by `npm run build` in javascript, from sources 0534bc0932f4b1e5.
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

  // tree.js
  var HTML = html;
  var SVG2 = svg;
  function build(node, each = () => {
  }, make = HTML) {
    const [tag, attributes] = node;
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

  // debug.js
  function steps(model, root) {
    const draw = () => root.replaceChildren(build(model.get("tree")));
    const ask = (event) => {
      const button = targetOf(event).closest("[data-do]");
      if (button) model.send({ do: button.dataset.do });
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
  var stepsWidget = {
    render: ({ model, el }) => steps(model, el)
  };
  return __toCommonJS(bench_entry_exports);
})();
