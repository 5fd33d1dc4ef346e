// Made by `npm run build` in javascript, from sources f34ed2fe34b0c641.
"use strict";
(() => {
  // dom.js
  function html(tag, attributes, ...children) {
    return furnish(document.createElement(tag), attributes, children);
  }
  function furnish(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === null || value === void 0 || value === false) continue;
      if (typeof value === "function") {
        element.addEventListener(name.slice(2), value);
      } else element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children.flat().filter(isThere));
    return element;
  }
  function refill(element, ...children) {
    element.replaceChildren(...children.flat().filter(isThere));
  }
  var isThere = (child) => child !== null && child !== void 0 && child !== false && child !== "";

  // frame.js
  function framed({ script, style }, text) {
    const element = html("iframe", {
      title: "inductor_lab explorer",
      sandbox: "allow-scripts allow-downloads",
      allow: "clipboard-write *; fullscreen *",
      style: "display:block;width:100%;height:100%;border:0",
      srcdoc: pageText(script, style)
    });
    const send = (sent) => element.contentWindow?.postMessage(sent, "*");
    element.addEventListener("load", () => send({ light: isLight(), text }));
    const theme = new MutationObserver(() => send({ light: isLight() }));
    theme.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    return { element, dispose: () => theme.disconnect() };
  }
  var isLight = () => document.body.dataset.jpThemeLight !== "false";
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
</style>
<style>${style}</style>
</head>
<body>
<script nonce="${nonce}">${script}
(${listen})(inductorLab);<\/script>
</body>
</html>`;
  }
  function listen({ render }) {
    addEventListener("message", ({ data, source }) => {
      if (source !== parent) return;
      document.body.dataset.jpThemeLight = String(data.light);
      if (!data.text) return;
      const root = document.createElement("div");
      root.className = "lab-page";
      document.body.replaceChildren(root);
      try {
        document.documentElement.lang = render(root, JSON.parse(data.text)).doc.language || "en";
      } catch (error) {
        root.className = "lab-failed";
        root.setAttribute("role", "alert");
        root.textContent = `This explorer is damaged and cannot be shown: ${error}`;
      }
    });
  }

  // mime.js
  var FORMAT = "inductor_lab explorer";
  var VERSION = 1;
  var MB = 1 << 20;
  var LARGEST_FILE = 64 * MB;
  var LARGEST_DOCUMENT = 256 * MB;
  async function converted(text, server) {
    if (text.length > LARGEST_FILE) throw tooLarge("This file", text.length, LARGEST_FILE);
    const settings = server.makeSettings();
    const url = `${settings.baseUrl}inductor-lab/explorer`;
    const response = await server.makeRequest(url, { method: "POST", body: text }, settings);
    if (!response.ok) {
      throw new Error(`The Jupyter server did not open this file (HTTP ${response.status}). Is inductor_lab installed in the environment that runs JupyterLab?`);
    }
    const answer = await response.json();
    if (answer.error) throw new Error(answer.error);
    return answer;
  }
  async function documentText(data) {
    const { format, version, gzip } = data ?? {};
    if (format !== FORMAT || typeof version !== "number" || typeof gzip !== "string") {
      throw new Error("This output is not an explorer of inductor_lab, or it is damaged.");
    }
    if (version > VERSION) {
      throw new Error("This output is from a newer version of inductor_lab. Upgrade inductor_lab in the environment that runs JupyterLab.");
    }
    let text = "";
    try {
      text = await unzipped(gzip);
    } catch (error) {
      throw new Error(`This output is damaged: ${error}`);
    }
    if (text.length > LARGEST_DOCUMENT) throw tooLarge("This output", text.length, LARGEST_DOCUMENT);
    return text;
  }
  async function unzipped(base64) {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    const parts = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const reader = parts.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    while (text.length <= LARGEST_DOCUMENT) {
      const { done, value } = await reader.read();
      if (done) return text;
      text += value;
    }
    await reader.cancel();
    return text;
  }
  function tooLarge(what, size, largest) {
    return new Error(`${what} is too large for the explorer: more than ${Math.floor(size / MB)} MB, and the limit is ${largest / MB} MB.`);
  }

  // jupyterlab_entry.js
  var NAME = "inductor-lab";
  var MIME_TYPE = "application/vnd.inductor-lab+json";
  var SHARED = ["@lumino/widgets", "@jupyterlab/rendermime", "@jupyterlab/services"];
  var BEFORE_HTML = 40;
  var HEIGHT = "680px";
  var ICON = '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><g class="jp-icon3" fill="#616161"><rect x="1" y="2" width="5" height="4" rx="1"/><rect x="1" y="10" width="5" height="4" rx="1"/><rect x="10" y="5" width="5" height="6" rx="1"/><path d="M6 3.5h2.5V7H10v2H8.5v3.5H6v-1.2h1.4V4.7H6z"/></g></svg>';
  var folder = new URL(".", document.currentScript.src);
  var page = null;
  function explorerPage() {
    const read = async (name) => {
      const response = await fetch(new URL(name, folder), { cache: "no-cache" });
      if (!response.ok) throw new Error(`The explorer is not installed: HTTP ${response.status} for ${name}`);
      return response.text();
    };
    page ??= Promise.all([read("page.js"), read("explorer.css")]).then(([script, style]) => ({ script, style }));
    page.catch(() => {
      page = null;
    });
    return page;
  }
  function explorerWidget({ Widget, PanelLayout, RenderedHTML, ServerConnection }) {
    return class Explorer extends Widget {
      /** @param {RendererOptions} options */
      constructor(options) {
        super();
        this.options = options;
        this.shown = null;
      }
      /**
       * Show the text of a file, or the data of an output.  An output that the user trusts is shown as its
       * HTML, whose explorer the kernel can answer.
       *
       * @param {MimeModel} model
       */
      async renderModel(model) {
        const data = model.data[MIME_TYPE];
        this.shown?.dispose();
        this.shown = null;
        if (model.trusted && "text/html" in model.data) {
          await this.showHtml(model);
          return;
        }
        const isFile = Boolean(this.parent?.hasClass("jp-MimeDocument"));
        try {
          if (isFile) this.say("status", "Opening the saved compilation …");
          const found = isFile ? await converted(String(data), ServerConnection) : data;
          const [text, page2] = await Promise.all([documentText(found), explorerPage()]);
          if (!this.isDisposed) this.showFrame(page2, text, isFile);
        } catch (error) {
          this.say("alert", error instanceof Error ? error.message : String(error));
        }
      }
      /** @param {MimeModel} model */
      async showHtml(model) {
        refill(this.node);
        for (const name of ["height", "resize", "overflow"]) this.node.style.removeProperty(name);
        const inside = new RenderedHTML({ ...this.options, mimeType: "text/html" });
        this.shown = inside;
        const rendered = inside.renderModel(model);
        this.layout ??= new PanelLayout();
        this.layout.addWidget(inside);
        await rendered;
      }
      /**
       * @param {{ script: string, style: string }} page
       * @param {string} text
       * @param {boolean} isFile a file fills its tab, an output can be resized
       */
      showFrame(page2, text, isFile) {
        const frame = framed(page2, text);
        this.shown = frame;
        this.addClass("jp-IFrame");
        if (!isFile) Object.assign(this.node.style, { height: HEIGHT, resize: "vertical", overflow: "hidden" });
        refill(this.node, frame.element);
      }
      /**
       * @param {"alert" | "status"} role
       * @param {string} text
       */
      say(role, text) {
        refill(this.node, html("p", {
          role,
          style: "margin:0;padding:16px;white-space:pre-line;color:var(--jp-ui-font-color1);font:var(--jp-ui-font-size1) var(--jp-ui-font-family)"
        }, text));
      }
      dispose() {
        this.shown?.dispose();
        super.dispose();
      }
    };
  }
  function extension(modules) {
    const Explorer = explorerWidget(modules);
    return {
      id: `${NAME}:explorer`,
      description: "Opens saved compilations of inductor_lab.",
      rendererFactory: {
        safe: true,
        mimeTypes: [MIME_TYPE],
        createRenderer: (options) => new Explorer(options)
      },
      rank: BEFORE_HTML,
      dataType: "string",
      fileTypes: [{
        name: NAME,
        displayName: "Saved Compilation",
        mimeTypes: [MIME_TYPE],
        extensions: [".lab.json"],
        fileFormat: "text",
        contentType: "file",
        icon: { name: `${NAME}:file`, svgstr: ICON }
      }],
      documentWidgetFactoryOptions: {
        name: "inductor_lab Explorer",
        primaryFileType: NAME,
        fileTypes: [NAME],
        defaultFor: [NAME]
      }
    };
  }
  var scope = {};
  var container = {
    init(shared) {
      scope = shared;
    },
    async get() {
      const found = await Promise.all(SHARED.map(sharedModule));
      const modules = Object.assign({}, ...found);
      return () => ({ __esModule: true, default: extension(modules) });
    }
  };
  async function sharedModule(name) {
    const versions = Object.values(scope[name] ?? {});
    const chosen = versions.find((each) => each.loaded) ?? versions[0];
    if (!chosen) throw new Error(`JupyterLab shares no ${name}`);
    return (await chosen.get())();
  }
  var registry = window;
  registry._JUPYTERLAB ??= {};
  registry._JUPYTERLAB[NAME] = container;
})();
