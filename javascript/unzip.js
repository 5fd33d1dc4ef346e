// Decompress the documents that Python embeds in pages and outputs (widgets/compressed.py).

/**
 * The text of gzip data in base64, up to a little more than `most` characters.
 *
 * @param {string} base64
 */
export async function unzipped(base64, most = Infinity) {
  const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const parts = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const reader = parts.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (text.length <= most) {
    const { done, value } = await reader.read();
    if (done) return text;
    text += value;
  }
  await reader.cancel();
  return text;
}
