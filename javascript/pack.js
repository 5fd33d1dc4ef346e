// Decodes a document packed by Python (see pack.py).

/** @import { Document, Json, Packed } from "./types.d.ts" */

/**
 * The decoded document.  Texts and lists may be shared between several places, and so may objects
 * that contain only texts.
 *
 * @param {Packed} packed
 */
export function unpack({ shared, data }) {
  /** @type {Json[]} */
  const values = [];
  /** @type {(value: Json) => Json} */
  const made = (value) => {
    if (typeof value === "string") {
      if (value[0] !== "~") return value;
      return value[1] === "~" ? value.slice(1) : values[parseInt(value.slice(1), 36)];
    }
    if (Array.isArray(value)) return list(value);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, made(inner)]));
  };
  /** @type {(value: Json[]) => Json} */
  const list = (value) => {
    const first = typeof value[0] === "string" ? value[0] : "";
    if (first === "~|") return value.slice(1).map(made).join("\n");
    if (first === "~#") return form(value);
    if (first === "~*") return runs(value);
    if (!first.startsWith("~:")) return value.map(made);
    const names = /** @type {string[]} */ (values[parseInt(first.slice(2), 36)]);
    return Object.fromEntries(names.map((name, i) => [name, made(value[i + 1])]));
  };
  /** @type {(value: Json[]) => string} */
  const form = ([, text, ...numbers]) => {
    let at = 0;
    return String(made(text)).replace(/~/g, () => String(numbers[at++]));
  };
  /** @type {(value: Json[]) => Json[]} */
  const runs = (value) => value.slice(1).flatMap((inner, i) => (
    i % 2 ? [] : Array.from({ length: Number(value[i + 2]) }, () => made(inner))));
  for (const value of shared) values.push(made(value));
  return /** @type {Document} */ (/** @type {unknown} */ (made(data)));
}
