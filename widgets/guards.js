// Guards that can be tried: edit an input, see which guard would fail, without running anything.

import { html, refill } from "./dom.js";
import { Shows } from "./selection.js";

const DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool",
  "complex64"];
const STATES = { holds: "✓", fails: "✗", unknown: "·" };

/** A form of the inputs above the guards, each with its verdict (see conditions.py). */
export function guardsView(view, context) {
  const state = view.state || (view.state = { values: copy(view.inputs), said: "", calls: [] });
  const element = html("div", { class: "lab-table lab-guards", tabindex: 0 });
  const verdict = html("p", { class: "lab-guard-verdict", role: "status" });
  const body = html("div", {});
  const calls = html("div", { class: "lab-calls" });
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
  const edited = () => { state.said = ""; refill(said); judge(); };
  const said = html("p", { class: "lab-note lab-guard-said", role: "status" }, state.said);
  const form = html("div", { class: "lab-guard-form" },
    state.values.map((value) => inputRow(value, edited)),
    html("div", { class: "lab-guard-actions" },
      html("button", { type: "button", onclick: () => reset(view, state, refillForm) }, "as it was"),
      html("button", {
        type: "button", class: "lab-run-it", title: "call the compiled function with these inputs",
        onclick: async () => {
          await runIt(view, state, context, said, judge);
          refill(calls, callTable(state.calls));
        },
      }, "run it")));
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

const copy = (data) => JSON.parse(JSON.stringify(data));

function reset(view, state, refillForm) {
  state.values = copy(view.inputs);
  refillForm();
}

/** What differs from the inspected call: `{source: facts}`. */
function edits(view, values) {
  const changed = {};
  values.forEach((value, i) => {
    for (const [name, now] of Object.entries(value)) {
      if (String(now) === String(view.inputs[i][name]) || name === "stride") continue;
      (changed[value.source] ||= {})[name] = now;
    }
  });
  return changed;
}

async function runIt(view, state, context, said, judge) {
  said.textContent = "running …";
  const answer = await context.whatIf.line.ask({ show: "again", edits: edits(view, state.values) });
  state.said = answer.error || answer.verdict;
  if (answer.entry) view.entries.push(answer.entry);
  if (answer.call) {
    const now = performance.now();
    state.first ??= now;
    state.calls.push({ ...answer.call, at: `${((now - state.first) / 1000).toFixed(1)} s` });
  }
  judge();
  said.textContent = state.said;
}

/** When the function was called from here, what came of it, and which guards asked for that. */
function callTable(calls) {
  if (!calls.length) return null;
  const head = ["call", "at", "took", "what", "guards that failed"];
  return html("table", {}, html("caption", {}, "calls from here"),
    html("thead", {}, html("tr", {}, head.map((name) => html("th", {}, name)))),
    html("tbody", {}, calls.map(({ at, took, what, why }, i) => html("tr", {},
      [i + 1, at, took, what, why.join("\n")].map((cell) => html("td", {}, String(cell)))))));
}

const callText = (calls) => calls.map(({ at, took, what, why }, i) => (
  `call ${i + 1} at ${at}, ${took}: ${[what, ...why].join("; ")}\n`)).join("");

function inputRow(value, edited) {
  const fields = value.kind === "tensor" ? tensorFields(value, edited) : [plainField(value, edited)].flat();
  return html("div", { class: "lab-guard-input", "data-input": value.name },
    html("b", {}, value.name), fields);
}

function tensorFields(value, edited) {
  const change = (name, now) => {
    value[name] = now;
    if (name === "size") value.stride = null;
    edited();
  };
  const refused = html("span", { class: "lab-refused", role: "alert" });
  const sizes = html("input", {
    value: value.size.join(", "), size: wide(value.size.join(", ")), "aria-label": `size of ${value.name}`, "data-fact": "size",
    oninput: (event) => {
      const parts = event.target.value.split(",").map((part) => part.trim()).filter(Boolean);
      const bad = parts.some((part) => !/^\d{1,9}$/.test(part));
      event.target.size = wide(event.target.value);
      refuse(event.target, refused, bad, "whole numbers, such as 8, 16");
      if (!bad) change("size", parts.map(Number));
    },
  });
  const known = DTYPES.includes(value.dtype) ? DTYPES : [value.dtype, ...DTYPES];
  const dtype = html("select", {
    "aria-label": `dtype of ${value.name}`, "data-fact": "dtype",
    onchange: () => change("dtype", dtype.value),
  }, known.map((name) => html("option", { selected: name === value.dtype }, name)));
  const grad = html("input", {
    type: "checkbox", checked: value.requires_grad, "data-fact": "requires_grad",
    onchange: (event) => change("requires_grad", event.target.checked),
  });
  return ["[", sizes, "]", refused, dtype, html("label", {}, grad, " requires_grad")];
}

function plainField(value, edited) {
  if (value.kind === "bool") {
    return html("input", {
      type: "checkbox", checked: value.value, "aria-label": value.name, "data-fact": "value",
      onchange: (event) => { value.value = event.target.checked; edited(); },
    });
  }
  const refused = html("span", { class: "lab-refused", role: "alert" });
  const whole = value.kind === "int";
  const field = html("input", {
    value: String(value.value), "aria-label": value.name, "data-fact": "value",
    size: wide(String(value.value)),
    oninput: (event) => {
      const text = event.target.value;
      const number = text.trim() ? Number(text) : NaN;
      const bad = value.kind !== "str" && (Number.isNaN(number) || (whole && !Number.isInteger(number)));
      event.target.size = wide(text);
      refuse(event.target, refused, bad, whole ? "a whole number" : "a number");
      if (bad) return;
      value.value = value.kind === "str" ? text : Number(text);
      edited();
    },
  });
  return [field, refused];
}

/** Columns of a field that shows all of its text. */
const wide = (text) => Math.min(Math.max(text.length + 1, 8), 60);

/** Say beside a field what it takes, while it holds something else. */
function refuse(field, said, bad, what) {
  field.setAttribute("aria-invalid", String(bad));
  said.textContent = bad ? what : "";
}

/** "hit" or "recompile", and for a recompile the first guard that fails with its source line. */
function verdictParts(view, found, hit, values, context) {
  if (hit >= 0) {
    const which = view.entries.length > 1 ? ` ${view.entries[hit].title}` : "";
    return [html("b", {}, "hit"), ` all guards hold: the compiled code${which} is used again`];
  }
  const last = view.entries[found.length - 1];
  const check = last.checks[found[found.length - 1].indexOf("fails")];
  const [text, condition, , where, things] = check;
  const link = where ? html("button", {
    type: "button", onclick: () => things.length && context.selection.pin(things),
  }, where) : null;
  return [html("b", {}, "recompile"), " the first guard that fails: ", html("code", {}, text), " ",
    mismatch(condition, values), " ", link];
}

/** Of a tensor, what is not as its guard wants it: `(size is 50)`. */
function mismatch([kind, source, dtype, needsGrad, sizes], values) {
  if (kind !== "tensor") return "";
  const input = values.find((value) => value.source === source);
  if (input.dtype !== dtype) return `(dtype is ${input.dtype})`;
  if (!agree(sizes, input.size)) return `(size is ${input.size.join(", ")})`;
  if (input.requires_grad !== needsGrad) return `(requires_grad is ${input.requires_grad})`;
  return `(stride is ${strides(input).join(", ")})`;
}

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
      class: `lab-sign ${{ holds: "ok", fails: "no" }[states[i]] || ""}`,
      title: states[i] === "unknown" ? "of nothing that can be edited here" : states[i],
    }, STATES[states[i]]), text), html("td", {}, kind), html("td", {}, where));
    shown.shows.add(row, things);
    shown.rows.push({ element: row, text: `${STATES[states[i]]} ${text}\t${kind}\t${where}` });
    return row;
  });
  const heads = [`guards of ${entry.title}`, "kind", "asked for at"];
  return html("table", {}, html("thead", {}, html("tr", {},
    heads.map((head) => html("th", { scope: "col" }, head)))), html("tbody", {}, rows));
}

