// Texts in the language of the document.  The English text is the key: see texts.toml.

/** @type {Record<string, string>} */
let spokenTexts = {};

/**
 * Use the texts of a document from now on; without them, texts are English.
 *
 * @param {Record<string, string> | undefined} texts
 */
export function speak(texts) {
  spokenTexts = texts || {};
}

/** A text in the current language, with `{name}` replaced by values; texts without a translation are
 * not changed.
 *
 * @param {string} text
 * @param {Record<string, unknown> | null} values
 */
export function say(text, values = null) {
  const said = Object.hasOwn(spokenTexts, text) ? spokenTexts[text] : text;
  if (values === null) return said;
  return said.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
}
