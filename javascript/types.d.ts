// Types shared by the modules: the data from Python, the state of the page, and the interface of views.

import type { Explorer } from "./explorer.js";
import type { Links } from "./links.js";
import type { Line as Connection } from "./live.js";
import type { Selection } from "./selection.js";
import type { Branch, GuardInput, Instruction, Pane, Thing } from "./sent.d.ts";
import type { WhatIf } from "./whatif.js";
import type { Words } from "./words.js";

export type * from "./sent.d.ts";
export type { Explorer, Links, Selection, WhatIf, Words };

/** State that the page stores in the document, so that it survives when a pane is closed. */
declare module "./sent.d.ts" {
  interface Block { draft?: Draft }
  interface TextView { editing?: Block | null }
  interface BudgetView { state?: { at: number } }
  interface GuardsView { state?: GuardsState }
  interface StepsView { state?: { run: number; at: number } }
}

/** The edited text of a kernel, and the result of running it. */
export interface Draft {
  text: string;
  said: string;
  right?: boolean;
  errors?: [line: number, text: string][];
}

export interface Call { what: string; took: string; why: string[]; at: string }

export interface GuardsState {
  values: GuardInput[];
  said: string;
  calls: Call[];
  /** The time of the first call. */
  first?: number;
}

/** The highlighted things; null for none. */
export type Lit = Set<Thing> | null;
export type Listener = (lit: Lit, things: Thing[], scroll?: boolean) => void;

/** The colour and the number of the first source line of a thing. */
export interface Cue { hue: number; number: string; title: string }

/** The state shared by all views of an explorer. */
export interface Context {
  links: Links;
  selection: Selection;
  words: Words;
  whatIf: WhatIf | null;
}

/** The interface of a view. */
export interface Drawn {
  element: HTMLElement;
  light(lit: Lit, scroll?: boolean): void;
  /** The elements that contain a text (in lower case), one per hit; a closed frame may repeat. */
  find(query: string): Element[];
  /** Open the elements that hide hits of the last `find`; returns whether elements changed. */
  reveal?(places: number[]): boolean;
  text(): string;
  actions?: HTMLElement[];
  above?: HTMLElement;
  fit?(): void;
  zoom?(factor: number): void;
  showElement?(element: Element): void;
  goTo?(line: number): void;
  /** Build what is not built yet. */
  whole?(): void;
}

/** A place that shows a pane. */
export interface Slot { element: HTMLElement; view: Drawn; id: string }

/** An element with things. */
export interface Part { element: HTMLElement | SVGElement; things: Thing[] }

/** A part of a line; `kind` is null for text without a colour. */
export type Word = [kind: string | null, text: string];

/** A line of a text view; `element` is null until the line is built. */
export interface TextLine {
  text: string;
  things: Thing[];
  mark: string;
  number: number | "";
  chunk: { element: HTMLElement; first: number; count: number };
  element: HTMLElement | null;
}

export interface Box { x: number; y: number; width: number; height: number }

/** A box of a drawn picture. */
export interface Node extends Box { group: SVGElement; things: Thing[] }

export interface Arrow { from: string; to: string; points: [x: number, y: number][] }

/** A drawing and its size, for export. */
export interface Drawing { element: SVGElement; width: number; height: number }

/** Attributes and `on...` listeners of a new element. */
export type Attributes = {
  [name in keyof HTMLElementEventMap as `on${name}`]?: (event: HTMLElementEventMap[name]) => unknown;
} & { [name: string]: string | number | boolean | null | undefined | ((event: never) => unknown) };

/** A child of a new element, or several; null is omitted. */
export type Children = Child | Child[];
export type Child = globalThis.Node | string | null | undefined | false;

export type Make = (tag: string, attributes: Attributes, ...children: Children[]) => HTMLElement | SVGElement;

/** The answer of Python to a request. */
export interface Answer {
  id?: string;
  error?: string;
  verdict?: string;
  title?: string;
  panes?: Record<string, Pane>;
  right?: boolean;
  errors?: [line: number, text: string][];
  entry?: import("./sent.d.ts").GuardEntry | null;
  call?: Omit<Call, "at">;
  hit?: string | null;
  reasons?: Record<string, string>;
}

export interface Request { show?: string; target?: string; [more: string]: unknown }

/** A notebook kernel, as the widget manager exposes it. */
export interface Kernel {
  isDisposed: boolean;
  status: string;
  statusChanged?: { connect(told: (sender: unknown, status: string) => void): void };
}

/** What is selected in an explorer; empty for nothing (see widgets/places.py). */
export interface Selected { stage?: string; kernel?: string; line?: number; node?: string }

/** The model of a widget, passed by anywidget. */
export interface Model {
  /** The traits of the widgets in this package. */
  get(name: "channel"): string;
  get(name: "tree"): Branch;
  get(name: "document"): string;
  get(name: "view"): string;
  get(name: "selected"): Selected;
  get(name: "selected" | "view"): Selected | string;
  set(name: "selected" | "view", value: Selected | string): void;
  save_changes(): void;
  on(event: "msg:custom", told: (message: Answer) => void): void;
  on(event: string, told: () => void): void;
  off(event: string, told: () => void): void;
  send(message: object): void;
  widget_manager?: {
    kernel?: Kernel;
    context?: { sessionContext?: { session?: { kernel?: Kernel } } };
  };
}

/** The argument of a widget's `render`, passed by anywidget. */
export interface Rendered { model: Model; el: HTMLElement }

export type { Connection, Instruction };
