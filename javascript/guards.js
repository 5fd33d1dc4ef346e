// The guard playground: edit an input and see which guard would fail, without running anything.

import { html, refill } from "./dom.js";
import { say } from "./say.js";
import { Shows } from "./selection.js";

/**
 * @import {
 *   Call, Check, Condition, Context, Drawn, GuardEntry, GuardInput, GuardsState, GuardsView,
 *   TensorCondition, Value,
 * } from "./types.d.ts"
 */

/**
 * @typedef {"holds" | "fails" | "unknown"} Verdict
 * @typedef {{rows: {element: HTMLElement, text: string}[], shows: Shows}} Shown
 * @typedef {GuardInput & Required<Pick<GuardInput, "size" | "dtype">>} TensorInput
 */

const DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool",
  "complex64"];
/** @type {Record<string, RegExp>} the Python types of an input's kind */
const TYPES = { tensor: /Tensor|Parameter/, array: /ndarray/ };
const STATES = { holds: "✓", fails: "✗", unknown: "·" };

/**
 * A form of the inputs, and below it each guard with its verdict (see conditions.py).
 *
 * @param {GuardsView} view
 * @param {Context} context
 * @returns {Drawn}
 */
export function guardsView(view, context) {
  view.state ??= { values: copy(view.inputs), said: "", calls: [] };
  const { state } = view;
  const element = html("div", { class: "lab-table lab-guards", tabindex: 0 });
  const verdict = html("p", { class: "lab-guard-verdict", role: "status" });
  const body = html("div", {});
  const calls = html("div", { class: "lab-calls" });
  /** @type {Shown} */
  const shown = { rows: [], shows: new Shows(element) };

  const judge = () => {
    const found = view.entries.map((entry) => judged(entry.checks, state.values));
    const hit = found.findIndex((states) => !states.includes("fails"));
    refill(verdict, ...verdictParts(view, found, hit, state.values, context));
    verdict.className = `lab-guard-verdict ${hit < 0 ? "no" : "ok"}`;
    shown.rows = [];
    shown.shows = new Shows(element);
    refill(body, view.entries.map((entry, i) => checkTable(entry, found[i], shown, context)));
  };
  const edited = () => {
    state.said = "";
    refill(said);
    judge();
    askVersions();
  };
  let asked = 0;
  const askVersions = async () => {
    if (!context.whatIf) return;
    asked += 1;
    const [mine, changed] = [asked, edits(view, state.values)];
    const answer = await context.whatIf.line.ask({ show: "guards", edits: changed });
    if (mine !== asked || answer.hit === undefined) return;
    if (answer.hit === null && verdict.classList.contains("no")) return; // it names the line
    refill(verdict, ...answerParts(answer.hit, answer.reasons ?? {}));
    verdict.className = `lab-guard-verdict ${answer.hit === null ? "no" : "ok"}`;
  };
  const said = html("p", { class: "lab-note lab-guard-said", role: "status" }, state.said);
  const form = html("div", { class: "lab-guard-form" },
    state.values.map((value) => inputRow(value, edited)),
    html("div", { class: "lab-guard-actions" },
      html("button", { type: "button", onclick: () => reset(view, state, refillForm) }, say("reset")),
      html("button", {
        type: "button", class: "lab-run-it",
        title: say("call the compiled function with these inputs"),
        onclick: async () => {
          await runIt(view, state, context, said, judge);
          await askVersions();
          refill(calls, callTable(state.calls));
        },
      }, say("run it"))));
  const refillForm = () => {
    form.querySelectorAll(".lab-guard-input").forEach((row, i) => {
      row.replaceWith(inputRow(state.values[i], edited));
    });
    edited();
  };
  element.append(html("p", { class: "lab-note" }, view.note), form, verdict, said, calls, body);
  refill(calls, callTable(state.calls));
  judge();
  return {
    element,
    light: (lit, scroll) => {
      shown.shows.light(lit);
      if (scroll) shown.shows.first()?.scrollIntoView({ block: "nearest" });
    },
    find: (query) => shown.rows.filter((r) => r.text.toLowerCase().includes(query))
      .map((r) => r.element),
    text: () => `${verdict.textContent}\n${callText(state.calls)}${shown.rows.map((r) => r.text).join("\n")}\n`,
  };
}

/**
 * @param {GuardInput[]} data
 * @returns {GuardInput[]}
 */
const copy = (data) => JSON.parse(JSON.stringify(data));

