/**
 * Builds the playground into apps/dist/playground: static files alone, which any host serves.
 *
 *   index.html  page.js  page.css     the page: editor and views
 *   sandbox.html                      the frame that programs run in
 *   worker.js                         the library, and what runs programs with it; fetched as text
 *   service.js  types.json            TypeScript and the declarations of the library; loaded when somebody edits
 *   offline.js                        keeps all of it for the next time without a network
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const apps = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const root = resolve(apps, "..");
const source = join(apps, "playground");
export const output = join(apps, "dist", "playground");

/** Modules that need Node, with those that stand in for them in a browser, as package.json names them. */
function browserModules() {
  const { browser } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const inSource = (path) => resolve(root, path.replace("./dist/", "src/").replace(/\.js$/, ".ts"));
  return new Map(Object.entries(browser).map(([from, to]) => [inSource(from), inSource(to)]));
}

const modules = browserModules();

const plugin = {
  name: "playground",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) => {
      const target = modules.get(resolve(resolveDir, path));
      return target === undefined ? undefined : { path: target };
    });
    onResolve({ filter: /^tilewright(\/\w+)?$/ }, ({ path }) => {
      const folder =
        path === "tilewright/emulator" ? "emulator/api" : path.slice("tilewright".length);
      return { path: join(root, "src", folder, "index.ts") };
    });
    onResolve({ filter: /\?text$/ }, ({ path, resolveDir }) => ({
      path: resolve(resolveDir, path.replace(/\?text$/, "")),
      namespace: "text",
    }));
    onLoad({ filter: /.*/, namespace: "text" }, ({ path }) => ({
      contents: readFileSync(path, "utf8"),
      loader: "text",
    }));
  },
};

const shared = {
  bundle: true,
  minify: true,
  target: "es2022",
  outdir: output,
  plugins: [plugin],
  legalComments: "none",
  logLevel: "warning",
};

/** The declarations of the library and of what examples import, by the path that the service knows them under. */
function declarations() {
  const folder = join(apps, "dist", "declarations");
  const compiler = join(root, "node_modules", ".bin", "tsc");
  const options = ["--emitDeclarationOnly", "--outDir", folder];
  execFileSync(compiler, ["-p", join(root, "tsconfig.build.json"), ...options], {
    stdio: "inherit",
  });
  const files = {};
  const walk = (directory) => {
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      if (statSync(path).isDirectory()) walk(path);
      else if (name.endsWith(".d.ts"))
        files[`/node_modules/tilewright/${relative(folder, path)}`] = readFileSync(path, "utf8");
    }
  };
  walk(folder);
  for (const folder of ["", "support/"])
    for (const name of readdirSync(join(root, "examples", folder)))
      if (name.endsWith(".ts"))
        files[`/${folder}${name}`] = readFileSync(join(root, "examples", folder, name), "utf8");
  return files;
}

/** The declarations of the language itself, those that are referred to included. */
function languageDeclarations() {
  const folder = join(apps, "node_modules", "typescript", "lib");
  const files = {};
  const add = (name) => {
    if (`/lib/${name}` in files) return;
    const text = readFileSync(join(folder, name), "utf8");
    files[`/lib/${name}`] = text;
    for (const [, other] of text.matchAll(/<reference lib="([^"]+)"/g)) add(`lib.${other}.d.ts`);
  };
  add("lib.es2023.d.ts");
  return files;
}

/** Files that a page without network needs; TypeScript is kept once somebody has needed it. */
const kept = ["index.html", "sandbox.html", "page.js", "worker.js", "style.css", "icon.svg"];

/** A number that changes when one of the files does. */
function versionOf(files) {
  const hash = createHash("sha256");
  for (const name of files) hash.update(readFileSync(join(output, name)));
  return hash.digest("hex").slice(0, 16);
}

export async function buildPlayground() {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  await build({
    ...shared,
    entryPoints: { page: join(source, "src/page/main.tsx") },
    format: "esm",
    jsx: "automatic",
    jsxImportSource: "preact",
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
  });
  await build({
    ...shared,
    entryPoints: { worker: join(source, "src/worker/main.ts") },
    format: "iife",
    // Workers of the emulator's own are only for pages that share memory, which a frame without origin cannot.
    define: { "import.meta.url": '"about:blank"' },
  });
  await build({
    ...shared,
    entryPoints: { service: join(source, "src/service/main.ts") },
    format: "iife",
    // TypeScript asks for these where it runs on Node.
    external: [
      "fs",
      "path",
      "os",
      "inspector",
      "perf_hooks",
      "source-map-support",
      "crypto",
      "module",
      "url",
    ],
    define: { process: "undefined", require: "undefined" },
    logLevel: "error",
  });
  const types = { ...languageDeclarations(), ...declarations() };
  writeFileSync(join(output, "types.json"), JSON.stringify(types));
  for (const name of ["index.html", "sandbox.html", "style.css", "icon.svg"])
    cpSync(join(source, name), join(output, name));
  const offline = readFileSync(join(source, "offline.mjs"), "utf8")
    .replace('"VERSION"', JSON.stringify(versionOf(kept)))
    .replace('["FILES"]', JSON.stringify(["./", ...kept]));
  writeFileSync(join(output, "offline.js"), offline);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPlayground();
