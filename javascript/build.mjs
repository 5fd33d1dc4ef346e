// Bundles the modules for the pages: `npm run build` writes widgets/built, which is committed so that
// installing the package does not need node.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const into = process.argv[2] || join(here, "..", "widgets", "built");

/** The hash of all modules, which tests/project/test_javascript.py also computes. */
function sourcesHash() {
  const hash = createHash("sha256");
  for (const name of readdirSync(here).filter((each) => each.endsWith(".js")).sort()) {
    hash.update(`${name}\n${readFileSync(join(here, name), "utf8")}`);
  }
  return hash.digest("hex").slice(0, 16);
}

/** Remove type comments inside expressions, which esbuild would keep. */
const withoutTypes = {
  name: "without types",
  setup: (each) => each.onLoad({ filter: /\.js$/ }, ({ path }) => ({
    contents: readFileSync(path, "utf8").replace(/\/\*\* @type \{[^*]*\} \*\/ ?/g, ""),
  })),
};

mkdirSync(into, { recursive: true });
const banner = `// Made by \`npm run build\` in javascript, from sources ${sourcesHash()}.`;
for (const name of ["page", "line", "bench"]) {
  const { outputFiles: [file] } = await build({
    absWorkingDir: here,
    entryPoints: [`${name}_entry.js`],
    bundle: true,
    write: false,
    format: "iife",
    globalName: "inductorLab",
    target: "es2022",
    charset: "utf8",
    legalComments: "none",
    plugins: [withoutTypes],
    banner: { js: banner },
  });
  writeFileSync(join(into, `${name}.js`), file.text);
}
