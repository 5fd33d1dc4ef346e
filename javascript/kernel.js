// Where there is no Jupyter server, in JupyterLite, a Python kernel converts saved compilations.

import { say } from "./say.js";

/** @import { Kernel, Language, Services } from "./jupyterlab.d.ts" */

const MIME_TYPE = "application/vnd.inductor-lab+json";

/** @type {Promise<Kernel> | null} the kernel for all files, while it runs */
let kernel = null;

/** Is this JupyterLite?  Its page says where its files are. */
export function isWithoutServer() {
  const page = document.getElementById("jupyter-config-data");
  return page !== null && "jupyterLiteRoot" in page.dataset;
}

/**
 * The answer of a kernel for the text of a file (open_in_kernel.py).
 *
 * @param {string} text
 * @param {Language} language of the explorer
 * @param {Services} services
 */
export async function convertedByKernel(text, language, services) {
  kernel ??= started(services);
  kernel.catch(forget);
  const program = "from inductor_lab.widgets.open_in_kernel import display_explorer\n"
    + `display_explorer(${JSON.stringify(text)}, "${language}")`;
  const asked = (await kernel).requestExecute({ code: program, store_history: false });
  /** @type {any} */
  let answer = null;
  asked.onIOPub = ({ content }) => { answer ??= content.data?.[MIME_TYPE]; };
  const { content } = await asked.done;
  if (answer) return answer;
  const error = content.status === "error" ? `${content.ename}: ${content.evalue}` : content.status;
  throw new Error(say("The Python kernel did not open this file: {error}", { error }));
}

/** @param {Services} services */
async function started({ kernels, kernelspecs }) {
  await kernelspecs.ready;
  const found = await kernels.startNew({ name: kernelspecs.specs?.default });
  found.disposed.connect(forget);
  return found;
}

function forget() {
  kernel = null;
}
