// The line between an explorer and the Python process that compiled what it shows.
//
// A widget model may arrive before or after the explorer is drawn, and from another module: both
// meet by the name of their channel in one map that belongs to the page.

const CHANNELS = Symbol.for("inductor_lab.channels");
const ARRIVED = "inductor_lab.arrived";
const PATIENCE = 120000;

/** Requests to Python and their answers, through the messages of a widget model. */
export class Line {
  constructor(model) {
    this.model = model;
    this.waiting = new Map();
    this.count = 0;
    model.on("msg:custom", (answer) => {
      const done = this.waiting.get(answer.id);
      this.waiting.delete(answer.id);
      if (done) done(answer);
    });
  }

  /** Promises the answer to `request`: `{error}` if it failed or nobody answers. */
  ask(request) {
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

/** Python made a model: whoever draws its channel may talk to it. */
export function announce(model) {
  channels().set(model.get("channel"), new Line(model));
  document.dispatchEvent(new CustomEvent(ARRIVED));
}

/** Call `connect(line)` as soon as the model of a channel is there, which may be never. */
export function whenLive(channel, connect) {
  const look = () => {
    const line = channels().get(channel);
    if (!line) return;
    document.removeEventListener(ARRIVED, look);
    connect(line);
  };
  document.addEventListener(ARRIVED, look);
  look();
}

function channels() {
  if (!globalThis[CHANNELS]) globalThis[CHANNELS] = new Map();
  return globalThis[CHANNELS];
}
