// The connection between an explorer and the Python process that compiled its code.
//
// A widget model may arrive before or after the explorer is drawn, and from another module.  One map
// of the page, from channel names to connections, brings the two together.

/** @import { Answer, Model, Request } from "./types.d.ts" */

/** @type {Record<symbol, Map<string, Line> | undefined>} */
const page = globalThis;
const CHANNELS = Symbol.for("inductor_lab.channels");
const ARRIVED = "inductor_lab.arrived";
const PATIENCE = 300000;
const GONE = ["dead", "terminating", "restarting", "autorestarting"];
const STOPPED = "The kernel that compiled this has stopped. Run the cell again.";

/** Requests to Python and their answers, sent as messages of a widget model. */
export class Line {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    /** @type {Map<string, (answer: Answer) => void>} */
    this.waiting = new Map();
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
}

/**
 * The kernel of a widget, if the notebook's widget manager exposes it.
 *
 * @param {Model} model
 */
function kernelOf(model) {
  const manager = model.widget_manager;
  return manager?.kernel || manager?.context?.sessionContext?.session?.kernel;
}

/**
 * Register the connection of a new model under its channel.
 *
 * @param {Model} model
 */
export function announce(model) {
  channels().set(model.get("channel"), new Line(model));
  document.dispatchEvent(new CustomEvent(ARRIVED));
}

/**
 * Call `connect(line)` as soon as the model of a channel exists; stop waiting when `isGone()`.
 *
 * @param {string} channel
 * @param {(line: Line) => void} connect
 */
export function whenLive(channel, connect, isGone = () => false) {
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
  page[CHANNELS] ??= new Map();
  return page[CHANNELS];
}
