// What the extension uses of JupyterLab 4 (@jupyterlab/rendermime-interfaces, @lumino/widgets).

export interface Widget {
  node: HTMLElement;
  isDisposed: boolean;
  parent: Widget | null;
  layout: { addWidget(widget: Widget): void } | null;
  addClass(name: string): void;
  hasClass(name: string): boolean;
  dispose(): void;
}

export interface MimeModel {
  trusted: boolean;
  data: Record<string, unknown>;
}

export interface Renderer extends Widget {
  renderModel(model: MimeModel): Promise<void>;
}

export interface RendererOptions { mimeType: string; [more: string]: unknown }

export interface ServerSettings { baseUrl: string }

/** The exports of the shared modules that the extension uses. */
export interface Modules {
  Widget: new () => Widget;
  PanelLayout: new () => NonNullable<Widget["layout"]>;
  RenderedHTML: new (options: RendererOptions) => Renderer;
  ServerConnection: {
    makeSettings(): ServerSettings;
    makeRequest(url: string, init: RequestInit, settings: ServerSettings): Promise<Response>;
  };
}

/** The parts of the application's service manager that start a kernel. */
export interface Services {
  kernels: { startNew(options: { name?: string }): Promise<Kernel> };
  kernelspecs: { ready: Promise<void>; specs: { default: string } | null };
}

export interface Kernel {
  disposed: { connect(listener: () => void): void };
  requestExecute(content: { code: string; store_history: boolean }): {
    onIOPub: (message: { content: { data?: Record<string, unknown> } }) => void;
    done: Promise<{ content: { status: string; ename?: string; evalue?: string } }>;
  };
}

/** Shared modules by name and version; `get` promises the function that returns the exports. */
export type SharedScope = Record<string, Record<string, {
  get(): Promise<() => object>;
  loaded?: boolean | 1;
}>>;

/** A module federation container, which JupyterLab finds in `window._JUPYTERLAB`. */
export interface Container {
  init(scope: SharedScope): void;
  get(module: string): Promise<() => object>;
}

/** The data of the MIME type (see widgets/mime.py). */
export interface MimeData { format: string; version: number; gzip: string | string[] }

/** A message to the frame: the theme; when the frame has loaded, also the documents, and what it says
 * about a document that cannot be drawn. */
export interface Sent { light: boolean; texts?: string[]; damaged?: string }

export type Language = "en" | "zh";

declare global {
  /** The section `jupyterlab` of texts.toml, which build.mjs puts in: English → Chinese. */
  const CHINESE: Record<string, string>;
}
