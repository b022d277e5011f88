// Bundles what the browser gets into gateway/static/dist: content-hashed scripts, styles and fonts,
// manifest.json (name -> file), icons.json (name -> inline SVG) and the licences of what is inside.
// `--watch` rebuilds on change. Nothing here is fetched: npm has put it in node_modules before.
import { mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { watch } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import esbuild from "esbuild";

const STATIC = path.dirname(fileURLToPath(import.meta.url));
const ROOT = path.resolve(STATIC, "../..");
const DIST = path.join(STATIC, "dist");
const TEMPLATES = path.resolve(STATIC, "../templates");
const MODULES = path.join(ROOT, "node_modules");

/** The chat page must open on a slow phone: its script, without the languages loaded later. */
const CHAT_BUDGET_BYTES = 120 * 1024;

async function filesUnder(folder, extensions) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && extensions.includes(path.extname(entry.name)))
    .map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
    .sort();
}

/** Every name drawn with icon('…') or { icon: "…" }, and those that a page picks by value: `icons: a b c`. */
async function iconNames() {
  const sources = [
    ...(await filesUnder(TEMPLATES, [".html"])),
    ...(await filesUnder(path.join(STATIC, "js"), [".js"])),
  ];
  const names = new Set();
  for (const source of sources) {
    const text = await readFile(source, "utf8");
    for (const [, name] of text.matchAll(/\bicon(?:\(|:\s*)["']([a-z0-9-]+)["']/g)) names.add(name);
    for (const [, list] of text.matchAll(/\bicons: ([a-z0-9 -]+[a-z0-9])/g))
      list.split(" ").forEach((name) => names.add(name));
  }
  return [...names].sort();
}

/** The shapes of one icon: our own drawing if there is one, else lucide's. */
async function iconShapes(name) {
  const own = path.join(STATIC, "icons", `${name}.svg`);
  const lucide = path.join(MODULES, "lucide-static/icons", `${name}.svg`);
  const svg = await readFile(own, "utf8").catch(() => readFile(lucide, "utf8"));
  return [...svg.matchAll(/<(path|circle|rect|line|polyline|polygon|ellipse)\b([^>]*?)\/?>/g)].map(
    ([, tag, attributes]) => [
      tag,
      Object.fromEntries([...attributes.matchAll(/([\w-]+)="([^"]*)"/g)].map((m) => m.slice(1))),
    ],
  );
}

function iconMarkup(name, shapes) {
  const inner = shapes
    .map(
      ([tag, attributes]) =>
        `<${tag} ${Object.entries(attributes)
          .map(([k, v]) => `${k}="${v}"`)
          .join(" ")}/>`,
    )
    .join("");
  return `<svg class="icon icon-${name}" viewBox="0 0 24 24" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true" focusable="false">${inner}</svg>`;
}

async function readIcons() {
  const icons = {};
  for (const name of await iconNames()) icons[name] = await iconShapes(name);
  return icons;
}

/** Lets scripts `import icons from "alcove:icons"`: shapes as data, drawn without an HTML string. */
function iconsPlugin(icons) {
  return {
    name: "icons",
    setup(build) {
      build.onResolve({ filter: /^alcove:icons$/ }, (args) => ({ path: args.path, namespace: "icons" }));
      build.onLoad({ filter: /.*/, namespace: "icons" }, () => ({
        contents: JSON.stringify(icons),
        loader: "json",
      }));
    },
  };
}

function manifestOf(metafile) {
  const manifest = {};
  for (const [file, output] of Object.entries(metafile.outputs)) {
    if (output.entryPoint)
      manifest[path.basename(output.entryPoint)] = path.relative(DIST, path.resolve(ROOT, file));
  }
  return manifest;
}

/** What one entry loads before anything is asked for later: itself and its static imports. */
async function eagerBytes(metafile, entry) {
  const outputs = metafile.outputs;
  const first = Object.keys(outputs).find((file) => outputs[file].entryPoint?.endsWith(entry));
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const imported of outputs[file].imports)
      if (imported.kind === "import-statement") visit(imported.path);
  };
  visit(first);
  const sizes = await Promise.all(
    [...seen].map(async (file) => gzipSync(await readFile(path.resolve(ROOT, file)), { level: 9 }).length),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function licences() {
  const { dependencies } = JSON.parse(await readFile(path.join(ROOT, "package.json"), "utf8"));
  const texts = await Promise.all(
    Object.keys(dependencies).map(
      async (name) => `${name}\n\n${await readFile(path.join(MODULES, name, "LICENSE"), "utf8")}`,
    ),
  );
  return texts.join(`\n${"-".repeat(72)}\n\n`);
}

async function build() {
  const started = performance.now();
  const icons = await readIcons();
  await rm(DIST, { recursive: true, force: true });
  await mkdir(DIST, { recursive: true });
  const { metafile } = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: [
      "gateway/static/js/chat.js",
      "gateway/static/js/page.js",
      "gateway/static/css/app.css",
      "gateway/static/icons/favicon.svg",
    ],
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    outdir: DIST,
    bundle: true,
    splitting: true,
    format: "esm",
    target: ["chrome123", "firefox121", "safari17.5"],
    minify: true,
    sourcemap: false,
    legalComments: "none",
    loader: { ".woff2": "file", ".svg": "copy" },
    plugins: [iconsPlugin(icons)],
    metafile: true,
    logLevel: "warning",
  });
  const markup = Object.fromEntries(
    Object.entries(icons).map(([name, shapes]) => [name, iconMarkup(name, shapes)]),
  );
  await writeFile(path.join(DIST, "manifest.json"), JSON.stringify(manifestOf(metafile), null, 2));
  await writeFile(path.join(DIST, "icons.json"), JSON.stringify(markup, null, 2));
  await writeFile(path.join(DIST, "LICENCES.txt"), await licences());
  const chat = await eagerBytes(metafile, "js/chat.js");
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(
    `pages built in ${seconds} s; chat script ${(chat / 1024).toFixed(1)} KB gzipped of ${CHAT_BUDGET_BYTES / 1024}`,
  );
  if (chat > CHAT_BUDGET_BYTES) throw new Error("the chat script is over its budget");
}

await build();
if (process.argv.includes("--watch")) {
  let timer;
  const again = () => {
    clearTimeout(timer);
    timer = setTimeout(() => build().catch((error) => console.error(error.message)), 100);
  };
  for (const folder of ["js", "css", "icons"]) watch(path.join(STATIC, folder), { recursive: true }, again);
  watch(TEMPLATES, { recursive: true }, again);
}
