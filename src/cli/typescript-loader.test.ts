import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { buildPackage } from "../../test/build-package.ts";
import { HostProcess } from "../../test/support/host-process.ts";
import { importFile, importedModules } from "./typescript-loader.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-loader-")));
const installed = join(folder, "installed");
const user = join(folder, "user");

mkdirSync(installed);
mkdirSync(user);
const host = new HostProcess(user);

/** Imports the user's file through the built loader, in a process that runs no TypeScript, then evaluates `report`. */
async function runImport(file: string, report: string): Promise<unknown> {
  const loader = pathToFileURL(join(installed, "dist/cli/typescript-loader.js")).href;
  const library = pathToFileURL(join(installed, "dist/index.js")).href;
  const { value } = await host.ask(`
    const { importFile } = await load(${JSON.stringify(loader)});
    const loadLibrary = () => load(${JSON.stringify(library)});
    let module, error;
    try { module = await importFile(${JSON.stringify(file)}); } catch (caught) { error = caught; }
    return JSON.stringify(${report});`);
  return JSON.parse(String(value));
}

function writeUserFile(name: string, text: string): string {
  writeFileSync(join(user, name), text);
  return join(user, name);
}

beforeAll(async () => {
  await buildPackage(installed);
});

afterAll(() => {
  host.end();
  rmSync(folder, { recursive: true });
});

describe("importFile", () => {
  test("a thrown error reports the line and column of the source", async () => {
    const path = writeUserFile(
      "throws.ts",
      [
        "interface Point {",
        "  readonly größe: number;",
        "}",
        'const label: Record<"π", string> = { π: "round" }; throw new Error(label.π as string);',
      ].join("\n"),
    );
    const frame = await runImport("throws.ts", `error.stack.split("\\n")[1].trim()`);
    expect(frame).toBe(`at ${pathToFileURL(path).href}:4:58`);
  });

  test("says what to do where a runtime refuses TypeScript of packages", async () => {
    // As Deno says it: in the text alone.
    writeUserFile(
      "refused.mjs",
      'throw new TypeError("[ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING]: Stripping types is currently unsupported");',
    );
    expect(await runImport("refused.mjs", "[error.code, error.found, error.remedy]")).toEqual([
      "TW5019",
      "refused.mjs",
      "copy the file out of node_modules, or run the command with Node.js or Bun",
    ]);
  });

  test("imports TypeScript and JavaScript from TypeScript, types left out", async () => {
    writeUserFile("shape.ts", "export interface Shape { n: number }\nexport const n: number = 3;");
    writeUserFile("scale.mjs", "export const scale = 7;");
    writeUserFile(
      "main.ts",
      [
        'import { n } from "./shape.ts";',
        'import type { Shape } from "./shape.ts";',
        'import { scale } from "./scale.mjs";',
        "const shape = { n } satisfies Shape;",
        "export const result = shape.n * scale;",
      ].join("\n"),
    );
    expect(await runImport("main.ts", "module")).toEqual({ result: 21 });
  });

  test("takes the name of the file that a compiler would make", async () => {
    mkdirSync(join(user, "compiled"));
    writeUserFile("compiled/lib.ts", "export const a: number = 2;");
    writeUserFile("compiled/other.mts", "export const b: number = 3;");
    writeUserFile("compiled/both.ts", "export const c: number = 0;");
    writeUserFile("compiled/both.js", "export const c = 5;");
    writeUserFile(
      "compiled/main.ts",
      [
        'import { a } from "./lib.js";',
        'import { b } from "./other.mjs";',
        'import { c } from "./both.js";',
        "export const result: number = a * b * c;",
      ].join("\n"),
    );
    writeUserFile("compiled/package.json", '{ "type": "module" }');
    expect(await runImport("compiled/main.ts", "module")).toEqual({ result: 30 });
  });

  test("a missing import is reported under the name that was written", async () => {
    writeUserFile("lost.ts", 'import "./nowhere.js";');
    expect(await runImport("lost.ts", "error.message")).toContain("nowhere.js");
  });

  test("runs JavaScript as it is", async () => {
    writeUserFile("plain.mjs", "export const result = 1 < 2 > (3);");
    expect(await runImport("plain.mjs", "module")).toEqual({ result: false });
  });

  test("a file outside any package meets the command line's instance of the library", async () => {
    writeUserFile("uses.ts", 'export { TilewrightError } from "tilewright";');
    const same = "module.TilewrightError === (await loadLibrary()).TilewrightError";
    expect(await runImport("uses.ts", same)).toBe(true);
  });

  test("an installed copy beside the file does not replace the command line's", async () => {
    const copy = join(user, "beside/node_modules/tilewright");
    mkdirSync(copy, { recursive: true });
    writeFileSync(join(copy, "package.json"), '{ "type": "module", "exports": "./index.js" }');
    writeFileSync(join(copy, "index.js"), "export class TilewrightError {}");
    writeUserFile("beside/copied.ts", 'export { TilewrightError } from "tilewright";');
    const same = "module.TilewrightError === (await loadLibrary()).TilewrightError";
    expect(await runImport("beside/copied.ts", same)).toBe(true);
  });

  test("syntax that cannot be erased is TW5002 at its line", async () => {
    const path = writeUserFile("enum.ts", "const one: number = 1;\n  enum Mode { fast }\n");
    expect(await runImport("enum.ts", "[error.code, error.position, error.remedy]")).toEqual([
      "TW5002",
      { file: path, line: 2, column: 3 },
      "use syntax that disappears with the types, such as a union of string literals",
    ]);
  });

  test("a syntax error in TypeScript is TW5002 at its line", async () => {
    const path = writeUserFile("syntax.ts", "const one: number = 1;\nconst = 2;\n");
    expect(await runImport("syntax.ts", "[error.code, error.position, error.remedy]")).toEqual([
      "TW5002",
      { file: path, line: 2, column: 7 },
      "correct the syntax at this place",
    ]);
  });

  test("a missing file fails as Node reports it", async () => {
    expect(await runImport("missing.ts", "error.code")).toBe("ERR_MODULE_NOT_FOUND");
  });

  test("under a host that runs TypeScript the host's own import is used", async () => {
    const path = writeUserFile("hosted.ts", "export const result: number = 5;");
    expect(await importFile(path)).toMatchObject({ result: 5 });
  });
});

