// From a file or an output to the documents of its explorers, as JSON texts.

import { say } from "./say.js";
import { unzipped } from "./unzip.js";

/** @import { Language, MimeData, Modules } from "./jupyterlab.d.ts" */

const FORMAT = "inductor_lab explorer";
const VERSION = 2;
const MB = 1 << 20;
const LARGEST_FILE = 64 * MB;
const LARGEST_DOCUMENT = 256 * MB;

/**
 * The explorer of a saved compilation.
 *
 * @param {string} text
 * @param {(text: string) => Promise<MimeData | { error: string }>} convert asks Python
 * @returns {Promise<MimeData>}
 */
export async function converted(text, convert) {
  if (text.length > LARGEST_FILE) throw tooLarge(text.length, LARGEST_FILE);
  const answer = await convert(text);
  if ("error" in answer) throw new Error(answer.error);
  return answer;
}

/**
 * The answer of the Jupyter server for the text of a file (server_extension.py).
 *
 * @param {string} text
 * @param {Language} language of the explorer
 * @param {Modules["ServerConnection"]} server
 */
export async function convertedByServer(text, language, server) {
  const settings = server.makeSettings();
  const url = `${settings.baseUrl}inductor-lab/explorer?language=${language}`;
  const response = await server.makeRequest(url, { method: "POST", body: text }, settings);
  if (!response.ok) {
    const { status } = response;
    throw new Error(`${say("The Jupyter server did not open this file (HTTP {status}).", { status })}\n`
      + say("Is inductor_lab installed in the environment that runs JupyterLab?"));
  }
  return response.json();
}

/**
 * The documents in the data of an output; usually it has one.
 *
 * @param {unknown} data
 */
export async function documentTexts(data) {
  const { format, version, gzip } = /** @type {Partial<MimeData>} */ (data ?? {});
  const all = Array.isArray(gzip) ? gzip : [gzip];
  const isText = all.length > 0 && all.every((each) => typeof each === "string");
  if (format !== FORMAT || typeof version !== "number" || !isText) {
    throw new Error(say("This output is not an explorer of inductor_lab, or it is damaged."));
  }
  if (version > VERSION) {
    throw new Error(`${say("This output is from a newer version of inductor_lab.")}\n`
      + say("Upgrade inductor_lab in the environment that runs JupyterLab."));
  }
  if (version < VERSION) {
    throw new Error(`${say("This output is from an older version of inductor_lab.")}\n`
      + say("Run its cell again."));
  }
  /** @type {string[]} */
  const texts = [];
  let size = 0;
  for (const each of all) {
    try {
      texts.push(await unzipped(each, LARGEST_DOCUMENT - size));
    } catch (error) {
      throw new Error(say("This output is damaged: {error}", { error }));
    }
    size += texts[texts.length - 1].length;
    if (size > LARGEST_DOCUMENT) throw tooLarge(size, LARGEST_DOCUMENT);
  }
  return texts;
}

/**
 * @param {number} size
 * @param {number} largest
 */
function tooLarge(size, largest) {
  const [n, most] = [Math.floor(size / MB), largest / MB];
  return new Error(say("Too large for the explorer: more than {n} MB; the limit is {most} MB.", { n, most }));
}
