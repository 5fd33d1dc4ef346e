// Work that a key press asks for, in pieces: what is quick is done at once, and the rest gives way to
// the next key.

export const PATIENCE = 25;
/** A step that yields this lets the page have its turn, however quick it was. */
export const REST = 0;
/** A step that yields this waits until no key was pressed for so many milliseconds. */
export const PAUSE = 250;

export class Pieces {
  /** `now` and `later` are the clock, and what runs a function when the page has had its turn. */
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
   * Take the steps of an iterator; those of an earlier one that are not done yet are left out.  A
   * step that yields a number has the page wait for so many milliseconds.
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
 * Call `change` for each value, `size` of them in a step.
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