describe("what is loaded before the hooks", () => {
  test("is what the file imports of the library, or a file that it imports", async () => {
    mkdirSync(join(user, "ahead"));
    writeUserFile("ahead/deep.ts", 'export * from "tilewright/bench";\nimport "./main.ts";');
    writeUserFile("ahead/typed.ts", 'import { tune } from "tilewright/tune";');
    const path = writeUserFile(
      "ahead/main.ts",
      [
        'import { bf16 } from "tilewright";',
        "import {",
        "  matmul,",
        "} from 'tilewright/kernels';",
        'export { deep } from "./deep.ts";',
        'import "./nowhere.ts";',
        'import other from "tilewright-other";',
        'import type { Graph } from "tilewright/graph";',
        'import type { Typed } from "./typed.ts";',
        'export type { Tree } from "tilewright/arrays";',
        'export const name = "tilewright/files";',
        ' * import { check } from "tilewright/testing";',
      ].join("\n"),
    );
    expect([...(await importedModules(path))]).toEqual([
      "tilewright",
      "tilewright/kernels",
      "tilewright/bench",
    ]);
  });

  test("is for a file of this package's source what was built from it, without what that imports", async () => {
    const own = fileURLToPath(new URL("./user-module.ts", import.meta.url));
    const built = new URL("../device/operation.js", import.meta.url).href;
    const modules = await importedModules(own);
    expect(modules).toContain(built);
    // That is of `device/operation.ts` alone.
    expect([...modules].filter((url) => url.includes("/ir/"))).toEqual([]);
  });

  test("does not hide that an entry is missing", async () => {
    writeUserFile("ahead/missing.ts", 'import "tilewright/nowhere";');
    const fresh = new HostProcess(user);
    try {
      const loader = pathToFileURL(join(installed, "dist/cli/typescript-loader.js")).href;
      const { value } = await fresh.ask(`
        const { importFile } = await load(${JSON.stringify(loader)});
        return importFile("ahead/missing.ts").then(() => "none", (error) => error.code + " " + error.message);`);
      expect(value).toMatch(/^ERR_PACKAGE_PATH_NOT_EXPORTED .* imported from .*missing\.ts$/);
    } finally {
      fresh.end();
    }
  });
});