/**
 * @param {GuardsView} view
 * @param {GuardsState} state
 * @param {() => void} refillForm
 */
function reset(view, state, refillForm) {
  state.values = copy(view.inputs);
  refillForm();
}

/**
 * The differences from the inspected call: `{source: facts}`.
 *
 * @param {GuardsView} view
 * @param {GuardInput[]} values
 */
function edits(view, values) {
  /** @type {Record<string, Record<string, unknown>>} */
  const changed = {};
  values.forEach((value, i) => {
    /** @type {Record<string, unknown>} */
    const before = { ...view.inputs[i] };
    for (const [name, now] of Object.entries(value)) {
      if (String(now) === String(before[name]) || name === "stride") continue;
      changed[value.source] ||= {};
      changed[value.source][name] = now;
    }
  });
  return changed;
}

/**
 * @param {GuardsView} view
 * @param {GuardsState} state
 * @param {Context} context
 * @param {HTMLElement} said
 * @param {() => void} judge
 */
async function runIt(view, state, context, said, judge) {
  if (!context.whatIf) return;
  said.textContent = say("running …");
  const answer = await context.whatIf.line.ask({ show: "again", edits: edits(view, state.values) });
  state.said = say(answer.error || answer.verdict || "");
  if (answer.entry) view.entries.push(answer.entry);
  if (answer.call) {
    const now = performance.now();
    state.first ??= now;
    state.calls.push({ ...answer.call, at: `${((now - state.first) / 1000).toFixed(1)} s` });
  }
  judge();
  said.textContent = state.said;
}

/**
 * The calls made from this page: their time, their outcome and the failed guards.
 *
 * @param {Call[]} calls
 */
function callTable(calls) {
  if (!calls.length) return null;
  const head = ["call", "at", "took", "what", "guards that failed"];
  return html("table", {}, html("caption", {}, say("calls made here")),
    html("thead", {}, html("tr", {}, head.map((name) => html("th", {}, say(name))))),
    html("tbody", {}, calls.map(({ at, took, what, why }, i) => html("tr", {},
      [i + 1, at, took, what, why.join("\n")].map((cell) => html("td", {}, String(cell)))))));
}

const callText = (/** @type {Call[]} */ calls) => calls.map(({ at, took, what, why }, i) => (
  `call ${i + 1} at ${at}, ${took}: ${[what, ...why].join("; ")}\n`)).join("");

/**
 * @param {GuardInput} value
 * @param {() => void} edited
 */
function inputRow(value, edited) {
  const fields = isTensor(value) ? tensorFields(value, edited) : [plainField(value, edited)].flat();
  return html("div", { class: "lab-guard-input", "data-input": value.name },
    html("b", {}, value.name), fields);
}

/**
 * @param {GuardInput} value
 * @returns {value is TensorInput}
 */
const isTensor = (value) => value.kind === "tensor" || value.kind === "array";

/**
 * @param {TensorInput} value
 * @param {() => void} edited
 */
function tensorFields(value, edited) {
  const change = (/** @type {Partial<GuardInput>} */ facts) => {
    Object.assign(value, facts);
    edited();
  };
  const refused = html("span", { class: "lab-refused", role: "alert" });
  const sizes = html("input", {
    value: value.size.join(", "), size: wide(value.size.join(", ")), "data-fact": "size",
    "aria-label": say("size of {name}", { name: value.name }),
  });
  sizes.addEventListener("input", () => {
    const parts = sizes.value.split(",").map((part) => part.trim()).filter(Boolean);
    const bad = parts.some((part) => !/^\d{1,9}$/.test(part));
    sizes.size = wide(sizes.value);
    refuse(sizes, refused, bad, say("integers, such as 8, 16"));
    if (!bad) change({ size: parts.map(Number), stride: null });
  });
  const possible = DTYPES.filter((name) => value.kind === "tensor" || name !== "bfloat16");
  const known = possible.includes(value.dtype) ? possible : [value.dtype, ...possible];
  const dtype = html("select", {
    "aria-label": say("dtype of {name}", { name: value.name }), "data-fact": "dtype",
    onchange: () => { change({ dtype: dtype.value }); },
  }, known.map((name) => html("option", { selected: name === value.dtype }, name)));
  const grad = html("input", {
    type: "checkbox", checked: value.requires_grad, "data-fact": "requires_grad",
    onchange: () => { change({ requires_grad: grad.checked }); },
  });
  const label = value.kind === "tensor" ? html("label", {}, grad, " requires_grad") : null;
  return ["[", sizes, "]", refused, dtype, label];
}

