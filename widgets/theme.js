// Light or dark: as the notebook is, as the system is, or as the person chose.

/** Set `data-theme` on the root and keep it right until the person chooses. */
export function followTheme(root) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    if (!root.dataset.chosen) root.dataset.theme = notebookTheme() || (system.matches ? "dark" : "light");
  };
  system.addEventListener("change", apply);
  new MutationObserver(apply).observe(document.body, { attributes: true });
  apply();
}

export function toggleTheme(root) {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  root.dataset.chosen = "yes";
}

/** JupyterLab and VS Code say it on the body; others leave it to the system. */
function notebookTheme() {
  const { body } = document;
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "false" ? "dark" : "light";
  if (body.dataset.vscodeThemeKind) {
    return body.dataset.vscodeThemeKind.includes("light") ? "light" : "dark";
  }
  return null;
}
