/** The cache on disk: what it keeps, what it refuses, and several processes at once. */
import { Buffer } from "node:buffer";
import { execFile } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { build } from "esbuild";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { dimension, multiplySizes } from "../../ir/size.ts";
import type { LaunchPlan } from "../../ptx/executable.ts";
import { freezePlan, revivePlan } from "../../ptx/plan-json.ts";
import { targets } from "../../targets/target.ts";
import { FakeDriver } from "../../../test/support/fake-driver/driver.ts";
import {
  fakeKernels,
  openFake,
  scaled,
  shifted,
  stubCompiler,
} from "../../../test/support/fake-driver/harness.ts";
import { compilerFingerprint, compilerFolders } from "./fingerprint.ts";
import { KernelCache } from "./kernel-cache.ts";
import { cacheSettings } from "./settings.ts";
import { FileStore } from "./store.ts";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-cache-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function bytes(length: number, seed = 1): Uint8Array {
  return new Uint8Array(length).map((_, index) => Math.imul(index + seed, 0x9e3779b1) >>> 24);
}

const large = 2 ** 30;

describe("the store", () => {
  test("gives back what it was given", () => {
    const store = new FileStore(join(folder, "deep", "er"), large);
    const body = bytes(1000);
    store.write("key", { text: "a\nb", list: [1, null] }, body);
    expect(store.read("key")).toEqual({ header: { text: "a\nb", list: [1, null] }, body });
    expect(store.read("other")).toBeUndefined();
    expect(store.list().map(({ key }) => key)).toEqual(["key"]);
    expect(readdirSync(store.folder)).toEqual(["key.kernel"]);
  });

  test("ignores a file with any byte changed or cut off, and writes it anew", () => {
    const store = new FileStore(folder, large);
    store.write("key", { a: 1 }, bytes(40));
    const path = join(folder, "key.kernel");
    const whole = readFileSync(path);
    for (let position = 0; position < whole.length; position += 1) {
      const changed = Buffer.from(whole);
      changed[position] = (changed[position] ?? 0) ^ 0x10;
      writeFileSync(path, changed);
      expect([position, store.read("key")]).toEqual([position, undefined]);
      writeFileSync(path, whole.subarray(0, position));
      expect([position, store.read("key")]).toEqual([position, undefined]);
    }
    store.write("key", { a: 1 }, bytes(40));
    expect(store.read("key")?.body).toEqual(bytes(40));
  });

  test("removes what was not used for longest when it grows over its limit", () => {
    const store = new FileStore(folder, 4500);
    for (const [position, key] of ["first", "second", "third"].entries()) {
      store.write(key, {}, bytes(1000));
      const past = new Date(Date.now() - 100_000 + 1000 * position);
      utimesSync(join(folder, `${key}.kernel`), past, past);
    }
    // Reading makes it recent again.
    expect(store.read("first")).toBeDefined();
    store.write("fourth", {}, bytes(1000));
    store.write("fifth", {}, bytes(1000));
    expect(
      store
        .list()
        .map(({ key }) => key)
        .sort(),
    ).toEqual(["fifth", "first", "fourth", "third"]);
  });

  test("is emptied by clear, leftovers included, and leaves other files alone", () => {
    const store = new FileStore(folder, large);
    store.write("key", {}, bytes(8));
    writeFileSync(join(folder, "key.99.abc.temporary"), "half");
    writeFileSync(join(folder, "notes.txt"), "mine");
    expect(store.clear()).toBe(1);
    expect(readdirSync(folder)).toEqual(["notes.txt"]);
    expect(new FileStore(join(folder, "none"), large).clear()).toBe(0);
  });

  test("that cannot be written keeps nothing and disturbs nobody; looking at it says why", () => {
    const file = join(folder, "file");
    writeFileSync(file, "");
    const store = new FileStore(file, large);
    store.write("key", {}, bytes(8));
    expect(store.read("key")).toBeUndefined();
    expect(() => store.list()).toThrow("TW4602");
    expect(() => store.clear()).toThrow(file);
  });

  test("tells whether it can be written, and leaves nothing behind", () => {
    const fresh = join(folder, "not", "there");
    expect(new FileStore(fresh, 2 ** 20).writeProblem()).toBeUndefined();
    expect(existsSync(fresh)).toBe(false);
    expect(new FileStore(folder, 2 ** 20).writeProblem()).toBeUndefined();
    writeFileSync(join(folder, "file"), "");
    const problem = new FileStore(join(folder, "file", "cache"), 2 ** 20).writeProblem();
    expect(problem).toMatch(/ENOTDIR|EEXIST|ENOENT/);
    expect(readdirSync(folder).filter((name) => name.endsWith(".temporary"))).toEqual([]);
  });

  test("serves processes that write and read the same keys at once", async () => {
    const outfile = join(folder, "worker.mjs");
    const source = JSON.stringify(new URL("./store.ts", import.meta.url).pathname);
    await build({
      stdin: {
        contents: `
          import { FileStore } from ${source};
          const [folder, seed] = process.argv.slice(2);
          const store = new FileStore(folder, 60000);
          let seen = 0;
          for (let round = 0; round < 150; round += 1) {
            const key = "key-" + ((round * 7 + Number(seed)) % 5);
            const found = store.read(key);
            if (found !== undefined) {
              const { fill } = found.header;
              if (found.body.length !== 9000 || found.body.some((byte) => byte !== fill))
                throw new Error("a torn file");
              seen += 1;
            }
            store.write(key, { fill: Number(seed) }, new Uint8Array(9000).fill(Number(seed)));
          }
          console.log(seen);`,
        resolveDir: folder,
      },
      bundle: true,
      platform: "node",
      format: "esm",
      outfile,
    });
    const shared = join(folder, "shared");
    const runs = [3, 5, 9].map((seed) =>
      promisify(execFile)(process.execPath, [outfile, shared, String(seed)]),
    );
    for (const { stdout } of await Promise.all(runs)) expect(Number(stdout)).toBeGreaterThan(0);
    expect(readdirSync(shared).filter((name) => !name.endsWith(".kernel"))).toEqual([]);
  });
});

