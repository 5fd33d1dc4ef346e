// Numbered lines of source or generated code; every line knows the things that it shows.

import { colourWhenSeen } from "./colours.js";
import { html } from "./dom.js";
import { kernelEditor } from "./edit.js";
import { Shows } from "./selection.js";

let views = 0;

const CHUNK = 200;
const LINE_HEIGHT = 18.75;

/** Draw a text view; returns what every view returns: `{element, light, find, text}`; of kernels also
 * `{actions, above}`, for the head of the pane and what stands over the lines. */
export function textView(view, context) {
  const id = `lab-text-${views++}`;
  const element = html("div", {
    class: "lab-text", tabindex: 0, role: "listbox", "aria-label": `${view.name}, lines`,
  });
  const shows = new Shows(element);
  const lines = [];
  for (const block of view.blocks) {
    const body = html("div", { class: "lab-block" });
    if (block.title) {
      const style = block.title === "⋯" ? "lab-block-title gap" : "lab-block-title";
      body.append(html("div", { class: style }, block.title));
    }
    const chunks = inChunks(block.lines.map((line, i) => lineElement(
      line, block.first ? block.first + i : "", `${id}-${lines.length}`, shows, lines, context)));
    colourWhenSeen(chunks, CHUNK, block.lines, block.language);
    body.append(...chunks);
    element.append(body);
  }
  listenToLines(element, lines, context.selection);
  return {
    element,
    ...kernelEditor(view, context),
    light: (lit, scroll) => {
      shows.light(lit);
      if (scroll) shows.first()?.scrollIntoView({ block: "nearest" });
    },
    goTo: (number) => {
      const line = lines[number - 1];
      if (!line) return;
      if (line.things.length) context.selection.pin(line.things);
      markCurrent(line, true);
      line.element.scrollIntoView({ block: "center" });
    },
    find: (query) => lines.filter((l) => l.text.toLowerCase().includes(query)).map((l) => l.element),
    text: () => lines.map((line) => line.text).join("\n") + "\n",
  };
}

/** Elements of one line each, in pieces that the browser lays out when they come into sight. */
export function inChunks(elements) {
  const chunks = [];
  for (let start = 0; start < elements.length; start += CHUNK) {
    const part = elements.slice(start, start + CHUNK);
    const chunk = html("div", { class: "lab-chunk" }, part);
    chunk.style.containIntrinsicHeight = `auto ${part.length * LINE_HEIGHT}px`;
    chunks.push(chunk);
  }
  return chunks;
}

const MARKS = { "+": "added", "-": "removed", "@": "gap" };

function lineElement([text, things = [], mark = ""], number, id, shows, lines, { links }) {
  const cue = links.cue(things);
  const row = html("div", {
    id,
    role: text.trim() ? "option" : "presentation",
    "aria-selected": text.trim() ? "false" : null,
    class: ["lab-line", things.length ? "linked" : "", MARKS[mark] || ""].filter(Boolean).join(" "),
    "data-line": lines.length,
    "data-hue": cue ? cue.hue : null,
  },
  html("span", { class: "lab-no", "aria-hidden": "true" }, String(number)),
  html("span", { class: "lab-cue", title: cue ? `from ${cue.title}` : null },
    cue && links.kind[things[0]] !== "source" ? cue.number : ""),
  html("span", { class: "lab-mark" }, mark === "@" ? "" : mark),
  html("code", {}, text || " "));
  lines.push({ element: row, text, things });
  shows.add(row, things);
  return row;
}

function markCurrent(line, is) {
  line?.element.classList.toggle("current", is);
  if (line?.text.trim()) line.element.setAttribute("aria-selected", String(is));
}

function listenToLines(element, lines, selection) {
  let current = -1;
  const lineOf = (event) => {
    const row = event.target.closest(".lab-line");
    return row ? lines[Number(row.dataset.line)] : null;
  };
  element.addEventListener("mouseover", (event) => selection.preview(lineOf(event)?.things || []));
  element.addEventListener("mouseleave", () => selection.preview([]));
  element.addEventListener("click", (event) => {
    const line = lineOf(event);
    if (line && line.things.length && !String(getSelection())) selection.pin(line.things);
  });
  element.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      markCurrent(lines[current], false);
      current = Math.max(0, Math.min(lines.length - 1, current + step));
      const line = lines[current];
      markCurrent(line, true);
      line.element.scrollIntoView({ block: "nearest" });
      element.setAttribute("aria-activedescendant", line.element.id);
      selection.preview(line.things);
      event.preventDefault();
    } else if (event.key === "Enter" && lines[current]?.things.length) {
      selection.pin(lines[current].things);
    }
  });
}