/**
 * @param {GuardInput} value
 * @param {() => void} edited
 */
function plainField(value, edited) {
  if (value.kind === "bool") {
    const box = html("input", {
      type: "checkbox", checked: Boolean(value.value), "aria-label": value.name, "data-fact": "value",
      onchange: () => { value.value = box.checked; edited(); },
    });
    return box;
  }
  const refused = html("span", { class: "lab-refused", role: "alert" });
  const whole = value.kind === "int";
  const field = html("input", {
    value: String(value.value), "aria-label": value.name, "data-fact": "value",
    size: wide(String(value.value)),
    oninput: () => {
      const text = field.value;
      const number = text.trim() ? Number(text) : NaN;
      const bad = value.kind !== "str" && (Number.isNaN(number) || (whole && !Number.isInteger(number)));
      field.size = wide(text);
      refuse(field, refused, bad, say(whole ? "an integer" : "a number"));
      if (bad) return;
      value.value = value.kind === "str" ? text : Number(text);
      edited();
    },
  });
  return [field, refused];
}

/** The width, in characters, of a field that shows its whole text. */
const wide = (/** @type {string} */ text) => Math.min(Math.max(text.length + 1, 8), 60);

/**
 * Show an error next to a field while its text is invalid.
 *
 * @param {HTMLInputElement} field
 * @param {HTMLElement} said
 * @param {boolean} bad
 * @param {string} what
 */
function refuse(field, said, bad, what) {
  field.setAttribute("aria-invalid", String(bad));
  said.textContent = bad ? what : "";
}

/**
 * "hit" or "recompile"; for a recompile also the first failing guard with its source line.
 *
 * @param {GuardsView} view
 * @param {Verdict[][]} found
 * @param {number} hit the index of the entry whose guards all hold
 * @param {GuardInput[]} values
 * @param {Context} context
 */
function verdictParts(view, found, hit, values, context) {
  if (hit >= 0) {
    const which = view.entries.length > 1 ? ` ${view.entries[hit].title}` : "";
    return [html("b", {}, say("hit")), " ",
      say("all guards hold: the compiled code{which} is reused", { which })];
  }
  const last = view.entries[found.length - 1];
  const check = last.checks[found[found.length - 1].indexOf("fails")];
  const [text, condition, , where, things] = check;
  const link = where ? html("button", {
    type: "button", onclick: () => things.length && context.selection.pin(things),
  }, where) : null;
  return [html("b", {}, say("recompile")), ` ${say("first failing guard:")} `,
    html("code", {}, text), " ",
    mismatch(condition, values), " ", link];
}

/**
 * The same from the guards of all versions that TorchDynamo keeps, as Python answers.
 *
 * @param {string | null} hit the version that would run
 * @param {Record<string, string>} reasons the failing guard of each version
 */
function answerParts(hit, reasons) {
  if (hit !== null) {
    return [html("b", {}, say("hit")), " ",
      say("all guards hold: the compiled code{which} is reused", { which: ` ${hit}` })];
  }
  const failed = Object.entries(reasons).map(([name, text]) => html("div", {},
    `${name}: `, html("code", {}, text)));
  return [html("b", {}, say("recompile")), ` ${say("first failing guard:")} `, ...failed];
}

/**
 * The property of a tensor that violates its guard: `(size is 50)`.
 *
 * @param {Condition | null} condition
 * @param {GuardInput[]} values
 */
function mismatch(condition, values) {
  if (condition?.[0] !== "tensor") return "";
  const [, source, dtype, needsGrad, sizes] = condition;
  const input = values.find((value) => value.source === source);
  if (!input || !isTensor(input)) return "";
  if (input.dtype !== dtype) return `(dtype is ${input.dtype})`;
  if (!agree(sizes, input.size)) return `(size is ${input.size.join(", ")})`;
  if (input.requires_grad !== needsGrad) return `(requires_grad is ${input.requires_grad})`;
  return `(stride is ${strides(input)?.join(", ")})`;
}

/**
 * @param {GuardEntry} entry
 * @param {Verdict[]} states
 * @param {Shown} shown
 * @param {Context} context
 */