describe("launch plans", () => {
  test("come back from JSON as they were", () => {
    const n = dimension("n", 4);
    const plan: LaunchPlan = {
      name: "k",
      entry: "k",
      target: targets.sm_90a,
      lanes: 256,
      cluster: 2,
      blocks: multiplySizes(n, 3),
      sharedBytes: 1000,
      buffers: [
        {
          name: "tile",
          offset: 0,
          bytes: 512,
          holds: { dtype: bf16, shape: [16, 16], layout: "shared(swizzle 32)" },
        },
        { name: "full", offset: 512, bytes: 16, holds: "barriers" },
        { name: "scratch of reduce", offset: 640, bytes: 360 },
      ],
      parameters: [
        { kind: "scalar", name: "s", dtype: bf16 },
        {
          kind: "tensorMap",
          map: {
            array: "x",
            dtype: f32,
            extents: [n, 4],
            strides: [16],
            box: [4, 4],
            swizzle: 64,
            fill: "nan",
          },
        },
        { kind: "messages" },
      ],
      messages: [
        {
          kind: "print",
          text: "{}",
          values: [{ dtype: f32, shape: [2] }],
          position: { file: "a.ts", line: 1, column: 2 },
        },
      ],
      grid: [{ name: "i", extent: n, cluster: 2 }],
      threads: ["main"],
      dependentLaunch: true,
    };
    const revived = revivePlan(JSON.parse(JSON.stringify(freezePlan(plan))), plan);
    expect(revived).toEqual(plan);
    // Formats are compared by identity everywhere.
    const [first] = revived.parameters;
    expect(first?.kind === "scalar" && first.dtype).toBe(bf16);
  });
});

describe("a warm cache", () => {
  const x = fromNumbers(f32, [2], [1, 2]);

  /** Runs both kernels in what stands for a process of its own; gives what it had to do. */
  async function inProcess(compiler: string | undefined, driverVersion = 13000) {
    const compiled: string[] = [];
    const cache = new KernelCache(new FileStore(folder, large), compiler);
    const driver = new FakeDriver({ kernels: fakeKernels, driverVersion });
    const { device } = openFake({
      driver,
      cache,
      compiler: stubCompiler({ scaled: { comment: "(C7501) slow" } }, (name) =>
        compiled.push(name),
      ),
    });
    const { out } = await device.run(scaled, { x, factor: 3 });
    await device.run(shifted, { x, factor: 3 });
    expect(Array.from(toNumbers(out))).toEqual([3, 6]);
    const [first] = device.compilations;
    device.dispose();
    const assembled = driver.log.filter((name) => name === "cuLinkCreate").length;
    return { compiled, assembled, first };
  }

  test("spares compiling and assembling, and keeps warnings", async () => {
    const cold = await inProcess("1.0");
    expect(cold).toMatchObject({ compiled: ["scaled", "shifted"], assembled: 2 });
    expect(cold.first?.cached).toBe(false);
    const warm = await inProcess("1.0");
    expect(warm).toMatchObject({ compiled: [], assembled: 0 });
    expect(warm.first?.cached).toBe(true);
    expect(warm.first?.warnings).toEqual(cold.first?.warnings);
    expect(warm.first?.warnings.join()).toContain("(C7501)");
  });

  test("of another compiler spares the assembler alone", async () => {
    await inProcess("1.0");
    expect(await inProcess("1.1")).toMatchObject({ compiled: ["scaled", "shifted"], assembled: 0 });
  });

  test("without a fingerprint finds code by its PTX", async () => {
    await inProcess(undefined);
    expect(await inProcess(undefined)).toMatchObject({
      compiled: ["scaled", "shifted"],
      assembled: 0,
    });
  });

  test("of another driver is of no use", async () => {
    await inProcess("1.0");
    expect(await inProcess("1.0", 12080)).toMatchObject({ assembled: 2 });
  });

  test("that is corrupt, or has lost its code, is repaired", async () => {
    await inProcess("1.0");
    for (const name of readdirSync(folder))
      if (name.startsWith("code-")) writeFileSync(join(folder, name), "rubbish");
    expect(await inProcess("1.0")).toMatchObject({ assembled: 2 });
    expect(await inProcess("1.0")).toMatchObject({ compiled: [], assembled: 0 });
  });

  test("with code that the driver refuses compiles again", async () => {
    await inProcess("1.0");
    const store = new FileStore(folder, large);
    for (const { key } of store.list())
      if (key.startsWith("code-")) store.write(key, { kernel: "k", warnings: [] }, bytes(64));
    expect(await inProcess("1.0")).toMatchObject({ assembled: 2 });
    expect(await inProcess("1.0")).toMatchObject({ compiled: [], assembled: 0 });
  });
});

