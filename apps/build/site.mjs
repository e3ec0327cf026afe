/**
 * Builds the site into apps/dist/site: static files, with the playground in it.
 *
 *   docs/*.md ───────▶ dist/pages    snippets get a link that opens them in the playground
 *   types ─TypeDoc──▶  dist/pages/api
 *   benchmarks ─────▶  dist/pages/charts.md
 *                      dist/pages ──VitePress──▶ dist/site
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { chartsPage } from "./charts.mjs";
import { playgroundLink } from "./links.mjs";
import { output as playground } from "./bundle.mjs";
import { buildPlayground } from "./playground.mjs";

const apps = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const root = resolve(apps, "..");
const docs = join(root, "docs");
const pages = join(apps, "dist", "pages");
export const output = join(apps, "dist", "site");

/** Examples that the gallery has. */
const examples = new Set(
  readdirSync(join(root, "examples")).flatMap((name) =>
    name.endsWith(".ts") ? [name.slice(0, -3)] : [],
  ),
);

/** The page with a link after each program, and links to examples led to the gallery. */
export function sitePage(name, text) {
  let number = 0;
  return text
    .replace(/```ts\n([^]*?)```/g, (block, source) => {
      number += 1;
      const link = playgroundLink(`${name}-${number}.ts`, source);
      return `${block}\n\n<a class="open-in-playground" href="./playground/index.html${link}" target="_self">▶ Open in the playground</a>`;
    })
    .replace(/\]\(\.\.\/examples\/([\w-]+)\.ts\)/g, (given, example) =>
      examples.has(example) ? `](./playground/index.html#g=${example})` : given,
    );
}

function preparePages() {
  rmSync(pages, { recursive: true, force: true });
  mkdirSync(join(pages, "public"), { recursive: true });
  for (const name of readdirSync(docs)) {
    const from = join(docs, name);
    if (name.endsWith(".md"))
      writeFileSync(join(pages, name), sitePage(name.slice(0, -3), readFileSync(from, "utf8")));
    else {
      cpSync(from, join(pages, name), { recursive: true });
      if (name === "images") cpSync(from, join(pages, "public", name), { recursive: true });
    }
  }
  cpSync(join(apps, "site", "index.md"), join(pages, "index.md"));
  cpSync(join(apps, "playground", "icon.svg"), join(pages, "public", "icon.svg"));
  writeFileSync(join(pages, "charts.md"), chartsPage(docs));
}

function buildReference() {
  const entries = [
    "index",
    "arrays/index",
    "emulator/api/index",
    "files/index",
    "graph/index",
    "kernels/index",
    "testing/index",
  ];
  const given = [
    ...entries.flatMap((entry) => ["--entryPoints", join(root, "src", `${entry}.ts`)]),
    ...["--plugin", "typedoc-plugin-markdown", "--out", join(pages, "api")],
    ...["--tsconfig", join(root, "tsconfig.build.json"), "--name", "API", "--readme", "none"],
    ...["--skipErrorChecking", "--excludeInternal", "--excludePrivate", "--disableSources"],
    ...["--hideBreadcrumbs", "--hidePageHeader", "--entryFileName", "index", "--router", "module"],
    ...["--basePath", join(root, "src"), "--logLevel", "Error"],
  ];
  execFileSync(join(apps, "node_modules", ".bin", "typedoc"), given, {
    cwd: apps,
    stdio: "inherit",
  });
}

export async function buildSite() {
  preparePages();
  buildReference();
  rmSync(output, { recursive: true, force: true });
  const { build } = await import("vitepress");
  await build(join(apps, "site"));
  await buildPlayground();
  cpSync(playground, join(output, "playground"), { recursive: true });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildSite();
