// A page that Python made as a tree `[tag, attributes, ...children]`: build it, keep it alive.

import { copyText, html, svg } from "./dom.js";

/** The element of a tree; strings become text, whatever they contain. */
export function build(node, make = html) {
  if (typeof node === "string") return node;
  const [tag, attributes, ...children] = node;
  const inside = tag === "svg" ? svg : make;
  return inside(tag, attributes, ...children.map((child) => build(child, inside)));
}

/** Put a button that copies before each Markdown text. */
export function addButtons(root) {
  for (const text of root.querySelectorAll(".lab-markdown")) {
    const button = html("button", {
      type: "button",
      onclick: async () => {
        await copyText(text.textContent);
        button.textContent = "copied";
        setTimeout(() => { button.textContent = "Copy as Markdown"; }, 1500);
      },
    }, "Copy as Markdown");
    text.closest("details").before(button);
  }
}

/** Draw what the model holds, whenever that changes; seconds go on between the changes. */
export function follow(model, root) {
  let shown = performance.now();
  const draw = () => {
    root.replaceChildren(build(model.get("tree")));
    shown = performance.now();
  };
  const count = () => {
    const label = root.querySelector(".lab-since");
    if (!label) return;
    const seconds = Number(label.dataset.since) + (performance.now() - shown) / 1000;
    label.textContent = `${seconds.toFixed(1)} s`;
  };
  model.on("change:tree", draw);
  draw();
  const clock = setInterval(count, 100);
  return () => {
    clearInterval(clock);
    model.off("change:tree", draw);
  };
}
