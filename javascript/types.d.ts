// The shapes that modules share: what Python sends, what the page keeps with it, and what views give
// the explorer.

import type { Explorer } from "./explorer.js";
import type { Links } from "./links.js";
import type { Line as Connection } from "./live.js";
import type { Selection } from "./selection.js";
import type { Branch, GuardInput, Instruction, Pane, Thing } from "./sent.d.ts";
import type { WhatIf } from "./whatif.js";
import type { Words } from "./words.js";

export type * from "./sent.d.ts";
export type { Explorer, Links, Selection, WhatIf, Words };

/** What the page keeps with what it shows: it is there again when a pane is. */
declare module "./sent.d.ts" {
  interface Block { draft?: Draft }
  interface TextView { editing?: Block | null }
  interface BudgetView { state?: { at: number } }
  interface GuardsView { state?: GuardsState }
  interface StepsView { state?: { run: number; at: number } }
}

/** A kernel's text as it is edited, and what came of running it. */
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
  /** When the first call was made. */
  first?: number;
}

/** What is lit; null when nothing is. */
export type Lit = Set<Thing> | null;
export type Listener = (lit: Lit, things: Thing[], scroll?: boolean) => void;

/** Of a thing: the colour of its first source line, and that line. */
export interface Cue { hue: number; number: string; title: string }

/** What all views of an explorer share. */
export interface Context {
  links: Links;
  selection: Selection;
  words: Words;
  whatIf: WhatIf | null;
}

/** What the explorer asks of a view. */
export interface Drawn {
  element: HTMLElement;
  light(lit: Lit, scroll?: boolean): void;
  /** The elements that hold a text (in lower case), one for each hit: a closed frame has many. */
  find(query: string): Element[];
  /** Open what hides hits of the last `find`, by their places: says whether elements changed. */
  reveal?(places: number[]): boolean;
  text(): string;
  actions?: HTMLElement[];
  above?: HTMLElement;
  fit?(): void;
  zoom?(factor: number): void;
  showElement?(element: Element): void;
  goTo?(line: number): void;
}

/** A place where a pane is shown. */
export interface Slot { element: HTMLElement; view: Drawn; id: string }

/** An element that is about something. */
export interface Part { element: HTMLElement | SVGElement; things: Thing[] }

/** A line of a text view. */
export interface TextLine extends Part { text: string }

export interface Box { x: number; y: number; width: number; height: number }

/** A box of a drawn picture. */
export interface Node extends Box { group: SVGElement; things: Thing[] }

export interface Arrow { from: string; to: string; points: [x: number, y: number][] }

/** A drawing and its size, to be saved as a picture. */
export interface Drawing { element: SVGElement; width: number; height: number }

/** Attributes and `on...` listeners of a new element. */
export type Attributes = {
  [name in keyof HTMLElementEventMap as `on${name}`]?: (event: HTMLElementEventMap[name]) => unknown;
} & { [name: string]: string | number | boolean | null | undefined | ((event: never) => unknown) };

/** A child of a new element, or several; null is left out. */
export type Children = Child | Child[];
export type Child = globalThis.Node | string | null | undefined | false;

export type Make = (tag: string, attributes: Attributes, ...children: Children[]) => HTMLElement | SVGElement;

/** What Python answers to a request. */
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
}

export interface Request { show?: string; target?: string; [more: string]: unknown }

/** A kernel of a notebook, as its manager of widgets shows it. */
export interface Kernel {
  isDisposed: boolean;
  status: string;
  statusChanged?: { connect(told: (sender: unknown, status: string) => void): void };
}

/** A widget's model, as anywidget gives it. */
export interface Model {
  /** The traits that widgets here have. */
  get(name: "channel"): string;
  get(name: "tree"): Branch;
  get(name: "document"): Packed;
  on(event: "msg:custom", told: (message: Answer) => void): void;
  on(event: string, told: () => void): void;
  off(event: string, told: () => void): void;
  send(message: object): void;
  widget_manager?: {
    kernel?: Kernel;
    context?: { sessionContext?: { session?: { kernel?: Kernel } } };
  };
}

/** What anywidget gives to a widget that is drawn. */
export interface Rendered { model: Model; el: HTMLElement }

/** JSON data. */
export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** A document as Python packed it. */
export interface Packed { shared: Json[]; data: Json }

export type { Connection, Instruction };
