// Files and outputs as the JupyterLab extension reads them: a document, or a sentence.

import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { speak } from "../../javascript/say.js";
import { converted, convertedByServer, documentTexts } from "../../javascript/mime.js";

const MB = 1 << 20;
const dataOf = (text, more = {}) => ({
  format: "inductor_lab explorer", version: 2, gzip: gzipSync(text).toString("base64"), ...more,
});

/** A server that answers each request so. */
const serverOf = (answer) => (text) => convertedByServer(text, "en", {
  makeSettings: () => ({ baseUrl: "http://here/" }),
  makeRequest: async (url, init) => {
    assert.equal(url, "http://here/inductor-lab/explorer?language=en");
    assert.deepEqual(init, { method: "POST", body: "text" });
    return answer;
  },
});

test("the data of an output are its documents", async () => {
  assert.deepEqual(await documentTexts(dataOf("{}")), ["{}"]);
  assert.deepEqual(await documentTexts(dataOf("\u00e9\u{1f600}")), ["\u00e9\u{1f600}"]);
  const several = ["{}", "[]"].map((text) => dataOf(text).gzip);
  assert.deepEqual(await documentTexts(dataOf("", { gzip: several })), ["{}", "[]"]);
});

test("any other output is a sentence", async () => {
  for (const data of [null, undefined, "text", [], {}, dataOf("", { format: "x" }), dataOf("", { gzip: 1 }),
    dataOf("", { gzip: [] }), dataOf("", { gzip: ["", 1] })]) {
    await assert.rejects(documentTexts(data), /^Error: This output is not an explorer/);
  }
  await assert.rejects(documentTexts(dataOf("", { version: 3 })), /from a newer version/);
  await assert.rejects(documentTexts(dataOf("", { version: 1 })), /from an older version/);
  for (const gzip of ["no base64!", "AAAA", dataOf("x".repeat(99)).gzip.slice(0, 20)]) {
    await assert.rejects(documentTexts(dataOf("", { gzip })), /^Error: This output is damaged/);
  }
});

test("a document that is too large is not decompressed to its end", async () => {
  const data = dataOf(Buffer.alloc(300 * MB, " "));
  await assert.rejects(documentTexts(data), /Too large for the explorer: more than 256 MB/);
  const half = dataOf(Buffer.alloc(150 * MB, " ")).gzip;
  const both = dataOf("", { gzip: [half, half] });
  await assert.rejects(documentTexts(both), /Too large for the explorer: more than 256 MB/);
});

test("a file that is too large is not sent", async () => {
  const file = " ".repeat(64 * MB + 1);
  await assert.rejects(converted(file, serverOf(null)), /Too large for the explorer: more than 64 MB/);
});

test("the server answers with the data, or with a sentence", async () => {
  const data = dataOf("{}");
  assert.deepEqual(await converted("text", serverOf({ ok: true, json: async () => data })), data);
  const said = { ok: true, json: async () => ({ error: "This file is damaged" }) };
  await assert.rejects(converted("text", serverOf(said)), /^Error: This file is damaged$/);
  await assert.rejects(converted("text", serverOf({ ok: false, status: 404 })), /HTTP 404/);
});

test("sentences are in the language that is set", async () => {
  speak({ "Run its cell again.": "AGAIN" });
  await assert.rejects(documentTexts(dataOf("", { version: 1 })), /older version.*\nAGAIN$/);
  speak({});
});