describe("settings", () => {
  const linux = { platform: "linux", home: "/user" };

  test("name the folder", () => {
    const folderOf = (environment: { readonly [name: string]: string }, platform = "linux") =>
      cacheSettings({ environment, platform, home: "/user" }).folder;
    expect(folderOf({})).toBe(join("/user", ".cache", "tilewright"));
    expect(folderOf({ XDG_CACHE_HOME: "/xdg" })).toBe(join("/xdg", "tilewright"));
    expect(folderOf({ LOCALAPPDATA: "L" }, "win32")).toBe(join("L", "tilewright"));
    expect(folderOf({ TILEWRIGHT_CACHE: "/mine" })).toBe("/mine");
    expect(folderOf({ TILEWRIGHT_CACHE: "off" })).toBeUndefined();
  });

  test.each([
    ["", 2 ** 30],
    ["1000", 1000],
    ["10K", 10 * 2 ** 10],
    ["500 MiB", 500 * 2 ** 20],
    ["2g", 2 ** 31],
  ])("read %j as a limit", (text, limit) => {
    const environment = { TILEWRIGHT_CACHE_LIMIT: text };
    expect(cacheSettings({ ...linux, environment }).limitBytes).toBe(limit);
  });

  test("that make no sense are refused", () => {
    const environment = { TILEWRIGHT_CACHE_LIMIT: "lots" };
    expect(() => cacheSettings({ ...linux, environment })).toThrow("TW4601");
  });
});

/** The path, whose folder is there. */
function made(path: string): string {
  mkdirSync(dirname(path), { recursive: true });
  return path;
}

describe("the compiler's fingerprint", () => {
  test("of this checkout changes with its modules", () => {
    const here = new URL("../open.ts", import.meta.url).href;
    const before = compilerFingerprint(here);
    expect(before).toMatch(/^\d+\.\d+\.\d+ \d+ files of [\d.]+$/);
    expect(compilerFingerprint(here)).toBe(before);
  });

  test("of a checkout is another when any module has changed since", () => {
    const modules = join(folder, "checkout/src");
    const names = ["cuda/open.ts", ...compilerFolders.map((name) => `${name}/a.ts`), "ir/b.ts"];
    const past = new Date(2020, 0, 1);
    writeFileSync(made(join(folder, "checkout/package.json")), '{ "version": "1.2.3" }');
    for (const name of names) {
      writeFileSync(made(join(modules, name)), "");
      utimesSync(join(modules, name), past, past);
    }
    const address = pathToFileURL(join(modules, "cuda/open.ts")).href;
    const before = compilerFingerprint(address);
    const seen = compilerFolders.map((name) => {
      const later = new Date(2020, 0, 2 + compilerFolders.indexOf(name));
      utimesSync(join(modules, name, "a.ts"), later, later);
      return compilerFingerprint(address);
    });
    expect(new Set([before, ...seen]).size).toBe(compilerFolders.length + 1);
  });

  test("of a bundle is the bundle's", () => {
    const bundle = join(folder, "bundle.mjs");
    writeFileSync(bundle, "");
    expect(compilerFingerprint(pathToFileURL(bundle).href)).toMatch(/^bundle 1 files of /);
  });

  test("is unknown where nothing tells", () => {
    expect(compilerFingerprint(undefined)).toBeUndefined();
    const gone = join(folder, "gone.mjs");
    expect(existsSync(gone)).toBe(false);
    expect(compilerFingerprint(pathToFileURL(gone).href)).toBeUndefined();
  });
});
