// Entry point of the JupyterLab extension, built as `labextension/remoteEntry.js`: it opens saved
// compilations (`.lab.json`) and shows outputs that have the MIME type of the explorer.
//
// JupyterLab loads a prebuilt extension as a module federation container: an object with `init`, which
// gets the modules that JupyterLab shares, and `get`, which returns a module of the extension.

import { countSeconds, html, refill } from "./dom.js";
import { framed } from "./frame.js";
import { convertedByKernel, isWithoutServer } from "./kernel.js";
import { converted, convertedByServer, documentTexts } from "./mime.js";
import { say, speak } from "./say.js";

/** @import { Container, Language, MimeModel, Modules } from "./jupyterlab.d.ts" */
/** @import { RendererOptions, Services, SharedScope } from "./jupyterlab.d.ts" */

const NAME = "inductor-lab";
const MIME_TYPE = "application/vnd.inductor-lab+json";
const SHARED = ["@lumino/widgets", "@jupyterlab/rendermime", "@jupyterlab/services"];
const BEFORE_HTML = 40; // the rank of HTML is 50
const HEIGHT = "680px"; // that of an explorer in HTML

const ICON = '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16">'
  + '<g class="jp-icon3" fill="#616161"><rect x="1" y="2" width="5" height="4" rx="1"/>'
  + '<rect x="1" y="10" width="5" height="4" rx="1"/><rect x="10" y="5" width="5" height="6" rx="1"/>'
  + '<path d="M6 3.5h2.5V7H10v2H8.5v3.5H6v-1.2h1.4V4.7H6z"/></g></svg>';

const folder = new URL(".", /** @type {HTMLScriptElement} */ (document.currentScript).src);

/** @type {Promise<{ script: string, style: string }> | null} */
let page = null;

/** The script and the style of the explorer, from the folder of this script. */
function explorerPage() {
  const read = async (/** @type {string} */ name) => {
    const response = await fetch(new URL(name, folder), { cache: "no-cache" });
    const { ok, status } = response;
    if (!ok) throw new Error(say("The explorer is not installed: HTTP {status} for {name}", { status, name }));
    return response.text();
  };
  page ??= Promise.all([read("page.js"), read("explorer.css")])
    .then(([script, style]) => ({ script, style }));
  page.catch(() => { page = null; });
  return page;
}

/**
 * JupyterLab's language, which it writes into its page.
 *
 * @returns {Language}
 */
const language = () => (document.documentElement.lang.startsWith("zh") ? "zh" : "en");

/**
 * The class of widgets that show a file or an output.
 *
 * @param {Modules} modules
 */
function explorerWidget({ Widget, PanelLayout, RenderedHTML, ServerConnection }) {
  return class Explorer extends Widget {
    /** @param {RendererOptions} options */
    constructor(options) {
      super();
      this.options = options;
      /** @type {{ dispose(): void } | null} */
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
      // only a document asks Python: an untrusted notebook cannot
      const isFile = Boolean(this.parent?.hasClass("jp-MimeDocument"));
      try {
        speak(language() === "zh" ? CHINESE : {});
        const found = isFile ? await this.opened(String(data)) : data;
        const [texts, page] = await Promise.all([documentTexts(found), explorerPage()]);
        if (!this.isDisposed) this.showFrame(page, texts, isFile);
      } catch (error) {
        this.showText("alert", error instanceof Error ? error.message : String(error));
      }
    }

    /**
     * The explorer of a file.
     *
     * @param {string} text
     */
    async opened(text) {
      const byKernel = isWithoutServer();
      const stop = countSeconds(this.showText("status", ""), byKernel
        ? say("Starting Python in the browser, which opens the saved compilation")
        : say("Opening the saved compilation"));
      try {
        return await converted(text, byKernel
          ? async () => convertedByKernel(text, language(), await services)
          : () => convertedByServer(text, language(), ServerConnection));
      } finally {
        stop();
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
     * @param {string[]} texts
     * @param {boolean} isFile a file fills its tab, an output can be resized
     */
    showFrame(page, texts, isFile) {
      const frame = framed(page, texts);
      this.shown = frame;
      this.addClass("jp-IFrame"); // while a tab or a border is dragged, the frame gets no events
      if (!isFile) Object.assign(this.node.style, { height: HEIGHT, resize: "vertical", overflow: "hidden" });
      refill(this.node, frame.element);
    }

    /**
     * @param {"alert" | "status"} role
     * @param {string} text
     */
    showText(role, text) {
      const shown = html("p", {
        role,
        style: "margin:0;padding:16px;white-space:pre-line;color:var(--jp-ui-font-color1);"
          + "font:var(--jp-ui-font-size1) var(--jp-ui-font-family)",
      }, text);
      refill(this.node, shown);
      return shown;
    }

    dispose() {
      this.shown?.dispose();
      super.dispose();
    }
  };
}

/**
 * The MIME extension: a renderer, and the documents that are shown by it.
 *
 * @param {Modules} modules
 */
function extension(modules) {
  const Explorer = explorerWidget(modules);
  return {
    id: `${NAME}:explorer`,
    description: "Opens saved compilations of inductor_lab.",
    rendererFactory: {
      safe: true,
      mimeTypes: [MIME_TYPE],
      createRenderer: (/** @type {RendererOptions} */ options) => new Explorer(options),
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
      icon: { name: `${NAME}:file`, svgstr: ICON },
    }],
    documentWidgetFactoryOptions: {
      name: "inductor_lab Explorer",
      primaryFileType: NAME,
      fileTypes: [NAME],
      defaultFor: [NAME],
    },
  };
}

/** @type {(found: Services) => void} */
let provide = () => {};
/** @type {Promise<Services>} */
const services = new Promise((resolve) => { provide = resolve; });

/** A plugin, because a MIME extension does not get the services of the application. */
const plugin = {
  id: `${NAME}:services`,
  description: "Lets JupyterLite open saved compilations with a kernel.",
  autoStart: true,
  activate: (/** @type {{ serviceManager: Services }} */ app) => provide(app.serviceManager),
};

/** @type {SharedScope} */
let scope = {};

/** @type {Container} */
const container = {
  init(shared) { scope = shared; },
  async get(name) {
    if (name === "./plugin") return () => ({ __esModule: true, default: plugin });
    const found = await Promise.all(SHARED.map(sharedModule));
    const modules = /** @type {Modules} */ (Object.assign({}, ...found));
    return () => ({ __esModule: true, default: extension(modules) });
  },
};

/**
 * The exports of a module that JupyterLab shares: of the version that it has loaded.
 *
 * @param {string} name
 */
async function sharedModule(name) {
  const versions = Object.values(scope[name] ?? {});
  const chosen = versions.find((each) => each.loaded) ?? versions[0];
  if (!chosen) throw new Error(`JupyterLab shares no ${name}`);
  return (await chosen.get())();
}

const registry = /** @type {{ _JUPYTERLAB?: Record<string, Container> }} */ (/** @type {unknown} */ (window));
registry._JUPYTERLAB ??= {};
registry._JUPYTERLAB[NAME] = container;
