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

  // line_entry.js
  var line_entry_exports = {};
  __export(line_entry_exports, {
    Line: () => Line,
    widget: () => widget
  });

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
  function channels() {
    page[CHANNELS] ??= /* @__PURE__ */ new Map();
    return page[CHANNELS];
  }

  // line_entry.js
  var widget = {
    initialize({ model }) {
      announce(model);
    }
  };
  return __toCommonJS(line_entry_exports);
})();