function checkTable(entry, states, shown, context) {
  const first = states.indexOf("fails");
  const rows = entry.checks.map(([text, , kind, where, things], i) => {
    const row = html("tr", {
      class: `lab-check ${states[i]}${i === first ? " first" : ""}${things.length ? " linked" : ""}`,
      onmouseenter: () => context.selection.preview(things),
      onmouseleave: () => context.selection.preview([]),
      onclick: () => things.length && context.selection.pin(things),
    },
    html("td", {}, html("span", {
      class: `lab-sign ${{ holds: "ok", fails: "no", unknown: "" }[states[i]]}`,
      title: say(states[i] === "unknown" ? "does not depend on the editable inputs" : states[i]),
    }, STATES[states[i]]), text), html("td", {}, kind), html("td", {}, where));
    shown.shows.add(row, things);
    shown.rows.push({ element: row, text: `${STATES[states[i]]} ${text}\t${kind}\t${where}` });
    return row;
  });
  const heads = [say("guards of {title}", { title: entry.title }), say("kind"), say("created by")];
  return html("table", {}, html("thead", {}, html("tr", {},
    heads.map((head) => html("th", { scope: "col" }, head)))), html("tbody", {}, rows));
}

/**
 * The state of each guard: holds, fails, or unknown if it does not depend on editable inputs.
 *
 * @param {Check[]} checks
 * @param {GuardInput[]} values
 * @returns {Verdict[]}
 */
function judged(checks, values) {
  const inputs = new Map(values.map((value) => [value.source, value]));
  return checks.map(([, condition]) => {
    const value = condition ? evaluate(condition, inputs) : undefined;
    return value === undefined ? "unknown" : value ? "holds" : "fails";
  });
}

/** @typedef {Value | null | undefined} Known undefined means unknown in the page */

/**
 * The value of a condition; undefined if it depends on unknown values.
 *
 * @param {Condition} condition
 * @param {Map<string, GuardInput>} inputs
 * @returns {Known}
 */
function evaluate(condition, inputs) {
  const all = (/** @type {Condition[]} */ operands) => operands.map((each) => evaluate(each, inputs));
  if (condition[0] === "const") return condition[1];
  if (condition[0] === "compare") return compare(condition[1], all(condition[2]));
  if (condition[0] === "op") return OPERATORS[condition[1]](...all(condition[2]));
  const input = inputs.get(condition[1]);
  if (!input) return undefined;
  switch (condition[0]) {
    case "input": return input.value;
    case "size": return input.size?.[condition[2]];
    case "stride": return strides(input)?.[condition[2]];
    case "type": return input.kind === condition[2]
      || (isTensor(input) && TYPES[input.kind].test(condition[2]));
    default: return isTensor(input) ? sameTensor(input, condition) : undefined;
  }
}

/**
 * @param {TensorInput} input
 * @param {TensorCondition} wanted
 */
function sameTensor(input, [, , dtype, needsGrad, sizes, steps]) {
  return input.dtype === dtype && input.requires_grad === needsGrad && agree(sizes, input.size)
    && agree(steps, strides(input) || []);
}

/**
 * Whether numbers match those of a guard; null matches any number.
 *
 * @param {(number | null)[]} wanted
 * @param {number[]} found
 */
function agree(wanted, found) {
  return wanted.length === found.length
    && wanted.every((each, i) => each === null || each === found[i]);
}

/** @param {GuardInput} input */
function strides({ size, stride }) {
  if (stride || !size) return stride;
  return size.map((_, i) => size.slice(i + 1).reduce((all, each) => all * Math.max(each, 1), 1));
}

/**
 * @param {string[]} signs
 * @param {Known[]} values
 */
function compare(signs, values) {
  if (values.includes(undefined)) return undefined;
  return signs.every((sign, i) => RELATIONS[sign](values[i], values[i + 1]));
}

/** @type {Record<string, (a: any, b: any) => boolean>} as in Python, of values of any type */
const RELATIONS = {
  "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b,
  "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
};

/** @typedef {(...values: Known[]) => Known} Operator */

/** @type {(compute: (...values: any[]) => Known) => Operator} */
const known = (compute) => (...values) => (
  values.includes(undefined) ? undefined : compute(...values));

/** @type {Record<string, Operator>} */
const OPERATORS = {
  "+": known((a, b) => a + b), "-": known((a, b) => a - b), "*": known((a, b) => a * b),
  "//": known((a, b) => Math.floor(a / b)), "%": known((a, b) => a - b * Math.floor(a / b)),
  "**": known((a, b) => a ** b), neg: known((a) => -a), not: known((a) => !a),
  isnan: known((a) => Number.isNaN(a)), min: known(Math.min), max: known(Math.max),
  and: known((...all) => all.every(Boolean)), or: known((...all) => all.some(Boolean)),
};
