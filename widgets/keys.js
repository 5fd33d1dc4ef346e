// Keys of the whole explorer; those of one view are in the view.

/** Listen while the page's focus is in the explorer, or nowhere in particular. */
export function keyboard(explorer) {
  const { root } = explorer;
  document.addEventListener("keydown", (event) => {
    if (!root.isConnected) return;
    const inside = root.contains(event.target);
    if (!inside && event.target !== document.body) return;
    if (event.key === "Escape") return escape(explorer);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName)) return;
    const action = ACTIONS[event.key];
    if (action) {
      action(explorer);
      event.preventDefault();
      event.stopPropagation();
    }
  });
}

/** JupyterLab has keys of its own (`d d` deletes a cell); it spares elements with this mark. */
export function keepKeys(root) {
  root.addEventListener("focusin", (event) => {
    event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
}

const ACTIONS = {
  "[": (explorer) => step(explorer, -1),
  "]": (explorer) => step(explorer, 1),
  "/": (explorer) => explorer.search.focus(),
  "?": (explorer) => explorer.help(),
  d: (explorer) => showDiff(explorer),
  f: (explorer) => explorer.focused.view.fit?.(),
  "+": (explorer) => explorer.focused.view.zoom?.(1.25),
  "=": (explorer) => explorer.focused.view.zoom?.(1.25),
  "-": (explorer) => explorer.focused.view.zoom?.(0.8),
};

function escape(explorer) {
  explorer.root.querySelector(".lab-help")?.remove();
  if (explorer.search.value) {
    explorer.search.value = "";
    explorer.find("");
  }
  explorer.search.blur();
  explorer.selection.clear();
}

function step(explorer, by) {
  const { order, focused } = explorer;
  const next = (order.indexOf(focused.id) + by + order.length) % order.length;
  explorer.fill(focused, order[next]);
  focused.view.element.focus({ preventScroll: true });
}

function showDiff(explorer) {
  const { id } = explorer.focused;
  const index = explorer.doc.panes[id].views.findIndex((view) => view.name.includes("diff"));
  if (index >= 0) explorer.show(id, false, index);
}
