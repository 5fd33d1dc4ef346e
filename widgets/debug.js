// A compiled call that is stepped through: Python holds it, the page has the buttons.

import { build } from "./bench.js";

/** Draw what the model holds; a button with `data-do` sends that word. */
export function steps(model, root) {
  const draw = () => root.replaceChildren(build(model.get("tree")));
  const ask = (event) => {
    const button = event.target.closest("[data-do]");
    if (button) model.send({ do: button.dataset.do });
  };
  root.addEventListener("click", ask);
  model.on("change:tree", draw);
  draw();
  return () => {
    root.removeEventListener("click", ask);
    model.off("change:tree", draw);
  };
}
