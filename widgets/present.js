// For an audience: large type, and links to a line (`report.html#g0.forward.code/12`).

/** Large type, on or off. */
export function togglePresenter(root) {
  root.classList.toggle("presenting");
}

/** How much larger than in the style sheet an element is drawn. */
export function enlarged(root) {
  return root.getBoundingClientRect().width / root.offsetWidth || 1;
}

/** Keep the address of a page and what it shows together: `#pane/line`, counted from 1.  The address
 * of a notebook is not ours. */
export function deepLinks(explorer) {
  const { root } = explorer;
  if (!root.classList.contains("lab-page")) return;
  const held = new WeakRef(explorer);
  addEventListener("hashchange", function changed() {
    const alive = held.deref();
    if (alive) follow(alive);
    else removeEventListener("hashchange", changed);
  });
  root.addEventListener("click", (event) => {
    const line = event.target.closest(".lab-line");
    const pane = line?.closest(".lab-pane")?.dataset.pane;
    if (pane && line.dataset.line) history.replaceState(null, "", address(pane, line));
  });
  follow(explorer);
}

const address = (pane, line) => `#${pane}/${Number(line.dataset.line) + 1}`;

function follow(explorer) {
  const [id, line] = decodeURIComponent(location.hash.slice(1)).split("/");
  const pane = explorer.doc.panes[id];
  if (!pane) return;
  const text = line ? pane.views.findIndex((view) => view.kind === "text") : -1;
  const slot = explorer.show(id, false, text < 0 ? null : text);
  if (text >= 0) slot.view.goTo(Number(line));
}
