/**
 * The package's modules joined into few files: most of what a fresh process takes to import the library is finding and
 * reading a thousand of them, and code that was joined is also a little faster before it is compiled.
 *
 *   dist/cli/main.js, dist/index.js, …         what somebody names: the package's exports, its command, its stand-ins for browsers
 *   dist/workers/node.js, …                   modules that look at where they lie, that others stand in for in browsers, and those that
 *                                              are started by a path
 *   dist/chunk-….js                            everything else, joined
 *
 * What npm packs is built so, by `join-package.ts`, and so is the package that tests run in processes of their own.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { build } from "esbuild";
import type { Plugin } from "esbuild";
import manifest from "../package.json" with { type: "json" };
import { codes } from "../src/support/diagnostic-codes/index.ts";
import { listFiles, readText, repositoryRoot } from "../test/source-files.ts";
import { lineMap } from "./line-maps.ts";
import { markPure } from "./mark-pure.ts";

/** Where modules tell their place by, or by what stacks call them. */
const looksAtPlace = /\bimport\.meta\b|new Error\(\)\.stack/;

/** Modules that nobody imports but by a path that is made when they are needed: those of other threads and processes. */
const startedByPath = /(?:-worker|-helper|-hooks)\.ts$/;

/** What programs may use without the rest of an entry: bundlers load whole files, so what these need is not joined with anything else. */
const usedAlone = ["src/arrays/array.ts", "src/arrays/functions.ts"];

/** What stands before the path of a module that stays apart, until the place of the file that imports it is known. */
const apartScheme = "tilewright-apart:";

/** The source of a module that the package's manifest names. */
function sourceOf(built: string): string {
  return built.replace(/^(?:\.\/)?dist\//, "src/").replace(/\.js$/, ".ts");
}

/** The module, within `dist`, of a source. */
function builtOf(source: string): string {
  return source.replace(/^src\//, "").replace(/\.ts$/, ".js");
}

/** What users and their bundlers name. */
function namedSources(): readonly string[] {
  const exported = Object.values(manifest.exports).flatMap((target) =>
    typeof target === "string" ? [] : [target.default],
  );
  const standIns = Object.values(manifest.imports).map(({ browser }) => browser);
  return [...exported, ...Object.values(manifest.bin), ...standIns].map(sourceOf);
}

/** Modules with stand-ins for browsers, by their sources: the names by which the manifest lets bundlers choose. */
const chosenByHost = new Map(
  Object.entries(manifest.imports).map(([name, target]) => [sourceOf(target.default), name]),
);

/** Leaves imports of these modules in place. The bundler asks only for what has the name of one: asking takes most of the time. */
function keepApart(apart: ReadonlySet<string>): Plugin {
  const names = new Set([...apart].map((path) => posix.basename(path, ".ts")));
  return {
    name: "keep-apart",
    setup(bundler) {
      const filter = new RegExp(`^\\..*/(?:${[...names].join("|")})\\.ts$`);
      bundler.onResolve({ filter }, ({ path, kind, resolveDir }) => {
        const source = relative(repositoryRoot, join(resolveDir, path)).replaceAll("\\", "/");
        if (kind === "entry-point" || !apart.has(source)) return undefined;
        return { path: chosenByHost.get(source) ?? apartScheme + builtOf(source), external: true };
      });
    },
  };
}

/** Of diagnostic codes a program needs what to do; titles, causes and examples are for the reference (`docs/diagnostics.md`), a tenth of all text. */
const remediesAlone: Plugin = {
  name: "remedies-alone",
  setup(bundler) {
    const remedies = Object.entries(codes).map(([code, { remedy }]) => [code, { remedy }]);
    const contents = `export const codes = ${JSON.stringify(Object.fromEntries(remedies))};`;
    bundler.onLoad({ filter: /[\\/]support[\\/]diagnostic-codes[\\/]index\.ts$/ }, () => ({
      contents,
    }));
  },
};

/**
 * Classes under their own names. The bundler renames one that speaks of itself, `var Tile = class _Tile`, and that is what consoles print;
 * what it named so means this class everywhere in the file, and no other name hides the class where it is spoken of.
 */
function withClassNames(text: string): string {
  let named = text;
  for (const [, name = ""] of text.matchAll(/^var (\w+) = class _\1\b/gm))
    named = named.replace(new RegExp(`(?<![\\w$.#])_${name}(?![\\w$])`, "g"), name);
  return named;
}

/** Imports of modules that stay apart by their paths from the file at `path`. */
function placed(text: string, path: string): string {
  return text.replace(new RegExp(`"${apartScheme}([^"]+)"`, "g"), (_, built: string) => {
    const from = posix.relative(posix.dirname(path), built);
    return JSON.stringify(from.startsWith(".") ? from : `./${from}`);
  });
}

/** Where the sources of this version are, for who reads a source map. */
const publishedSources = `${manifest.repository.url.replace(/^git\+|\.git$/g, "").replace("github.com", "raw.githubusercontent.com")}/v${manifest.version}/`;

interface Joining {
  /** Modules that somebody imports by their path: they stay files of their own. */
  readonly further?: readonly string[];
  /** Whether source maps are written, too. */
  readonly maps?: boolean;
}

/** The files that the source is joined to, by their paths in `dist`. */
export async function joinedModules({ further = [], maps = false }: Joining = {}): Promise<
  ReadonlyMap<string, string>
> {
  const sources = listFiles("src", /\.ts$/).filter((path) => !path.endsWith(".test.ts"));
  const apart = sources.filter(
    (path) => chosenByHost.has(path) || looksAtPlace.test(readText(path)),
  );
  const started = sources.filter((path) => startedByPath.test(path));
  const outdir = join(repositoryRoot, "dist");
  const { outputFiles } = await build({
    absWorkingDir: repositoryRoot,
    entryPoints: [...new Set([...namedSources(), ...usedAlone, ...further, ...started, ...apart])],
    outbase: "src",
    outdir,
    write: false,
    bundle: true,
    splitting: true,
    packages: "external",
    plugins: [keepApart(new Set(apart)), remediesAlone],
    format: "esm",
    platform: "node",
    target: "node20",
    sourcemap: maps && "external",
    sourcesContent: false,
    logLevel: "error",
  });
  const texts = new Map(outputFiles.map(({ path, text }) => [path, text]));
  const modules = new Map<string, string>();
  // Nobody asks for these by their paths: what is in them lies in files that others import, too.
  const unasked = new Set(usedAlone.filter((path) => !further.includes(path)).map(builtOf));
  for (const [path, text] of texts) {
    const own = relative(outdir, path).replaceAll("\\", "/");
    if (unasked.has(own) || own.endsWith(".map")) continue;
    const map = texts.get(`${path}.map`);
    const joined = placed(markPure(withClassNames(text)), own);
    modules.set(
      own,
      map === undefined ? joined : `${joined}//# sourceMappingURL=${posix.basename(own)}.map\n`,
    );
    if (map !== undefined) modules.set(`${own}.map`, lineMap(map, text, publishedSources));
  }
  return modules;
}

/** Writes such files into a folder. */
export function writeModules(modules: ReadonlyMap<string, string>, folder: string): void {
  for (const [path, text] of modules) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}
