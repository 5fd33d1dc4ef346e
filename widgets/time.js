// When each phase of the compiler ran: bars over time, with a Chrome trace to take away.

import { download, html } from "./dom.js";

const ROW = 20;

/** One block for each track; a phase stands below the one that it is a part of. */
export function timelineView(view) {
  const bars = view.tracks.flatMap((track) => track.bars);
  const end = Math.max(...bars.map(([, , start, took]) => start + took), 1e-9);
  const elements = [];
  const tracks = view.tracks.map((track) => {
    const rows = Math.max(...track.bars.map(([row]) => row), 0) + 1;
    const area = html("div", { class: "lab-track", style: `height:${rows * ROW}px` });
    for (const [row, name, start, took, text] of track.bars) {
      const bar = html("div", {
        class: "lab-phase", title: `${name}: ${text}`, "data-phase": name,
        style: `top:${row * ROW}px;left:${(100 * start / end).toFixed(3)}%;`
          + `width:${(100 * took / end).toFixed(3)}%`,
      }, `${name} ${text}`);
      elements.push(bar);
      area.append(bar);
    }
    return [html("h3", {}, track.title), area];
  });
  const save = html("button", {
    type: "button", class: "lab-save-trace",
    title: "a file that ui.perfetto.dev and chrome://tracing open",
    onclick: () => download(`${view.title}.trace.json`, "application/json",
      JSON.stringify(chromeTrace(view))),
  }, "save as Chrome trace");
  const element = html("div", { class: "lab-timeline", tabindex: 0 },
    html("p", { class: "lab-note" }, "From the start of the call to its end. ", save), tracks.flat());
  return {
    element,
    light: () => {},
    find: (query) => elements.filter((bar) => bar.textContent.toLowerCase().includes(query)),
    text: () => bars.map(([row, name, , , text]) => `${"  ".repeat(row)}${name}\t${text}\n`).join(""),
  };
}

/** As `Compilation.trace` writes it (trace.py): complete events in microseconds. */
function chromeTrace({ title, tracks }) {
  const micro = (seconds) => Math.round(1e7 * seconds) / 10;
  const named = tracks.map((track, tid) => (
    { ph: "M", name: "thread_name", pid: 1, tid, args: { name: track.title } }));
  named.push({ ph: "M", name: "process_name", pid: 1, args: { name: `compile ${title}` } });
  const events = tracks.flatMap((track, tid) => track.bars.map(([, name, start, took]) => (
    { ph: "X", name, cat: track.title, pid: 1, tid, ts: micro(start), dur: micro(took) })));
  return { traceEvents: [...named, ...events], displayTimeUnit: "ms" };
}
