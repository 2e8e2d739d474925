// node build.mjs MODULES PAGE: bundles src/ with the packages below MODULES into one HTML file. Nothing
// in it names another file or host, and its policy lets nothing run but this very script.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [modules, page] = process.argv.slice(2).map((path) => resolve(path));
const { build, transform } = createRequire(join(modules, "x"))(join(modules, "esbuild"));

const bundle = await build({
  absWorkingDir: here,
  entryPoints: ["src/main.js"],
  nodePaths: [modules],
  bundle: true,
  minify: true,
  format: "iife",
  target: ["chrome100", "firefox100", "safari15"],
  charset: "ascii", // the page is right whatever a reader takes its encoding for
  legalComments: "none", // whole licences stand in a comment of the page
  metafile: true,
  write: false,
});
const script = bundle.outputFiles[0].text.trim();
const css = readFileSync(join(here, "style.css"), "utf8");
const style = (await transform(css, { loader: "css", minify: true })).code.trim();

// Of what went into the bundle, not of what was merely installed: ISC wants its text in every copy.
function licences() {
  const names = new Set();
  const [{ inputs }] = Object.values(bundle.metafile.outputs);
  for (const input of Object.keys(inputs).filter((name) => inputs[name].bytesInOutput > 0)) {
    const found = input.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (found) names.add(found[1]);
  }
  return [...names].sort().map((name) => {
    const { version, license } = JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8"));
    const text = readFileSync(join(modules, name, "LICENSE"), "utf8").trim();
    return `${name} ${version} (${license})\n\n${text}`;
  });
}

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const parts = {
  POLICY: `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; base-uri 'none'; form-action 'none'`,
  LICENCES: licences().join("\n\n").replaceAll("--", "- -"),
  STYLE: style,
  SCRIPT: script,
};
const html = readFileSync(join(here, "page.html"), "utf8").replace(
  /@([A-Z]+)@/g,
  (all, name) => parts[name] ?? all,
);
if (/<\/script|<!--/i.test(script) || html.split("@DATA@").length !== 2)
  throw new Error("the bundle would end its own element, or the page has no single place for data");

mkdirSync(dirname(page), { recursive: true });
writeFileSync(`${page}.new`, html);
renameSync(`${page}.new`, page);
