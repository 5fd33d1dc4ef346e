// The types of the data that Python sends; widgets/shapes.py declares the same types
// (tests/widgets/test_shapes.py).

/** A source line, an FX node or a buffer, by its number in `LinkColumns`. */
export type Thing = number;

/** `[tag, attributes, ...children]`; strings are text (see widgets/markup.py). */
export type Tree = string | Branch;
export type Branch = [tag: string, attributes: Record<string, string>, ...children: Tree[]];

/** Its text, its things, and `+`, `-` or `@` in a diff. */
export type Line = [text: string, things?: Thing[], mark?: string];

export interface Block {
  title: string;
  /** The number of the first line; 0 for lines without numbers. */
  first: number;
  language: string;
  lines: Line[];
  /** Part and name of an editable kernel. */
  kernel?: [part: string, name: string];
}

export interface TextView {
  kind: "text";
  name: string;
  blocks: Block[];
}

/** A file offered for download; `data` becomes JSON. */
export interface OfferedFile {
  label: string;
  tip: string;
  name: string;
  type: string;
  data: unknown;
}

export interface TreeView {
  kind: "tree";
  name: string;
  tree: Branch;
  files?: OfferedFile[];
}

/**
 * `mark` is "", ok, no or warn; `more` has the inner rows that it opens; the other two are explained in
 * widgets/markup.py.  Empty values at the end are not sent.
 */
export type Row = [cells: string[], things?: Thing[], mark?: string, more?: InnerRow[], pair?: string,
  steps?: number[]];
export type InnerRow = [mark: string, term: string, ...cells: string[]];

/** A table; columns that start with `>` are numbers. */
export interface TableView {
  kind: "table";
  name: string;
  columns: string[];
  note: string;
  rows: Row[];
}

/** A tree with parts for each step of a slider; the steps are these memory budgets. */
export interface BudgetView {
  kind: "budget";
  name: string;
  tree: Branch;
  budgets: number[];
  /** The step that was compiled. */
  at: number;
}

export type Route = [source: string, target: string, bends: number[]];

export interface Layout {
  size: [width: number, height: number];
  names: string[];
  boxes: [x: number, y: number, width: number, height: number][];
  routes: Route[];
}

export type Item = [name: string, label: string, sub: string, role: string, tip: string,
  things: Thing[], frame: string];
export type Frame = [name: string, label: string, sub: string, tip: string, parent: string,
  open: boolean, things: Thing[]];

export interface GraphPicture {
  kind: "graph";
  name: string;
  title: string;
  /** The accessible name: the title with the boxes. */
  told: string;
  items: Item[];
  frames: Frame[];
  /** Pairs of indices into `items`. */
  edges: number[];
  /** Layouts by frame; "" is the root. */
  inside: Record<string, Layout>;
}

export type Value = boolean | number | string;

/** A tensor has size, stride (null: contiguous), dtype and requires_grad, a number its value. */
export interface GuardInput {
  source: string;
  name: string;
  kind: string;
  value?: Value;
  size?: number[];
  stride?: number[] | null;
  dtype?: string;
  requires_grad?: boolean;
}

/** The condition of a tensor; null matches any number. */
export type TensorCondition = ["tensor", source: string, dtype: string, requires_grad: boolean,
  sizes: (number | null)[], strides: (number | null)[]];
/** See widgets/conditions.py. */
export type Condition = ["const", Value | null]
  | ["compare", signs: string[], operands: Condition[]]
  | ["op", name: string, operands: Condition[]]
  | ["input", source: string]
  | ["size" | "stride", source: string, dimension: number]
  | ["type", source: string, type: string]
  | TensorCondition;
export type Check = [text: string, condition: Condition | null, kind: string, where: string,
  things: Thing[]];

/** One compiled version of the function. */
export interface GuardEntry {
  title: string;
  checks: Check[];
}

export interface GuardsView {
  kind: "guards";
  name: string;
  inputs: GuardInput[];
  entries: GuardEntry[];
  note: string;
}

/** An instruction; texts are indices into the view's `texts`. */
export type Instruction = [depth: number, fn: number, line: number, opname: number,
  argument: number, stack: number[], added: number[], renamed: [old: number, now: number][],
  things: Thing[]];

/** One attempt of TorchDynamo to trace a frame; `rows` are the first of `total` instructions. */
export interface Run {
  title: string;
  total: number;
  rows: Instruction[];
}

export interface StepsView {
  kind: "steps";
  name: string;
  runs: Run[];
  texts: string[];
}

export type View = TextView | TreeView | TableView | GraphPicture | BudgetView | GuardsView
  | StepsView;

export interface Pane {
  title: string;
  views: View[];
  count: string;
  seconds: number | null;
  problem: string;
  note?: string;
}

/** A number in the header and the pane that explains it; `mark` is "" or warn. */
export interface Fact {
  label: string;
  value: string;
  pane: string;
  mark: string;
}

export interface PaneGroup {
  title: string;
  panes: string[];
}

/** Arguments of `Compilation.what_if`. */
export interface Change {
  forbid?: [producer: string, consumer: string, part: string][];
  force?: [producer: string, consumer: string, part: string][];
  fusion_off?: string[];
  rewrites_off?: string[];
  memory_budget?: number;
  fusion?: boolean;
}

export interface Switches {
  title: string;
  changes: [label: string, change: Change, meaning: string][];
}

/** Columns of thing number 0, 1, 2, ... (see widgets/links.py). */
export interface LinkColumns {
  kind: string[];
  scope: string[];
  label: string[];
  parents: Thing[][];
}

export interface Document {
  format: string;
  version: number;
  title: string;
  subtitle: string;
  facts: Fact[];
  groups: PaneGroup[];
  panes: Record<string, Pane>;
  open: string[];
  switches: Switches[];
  words: Record<string, string>;
  links: LinkColumns;
  language?: string;
  texts?: Record<string, string>;
}