/** The state of each guard: holds, fails, or unknown where it is about nothing editable. */
function judged(checks, values) {
  const inputs = new Map(values.map((value) => [value.source, value]));
  return checks.map(([, condition]) => {
    const value = condition ? evaluate(condition, inputs) : undefined;
    return value === undefined ? "unknown" : value ? "holds" : "fails";
  });
}

/** The value of a condition; undefined where it speaks of what is not known here. */
function evaluate([kind, ...rest], inputs) {
  const [first, second] = rest;
  if (kind === "const") return first;
  if (kind === "compare") return compare(first, second.map((each) => evaluate(each, inputs)));
  if (kind === "op") return OPERATORS[first](...second.map((each) => evaluate(each, inputs)));
  const input = inputs.get(first);
  if (!input) return undefined;
  if (kind === "input") return input.value;
  if (kind === "size") return input.size?.[second];
  if (kind === "stride") return strides(input)?.[second];
  if (kind === "type") return input.kind === second || (input.kind === "tensor" && /Tensor|Parameter/.test(second));
  return input.kind === "tensor" ? sameTensor(input, rest) : undefined;
}

function sameTensor(input, [, dtype, needsGrad, sizes, steps]) {
  return input.dtype === dtype && input.requires_grad === needsGrad && agree(sizes, input.size)
    && agree(steps, strides(input));
}

/** Numbers as a guard wants them; null is any number. */
function agree(wanted, found) {
  return wanted.length === found.length
    && wanted.every((each, i) => each === null || each === found[i]);
}

function strides({ size, stride }) {
  if (stride || !size) return stride;
  return size.map((_, i) => size.slice(i + 1).reduce((all, each) => all * Math.max(each, 1), 1));
}

function compare(signs, values) {
  if (values.includes(undefined)) return undefined;
  return signs.every((sign, i) => RELATIONS[sign](values[i], values[i + 1]));
}

const RELATIONS = {
  "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b,
  "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
};

const known = (compute) => (...values) => (
  values.includes(undefined) ? undefined : compute(...values));

const OPERATORS = {
  "+": known((a, b) => a + b), "-": known((a, b) => a - b), "*": known((a, b) => a * b),
  "//": known((a, b) => Math.floor(a / b)), "%": known((a, b) => a - b * Math.floor(a / b)),
  "**": known((a, b) => a ** b), neg: known((a) => -a), not: known((a) => !a),
  isnan: known((a) => Number.isNaN(a)), min: known(Math.min), max: known(Math.max),
  and: known((...all) => all.every(Boolean)), or: known((...all) => all.some(Boolean)),
};
