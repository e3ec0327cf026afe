/**
 * Builds the playground into apps/dist/playground: static files alone, which any host serves.
 *
 *   index.html  style.css  page.js    the page with its views
 *   editor-….js                       the editor, loaded beside the page
 *   sandbox.html                      the frame that programs run in
 *   worker/*                          the library in parts, and what runs programs with it
 *   service.js  types.json            TypeScript and the declarations of the library; loaded when somebody edits
 *   offline.js                        keeps all of it for the next time without a network
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { apps, bundling, output, root, source } from "./bundle.mjs";
import { buildWorker, firstParts } from "./worker.mjs";

/**
 * The declarations of the library and of what examples import, by the path that the service knows them under. The library's are those of its
 * own build, which takes little where it has been made already.
 */
function declarations() {
  const compiler = join(root, "node_modules", ".bin", "tsc");
  // Types are checked elsewhere.
  execFileSync(compiler, ["-p", join(root, "tsconfig.build.json"), "--noCheck"], {
    stdio: "inherit",
  });
  const files = {};
  const [built, written] = [join(root, "dist"), join(root, "src")];
  for (const path of readdirSync(written, { recursive: true })) {
    const declared = path.replace(/\.ts$/, ".d.ts");
    // Tests are not built.
    if (declared !== path && existsSync(join(built, declared)))
      files[`/node_modules/tilewright/${declared}`] = readFileSync(join(built, declared), "utf8");
  }
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

/** The page, with the editor as a file of its own; gives the names of its files. */
async function buildPage(parts) {
  const { metafile } = await build({
    ...bundling,
    entryPoints: { page: join(source, "src/page/main.tsx") },
    outdir: output,
    format: "esm",
    splitting: true,
    metafile: true,
    define: { PARTS: JSON.stringify(parts) },
    jsx: "automatic",
    jsxImportSource: "preact",
    tsconfigRaw: { compilerOptions: { jsx: "react-jsx", jsxImportSource: "preact" } },
  });
  return Object.keys(metafile.outputs).map((path) => basename(path));
}

/** TypeScript's service, with the declarations it knows. */
async function buildService() {
  await build({
    ...bundling,
    entryPoints: { service: join(source, "src/service/main.ts") },
    outdir: output,
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
}

/** The page's frame, which names early what scripts would ask for late. */
function writeIndex(pageFiles, workerFiles) {
  const links = [
    ...pageFiles.map((name) => `<link rel="modulepreload" href="${name}" />`),
    ...workerFiles.map(
      (name) => `<link rel="preload" href="worker/${name}" as="fetch" crossorigin="anonymous" />`,
    ),
  ];
  const text = readFileSync(join(source, "index.html"), "utf8");
  writeFileSync(
    join(output, "index.html"),
    text.replace("<!-- preloads -->", links.join("\n    ")),
  );
}

/** What keeps the page's files for a visit without network; TypeScript is kept once somebody has needed it. */
function writeOffline(files) {
  const hash = createHash("sha256");
  for (const name of files) hash.update(readFileSync(join(output, name)));
  const version = hash.digest("hex").slice(0, 16);
  const text = readFileSync(join(source, "offline.mjs"), "utf8")
    .replace('"VERSION"', JSON.stringify(version))
    .replace('["FILES"]', JSON.stringify(["./", ...files]));
  writeFileSync(join(output, "offline.js"), text);
}

export async function buildPlayground() {
  rmSync(output, { recursive: true, force: true });
  mkdirSync(output, { recursive: true });
  const parts = await buildWorker();
  const pageFiles = await buildPage(parts);
  await buildService();
  const copied = ["sandbox.html", "style.css", "icon.svg"];
  for (const name of copied) cpSync(join(source, name), join(output, name));
  writeIndex(pageFiles, firstParts(parts));
  const workerFiles = ["start.js", ...Object.keys(parts)].map((name) => `worker/${name}`);
  writeOffline(["index.html", ...copied, ...pageFiles, ...workerFiles]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPlayground();
