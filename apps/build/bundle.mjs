/** How the playground's scripts are bundled, and where everything lies. */
import { readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const apps = resolve(dirname(fileURLToPath(import.meta.url)), "..");
export const root = resolve(apps, "..");
export const source = join(apps, "playground");
export const output = join(apps, "dist", "playground");

/** Modules that need Node, with those that stand in for them in a browser, as package.json names them. */
function browserModules() {
  const { imports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const inSource = (path) => resolve(root, path.replace("./dist/", "src/").replace(/\.js$/, ".ts"));
  const pairs = Object.values(imports).map((each) => [each.default, each.browser].map(inSource));
  return new Map(pairs);
}

const modules = browserModules();

/** Folders of the library that programs use which only simulate; what lies in others is loaded when it is asked for. */
const commonFolders = new Set(["support", "formats", "lang", "device", "targets"]);

/** The library's entry with what comes from those folders alone. */
function commonEntry() {
  const text = readFileSync(join(root, "src", "index.ts"), "utf8");
  return text.replace(/^export [^;]* from "\.\/([\w-]+)\/[^"]+";$/gm, (statement, folder) =>
    commonFolders.has(folder) ? statement : "",
  );
}

/** What a program imports as "tilewright/…", as a file. */
function libraryFile(name, importer) {
  const folder = name === "tilewright/emulator" ? "emulator/api" : name.slice("tilewright".length);
  const path = join(root, "src", folder, "index.ts");
  // Helpers of the examples are there from the beginning, without the rest of the library.
  const isHelper = relative(root, importer).startsWith("examples/support/");
  return isHelper && name === "tilewright" ? { path, namespace: "common" } : { path };
}

const plugin = {
  name: "playground",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) => {
      const target = modules.get(resolve(resolveDir, path));
      return target === undefined ? undefined : { path: target };
    });
    onResolve({ filter: /^tilewright(\/\w+)?$/ }, ({ path, importer }) =>
      libraryFile(path, importer),
    );
    onResolve({ filter: /\?(text|common)$/ }, ({ path, resolveDir }) => {
      const [file, namespace] = path.split("?");
      return { path: resolve(resolveDir, file), namespace };
    });
    onLoad({ filter: /.*/, namespace: "text" }, ({ path }) => ({
      contents: readFileSync(path, "utf8"),
      loader: "text",
    }));
    onLoad({ filter: /.*/, namespace: "common" }, ({ path }) => ({
      contents: commonEntry(),
      loader: "ts",
      resolveDir: dirname(path),
    }));
  },
};

export const bundling = {
  bundle: true,
  minify: true,
  target: "es2022",
  plugins: [plugin],
  legalComments: "none",
  logLevel: "warning",
};
