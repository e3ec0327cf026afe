/** What the package says of the Node that it needs, and what it uses of Node's. */
import { describe, expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { listFiles, readText } from "../../test/source-files.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { isSupportedNode, minimumNodeVersion } from "./minimum-node-version.ts";
import { requireHooks } from "./typescript-loader.ts";

/** When Node got what the source uses of its modules, by its documentation; "18" for what older versions have, too. */
const since: { readonly [name: string]: string } = {
  "child_process.execFile": "18",
  "child_process.fork": "18",
  "crypto.createHash": "18",
  "crypto.randomBytes": "18",
  "fs.closeSync": "18",
  "fs.constants": "18",
  "fs.existsSync": "18",
  "fs.fstatSync": "18",
  "fs.lstatSync": "18",
  "fs.mkdirSync": "18",
  "fs.mkdtempSync": "18",
  "fs.openSync": "18",
  "fs.readFileSync": "18",
  "fs.readdirSync": "18",
  "fs.renameSync": "18",
  "fs.rmSync": "18",
  "fs.rmdirSync": "18",
  "fs.statSync": "18",
  "fs.utimesSync": "18",
  "fs.writeFileSync": "18",
  "fs/promises.appendFile": "18",
  "fs/promises.open": "18",
  "fs/promises.readFile": "18",
  "fs/promises.rename": "18",
  "fs/promises.writeFile": "18",
  "module.createRequire": "18",
  "module.register": "20.6",
  "net.connect": "18",
  "net.createServer": "18",
  "os.availableParallelism": "18.14",
  "os.homedir": "18",
  "os.tmpdir": "18",
  "buffer.Buffer": "18",
  "timers/promises.setImmediate": "18",
  "url.fileURLToPath": "18",
  "url.pathToFileURL": "18",
  "util.inspect": "18",
  "util.promisify": "18",
  "worker_threads.MessagePort": "18",
  "worker_threads.Worker": "18",
  "worker_threads.parentPort": "18",
};

/** Everything of `node:path` is older. */
const whole = /^path\.|^process\./;

/** Names that the source imports from Node's modules, or takes from a whole one. */
function usedNames(): readonly string[] {
  const names = new Set<string>();
  for (const file of listFiles("src", /\.ts$/).filter((path) => !path.endsWith(".test.ts"))) {
    const text = readText(file);
    for (const [, list = "", module = ""] of text.matchAll(
      /^import \{([^}]*)\} from "node:([a-z_/]+)";/gm,
    ))
      for (const name of list.split(",").map((each) => each.trim()))
        if (name !== "") names.add(`${module}.${name}`);
    for (const [, local = "", module = ""] of text.matchAll(
      /^import (?:\* as )?(\w+) from "node:([a-z_/]+)";/gm,
    ))
      for (const [, name = ""] of text.matchAll(new RegExp(`\\b${local}\\.(\\w+)`, "g")))
        names.add(`${module}.${name}`);
  }
  return [...names].filter((name) => !whole.test(name)).sort();
}

describe("the Node that is needed", () => {
  test("is the one that the manifest names", () => {
    expect(manifest.engines.node).toBe(`>=${minimumNodeVersion}`);
  });

  test("has everything that is used of its modules", () => {
    const used = usedNames();
    expect(used).toContain("module.register");
    expect(used.filter((name) => since[name] === undefined)).toEqual([]);
    const later = used.filter((name) => {
      const [major = 0, minor = 0] = (since[name] ?? "").split(".").map(Number);
      const [oldestMajor = 0, oldestMinor = 0] = minimumNodeVersion.split(".").map(Number);
      return major > oldestMajor || (major === oldestMajor && minor > oldestMinor);
    });
    expect(later).toEqual([]);
  });

  test("is asked for by a code where its hooks are missing, and no import of them keeps the command from starting", () => {
    const report = (): unknown => requireHooks({}, "v20.0.0");
    expect(report).toThrow(TilewrightError);
    expect(report).toThrow(/TW5018: Node v20\.0\.0 cannot run files[^]*Node 20\.6 or later/);
    const named = listFiles("src", /\.ts$/).filter((path) =>
      /^import \{[^}]*\bregister\b[^}]*\} from "node:module"/m.test(readText(path)),
    );
    expect(named).toEqual([]);
  });

  test.each([
    ["v18.20.4", false],
    ["v20.5.1", false],
    ["v20.6.0", true],
    ["v22.0.0", true],
    ["v100.0.0", true],
  ])("%s: %s", (version, fine) => {
    expect(isSupportedNode(version)).toBe(fine);
  });
});
