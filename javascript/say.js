// Texts in the language that a document asks for.  The English text is the key: see texts.toml.

/** @type {Record<string, string>} */
let spokenTexts = {};

/**
 * From now on, texts come from the table of a document; without one they stay English.
 *
 * @param {Record<string, string> | undefined} texts
 */
export function speak(texts) {
  spokenTexts = texts || {};
}

/** A text in the language that is spoken, with `{name}` replaced by values; what the table does not
 * have stays as it is.
 *
 * @param {string} text
 * @param {Record<string, unknown> | null} values
 */
export function say(text, values = null) {
  const said = Object.hasOwn(spokenTexts, text) ? spokenTexts[text] : text;
  if (values === null) return said;
  return said.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}
