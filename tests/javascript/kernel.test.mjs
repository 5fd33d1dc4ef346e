// A kernel of JupyterLite opens files: one is started, used for all files, and replaced when it is gone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { convertedByKernel } from "../../javascript/kernel.js";

const MIME_TYPE = "application/vnd.inductor-lab+json";

/** Services whose kernels answer so; `kernels` are those that were started. */
function servicesOf(answer, status = { status: "ok" }) {
  const kernels = [];
  const startNew = async ({ name }) => {
    const kernel = {
      name, ran: [],
      disposed: { connect(listener) { kernel.dispose = listener; } },
      requestExecute({ code }) {
        kernel.ran.push(code);
        const asked = {};
        asked.done = (async () => {
          await null;
          asked.onIOPub({ content: { execution_state: "busy" } });
          if (answer) asked.onIOPub({ content: { data: { [MIME_TYPE]: answer } } });
          return { content: status };
        })();
        return asked;
      },
    };
    kernels.push(kernel);
    return kernel;
  };
  return { started: kernels, kernels: { startNew }, kernelspecs: { ready: null, specs: { default: "python" } } };
}

test("one kernel opens all files, and another one when it is gone", async () => {
  const services = servicesOf({ gzip: "AA" });
  assert.deepEqual(await convertedByKernel('{"a": "\\n"}', "zh", services), { gzip: "AA" });
  await convertedByKernel("{}", "en", services);
  const [{ name, ran, dispose }] = services.started;
  assert.equal(services.started.length, 1);
  assert.equal(name, "python");
  assert.match(ran[0], /\ndisplay_explorer\("\{\\"a\\": \\"\\\\n\\"\}", "zh"\)$/);
  dispose();
  await convertedByKernel("{}", "en", services);
  assert.equal(services.started.length, 2);
  services.started[1].dispose();
});

test("an error of the kernel is a sentence", async () => {
  const status = { status: "error", ename: "ModuleNotFoundError", evalue: "No module named 'inductor_lab'" };
  const services = servicesOf(null, status);
  await assert.rejects(convertedByKernel("{}", "en", services), /did not open this file: ModuleNotFoundError: No/);
  services.started[0].dispose();
});

test("a kernel that does not start is asked for again", async () => {
  const services = servicesOf({ gzip: "AA" });
  const failing = { ...services, kernels: { startNew: async () => { throw new Error("no kernel"); } } };
  await assert.rejects(convertedByKernel("{}", "en", failing), /^Error: no kernel$/);
  assert.deepEqual(await convertedByKernel("{}", "en", services), { gzip: "AA" });
});
