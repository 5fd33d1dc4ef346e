// Bundles the modules: `npm run build` writes widgets/built for the pages and labextension for
// JupyterLab.  Both are committed so that installing the package does not need node.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const root = process.argv[2] || dirname(here);
const pages = join(root, "widgets", "built");
const labextension = join(root, "javascript", "labextension");

/** What the extension says, in Chinese: the section `jupyterlab` of texts.toml, which is a table of
 * strings that are also JSON. */
function chinese() {
  const table = readFileSync(join(dirname(here), "inductor_lab", "notebook", "texts.toml"), "utf8");
  const [section] = table.split("\n[jupyterlab]\n")[1].split("\n[");
  const rows = section.matchAll(/^(".*?[^\\]") = (".*")$/gm);
  return Object.fromEntries([...rows].map(([, text, said]) => [JSON.parse(text), JSON.parse(said)]));
}

/** The hash of all modules and those texts, which tests/project/test_javascript.py also computes. */
function sourcesHash() {
  const hash = createHash("sha256");
  for (const name of readdirSync(here).filter((each) => each.endsWith(".js")).sort()) {
    hash.update(`${name}\n${readFileSync(join(here, name), "utf8")}`);
  }
  hash.update(JSON.stringify(chinese()));
  return hash.digest("hex").slice(0, 16);
}

/** Remove type comments inside expressions, which esbuild would keep. */
const withoutTypes = {
  name: "without types",
  setup: (each) => each.onLoad({ filter: /\.js$/ }, ({ path }) => ({
    contents: readFileSync(path, "utf8").replace(/\/\*\* @type \{[^*]*\} \*\/ ?/g, ""),
  })),
};

const hash = sourcesHash();

/** The text of a script; `more` are further options of esbuild. */
async function bundled(entry, more) {
  const { outputFiles: [file] } = await build({
    absWorkingDir: here,
    entryPoints: [entry],
    bundle: true,
    minify: true,
    write: false,
    format: "iife",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    plugins: [withoutTypes],
    banner: { js: `// Made by \`npm run build\` in javascript, from sources ${hash}.` },
    ...more,
  });
  return file.text;
}

/** What Jupyter reads about the extension; the hash makes browsers load a new version. */
function description() {
  const project = readFileSync(join(here, "..", "pyproject.toml"), "utf8");
  return {
    name: "inductor-lab",
    version: /^version = "(.*)"$/m.exec(project)[1],
    description: "Opens saved compilations of inductor_lab",
    license: "BSD-3-Clause",
    jupyterlab: { _build: { load: `static/remoteEntry.js?v=${hash}`, extension: "./plugin", mimeExtension: "./mime" } },
  };
}

mkdirSync(pages, { recursive: true });
for (const name of ["page", "line", "bench"]) {
  const text = await bundled(`${name}_entry.js`, { globalName: "inductorLab" });
  writeFileSync(join(pages, `${name}.js`), text);
}
mkdirSync(labextension, { recursive: true });
writeFileSync(join(labextension, "remoteEntry.js"), await bundled("jupyterlab_entry.js", {
  define: { CHINESE: JSON.stringify(chinese()) },
}));
writeFileSync(join(labextension, "package.json"), `${JSON.stringify(description(), null, 2)}\n`);
