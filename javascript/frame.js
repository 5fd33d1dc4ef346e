// A frame that draws documents of unknown origin.  The sandbox gives the frame an origin of its own,
// and its policy runs the script of the explorer and no other, as in the page of a report.

import { html } from "./dom.js";
import { say } from "./say.js";

/** @import { Sent } from "./jupyterlab.d.ts" */
/** @import { Document } from "./sent.d.ts" */

/**
 * @param {{ script: string, style: string }} page the texts of widgets/built/page.js and explorer.css
 * @param {string[]} texts documents (see model.py) as JSON; several are drawn in tabs
 */
export function framed({ script, style }, texts) {
  const element = html("iframe", {
    title: say("inductor_lab explorer"),
    sandbox: "allow-scripts allow-downloads",
    allow: "clipboard-write *; fullscreen *",
    style: "display:block;width:100%;height:100%;border:0",
    srcdoc: pageText(script, style),
  });
  const send = (/** @type {Sent} */ sent) => element.contentWindow?.postMessage(sent, "*");
  // a frame that is moved loads again
  const damaged = say("This explorer is damaged and cannot be shown:");
  element.addEventListener("load", () => send({ light: isLight(), texts, damaged }));
  const theme = new MutationObserver(() => send({ light: isLight() }));
  theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
  return { element, dispose: () => theme.disconnect() };
}

const isLight = () => document.body.dataset.jpThemeLight !== "false";

/**
 * The page of the frame; its policy is that of widgets/page.py, with a nonce.
 *
 * @param {string} script
 * @param {string} style
 */
function pageText(script, style) {
  const nonce = crypto.getRandomValues(new Uint32Array(4)).join("");
  const policy = `default-src 'none'; script-src 'nonce-${nonce}'; style-src 'unsafe-inline'; img-src data:`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<title>inductor_lab explorer</title>
<style>
body { margin: 0; font: 14px system-ui, sans-serif; background: #ffffff; color: #1b1f24 }
body[data-jp-theme-light="false"] { background: #0d1117; color: #e6edf3 }
.lab-failed { margin: 16px }
.lab-explorers { --above: 36px }
.lab-explorers > .lab-explorer-tabs { box-sizing: border-box; height: var(--above); padding: 5px 8px; flex-wrap: nowrap; overflow-x: auto; white-space: nowrap }
</style>
<style>${style}</style>
</head>
<body>
<script nonce="${nonce}">${script}
(${listen})(inductorLab);</script>
</body>
</html>`;
}

/**
 * Runs in the frame, as text: so it uses nothing but its argument.
 *
 * @param {typeof import("./page_entry.js")} explorer
 */
function listen({ render, tabbed }) {
  let damaged = "";
  const attempt = (/** @type {HTMLElement} */ root, /** @type {() => void} */ draw) => {
    try {
      draw();
    } catch (error) {
      root.className = "lab-failed";
      root.setAttribute("role", "alert");
      root.textContent = `${damaged} ${error}`;
    }
  };
  const show = (/** @type {HTMLElement} */ root, /** @type {Document} */ doc) => attempt(root, () => {
    root.className = "lab-page";
    render(root, doc);
    document.documentElement.lang = doc.language === "zh" ? "zh-CN" : "en";
  });
  addEventListener("message", ({ data, source }) => {
    if (source !== parent) return;
    document.body.dataset.jpThemeLight = String(data.light);
    if (!data.texts) return;
    damaged = data.damaged;
    const root = document.createElement("div");
    document.body.replaceChildren(root);
    attempt(root, () => {
      /** @type {Document[]} */
      const docs = data.texts.map((/** @type {string} */ text) => JSON.parse(text));
      if (docs.length === 1) show(root, docs[0]);
      else tabbed(root, docs.map(({ title }) => title), (place, i) => show(place, docs[i]));
    });
  });
}
