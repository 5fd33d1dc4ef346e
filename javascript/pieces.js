// Work started by a key press, in pieces: quick steps run at once, the rest is cancelled by the next
// key press.

export const PATIENCE = 25;
/** A step that yields this lets the browser update the page, even if the step was quick. */
export const REST = 0;
/** A step that yields this waits until no key has been pressed for this many milliseconds. */
export const PAUSE = 250;

export class Pieces {
  /** `now` is the clock; `later` runs a function after the browser has updated the page. */
  constructor(
    now = () => performance.now(),
    later = (/** @type {() => void} */ next, /** @type {number} */ wait) => {
      setTimeout(next, wait);
    },
  ) {
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
      const until = this.now() + PATIENCE;
      do {
        const { done, value } = steps.next();
        if (done) return;
        if (value !== undefined) return this.later(go, value);
      } while (this.now() < until);
      this.later(go, REST);
    };
    go();
  }
}

/**
 * Call `change` for each value, `size` values per step.
 *
 * @template T
 * @param {T[]} values
 * @param {(value: T) => void} change
 */
export function* inSteps(values, change, size = 100) {
  for (let start = 0; start < values.length; start += size) {
    values.slice(start, start + size).forEach(change);
    yield;
  }
}
