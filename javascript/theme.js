// Light or dark theme: the choice of the user, else that of the notebook, else that of the system.

/**
 * Set `data-theme` on the root, and update it until the user chooses a theme.
 *
 * @param {HTMLElement} root
 */
export function followTheme(root) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const held = new WeakRef(root);
  const apply = () => {
    const alive = held.deref();
    if (!alive) {
      system.removeEventListener("change", apply);
      body.disconnect();
    } else if (!alive.dataset.chosen) {
      alive.dataset.theme = notebookTheme() || (system.matches ? "dark" : "light");
    }
  };
  const body = new MutationObserver(apply);
  system.addEventListener("change", apply);
  body.observe(document.body, { attributes: true });
  apply();
}

/** @param {HTMLElement} root */
export function toggleTheme(root) {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  root.dataset.chosen = "yes";
}

/** The theme of JupyterLab, VS Code and marimo, an attribute of the body; null in other front ends. */
function notebookTheme() {
  const { body } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false" ? "dark" : "light";
  if (body.dataset.vscodeThemeKind) {
    return body.dataset.vscodeThemeKind.includes("light") ? "light" : "dark";
  }
  const { theme } = body.dataset;
  return theme === "light" || theme === "dark" ? theme : null;
}
