/** The cache on disk: what it keeps, what it refuses, and several processes at once. */
import { Buffer } from "node:buffer";
import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import process from "node:process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { expectGrowth } from "../../../test/support/processor-time.ts";
import { build } from "esbuild";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { dimension, multiplySizes } from "../../ir/size.ts";
import { tensor, cdiv, dim, kernel, scalar, slice } from "../../lang/index.ts";
import type { LaunchPlan } from "../../ptx/executable.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
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

  test("takes as long for a file among thousands as for one among few", () => {
    const write = (store: FileStore) => {
      for (let index = 0; index < 200; index += 1) store.write(`k${index}`, {}, bytes(8));
    };
    const [few, many] = [new FileStore(join(folder, "few"), large), new FileStore(folder, large)];
    many.write("k0", {}, bytes(8));
    for (let index = 0; index < 2000; index += 1)
      linkSync(join(folder, "k0.kernel"), join(folder, `other${index}.kernel`));
    // Looking through all files at each write would take ten times as long.
    expectGrowth(4, write.bind(null, few), write.bind(null, many));
    expect(many.list()).toHaveLength(2200);
  });

  test("notices what other processes have written", () => {
    const [first, second] = [new FileStore(folder, 8000), new FileStore(folder, 8000)];
    for (let index = 0; index < 40; index += 1) {
      first.write(`a${index}`, {}, bytes(100));
      second.write(`b${index}`, {}, bytes(100));
      const total = first.list().reduce((sum, entry) => sum + entry.bytes, 0);
      expect(total, `round ${index}`).toBeLessThanOrEqual(8000);
    }
  });

  test("is its owner's alone", () => {
    if (process.platform === "win32") return;
    const store = new FileStore(join(folder, "made"), large);
    store.write("key", {}, bytes(8));
    const modes = [store.folder, join(store.folder, "key.kernel")].map(
      (path) => statSync(path).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o600]);
  });

  test("refuses a file under another name", () => {
    const store = new FileStore(folder, large);
    store.write("key", {}, bytes(8));
    renameSync(join(folder, "key.kernel"), join(folder, "other.kernel"));
    expect(store.read("other")).toBeUndefined();
  });

  test("evicts past folders of others, and leaves them alone", () => {
    const store = new FileStore(folder, 3000);
    const foreign = join(folder, "old.kernel");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "notes"), "mine");
    utimesSync(foreign, new Date(2001, 0, 1), new Date(2001, 0, 1));
    for (let index = 0; index < 20; index += 1) store.write(`k${index}`, {}, bytes(1000));
    expect(store.list().length).toBeLessThanOrEqual(2);
    expect(store.clear()).toBeGreaterThan(0);
    expect(readFileSync(join(foreign, "notes"), "utf8")).toBe("mine");
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
    const source = JSON.stringify(fileURLToPath(new URL("./store.ts", import.meta.url)));
    await build({
      stdin: {
        contents: `
          import { FileStore } from ${source};
          const [folder, seed] = process.argv.slice(2);
          const store = new FileStore(folder, 60000); let seen = 0;
          for (let round = 0; round < 60; round += 1) {
            const key = "key-" + ((round * 7 + Number(seed)) % 5);
            const found = store.read(key);
            if (found !== undefined) {
              const { header: { fill }, body } = found;
              if (body.length !== 9000 || body.some((byte) => byte !== fill)) throw new Error("torn");
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
    const runs = [1, 2, 3, 4].map((seed) =>
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
      threadsPerBlock: 256,
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
            use: "load",
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
    const first = revived?.parameters[0];
    expect(first?.kind === "scalar" && first.dtype).toBe(bf16);
  });
});

describe("a warm cache", () => {
  const x = fromNumbers(f32, [2], [1, 2]);

  /** What the driver of this machine has assembled; emptied, it is cold again. */
  const assembled = new Set<string>();
  beforeEach(() => {
    assembled.clear();
  });

  /** Runs both kernels in what stands for a process of its own; gives what it had to do. */
  async function inProcess(compiler: string | undefined, driverVersion = 13000) {
    const compiled: string[] = [];
    const cache = new KernelCache(new FileStore(folder, large), compiler);
    const driver = new FakeDriver({ kernels: fakeKernels, driverVersion, assembled });
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
    return { compiled, assembled: driver.assemblies, first };
  }

  test("spares compiling, the driver's spares assembling, and the log is kept", async () => {
    const cold = await inProcess("1.0");
    expect(cold).toMatchObject({ compiled: ["scaled", "shifted"], assembled: 2 });
    expect(cold.first?.cached).toBe(false);
    const warm = await inProcess("1.0");
    expect(warm).toMatchObject({ compiled: [], assembled: 0 });
    expect(warm.first?.cached).toBe(true);
    expect(warm.first?.notes[0]?.because).toContain("(C7501)");
    expect(warm.first?.machineCode).toEqual(cold.first?.machineCode);
    expect(warm.first?.machineCode).toMatchObject({
      registers: 40,
      log: expect.stringContaining("Used 40 registers") as string,
    });
  });

  test("whose driver has forgotten the machine code assembles again, and keeps the new log", async () => {
    await inProcess("1.0");
    assembled.clear();
    const again = await inProcess("1.0");
    expect(again).toMatchObject({ compiled: [], assembled: 2 });
    expect(again.first?.cached).toBe(true);
    expect((await inProcess("1.0")).first?.machineCode).toEqual(again.first?.machineCode);
  });

  test("keeps notes, and finds them anew where the source lines have moved", async () => {
    const note: PerformanceNote = {
      code: "TW7502",
      message: "load of x moves 2 bytes a thread at a time",
      because: "rows of n elements need not begin at a multiple of 16 bytes",
      remedy: "say what n is a multiple of",
      position: { file: "user.ts", line: 1, column: 2 },
    };
    const cache = (): KernelCache => new KernelCache(new FileStore(folder, large), "1.0");
    const notesOf = async (definition: typeof scaled, kept: PerformanceNote) => {
      const compiled: string[] = [];
      const compiler = stubCompiler({}, (name) => compiled.push(name), { scaled: [kept] });
      const { device } = openFake({ cache: cache(), compiler, onNotes: () => undefined });
      await device.run(definition, { x: fromNumbers(f32, [1], [1]), factor: 1 });
      const notes = device.compilations[0]?.notes.filter(({ code }) => code === "TW7502");
      device.dispose();
      return { notes, compiled };
    };
    const moved = { ...note, position: { file: "user.ts", line: 9, column: 2 } };
    expect(await notesOf(scaled, note)).toEqual({ notes: [note], compiled: ["scaled"] });
    expect(await notesOf(scaled, moved)).toEqual({ notes: [note], compiled: [] });
    const shiftedLines = kernel(
      {
        name: "scaled",
        grid: { i: cdiv(dim("n"), 4) },
        inputs: { x: tensor(f32, [dim("n")]), factor: scalar(f32) },
        outputs: { out: tensor(f32, [dim("n")]) },
      },
      ({ i, x, factor, out }) => {
        const here = slice(i.mul(4), 4);
        out.at(here).store(x.at(here).load().mul(factor));
      },
    );
    expect(await notesOf(shiftedLines, moved)).toEqual({ notes: [moved], compiled: ["scaled"] });
  });

  test("of another compiler compiles, and knows the log by the PTX", async () => {
    await inProcess("1.0");
    const other = await inProcess("1.1");
    expect(other).toMatchObject({ compiled: ["scaled", "shifted"], assembled: 0 });
    expect(other.first?.notes[0]?.because).toContain("(C7501)");
  });

  test("without a fingerprint knows the log by the PTX", async () => {
    await inProcess(undefined);
    const warm = await inProcess(undefined);
    expect(warm).toMatchObject({ compiled: ["scaled", "shifted"], assembled: 0 });
    expect(warm.first?.notes[0]?.because).toContain("(C7501)");
  });

  test("that lost its files while the driver kept its own knows registers, and no log", async () => {
    await inProcess("1.0");
    new FileStore(folder, large).clear();
    const { first } = await inProcess("1.0");
    expect(first?.machineCode).toMatchObject({ registers: 40, log: undefined });
  });

  test("of another driver is of no use, and stays beside its own", async () => {
    const runs = [await inProcess("1.0"), await inProcess("1.0", 12080), await inProcess("1.0")];
    expect(runs.map(({ compiled }) => compiled.length)).toEqual([2, 2, 0]);
  });

  const both = ["scaled", "shifted"];
  type Change = (path: string, name: string) => void;

  /** Changes every file of a warm cache, and expects the kernels to be made again, once. */
  async function expectRemade(change: Change): Promise<void> {
    await inProcess("1.0");
    for (const name of readdirSync(folder)) change(join(folder, name), name);
    expect((await inProcess("1.0")).compiled).toEqual(both);
    expect((await inProcess("1.0")).compiled).toEqual([]);
  }

  test.each<readonly [string, Change]>([
    ["corrupt", (path) => writeFileSync(path, "rubbish")],
    ["empty", (path) => writeFileSync(path, "")],
    ["without its code", (path, name) => name.startsWith("code-") && rmSync(path)],
    ["open to others", (path) => chmodSync(path, 0o666)],
    [
      "a link",
      (path) => {
        const elsewhere = join(dirname(folder), basename(path));
        renameSync(path, elsewhere);
        symlinkSync(elsewhere, path);
      },
    ],
    [
      "a pipe, which nobody waits for",
      (path) => {
        rmSync(path);
        execFileSync("mkfifo", [path]);
      },
    ],
  ])("that is %s is repaired", async (_, change) => {
    if (process.platform === "win32") return;
    await expectRemade(change);
  });

  test("of another owner is not believed", async () => {
    if (process.getuid?.() !== 0) return;
    await expectRemade((path) => {
      chownSync(path, 12345, 12345);
    });
  });

  test.each([
    ...[null, 5, "x", [], {}, { code: 7 }, { code: "../../x" }],
    { code: `code-${"0".repeat(64)}`, plan: null },
  ])("with a kernel's header of %j is repaired", async (header) => {
    const store = new FileStore(folder, large);
    await expectRemade((_, name) => {
      if (name.startsWith("kernel-"))
        store.write(name.replace(".kernel", ""), header, new Uint8Array(0));
    });
  });

  const planChanges: readonly { readonly [field: string]: unknown }[] = [
    { parameters: undefined },
    { parameters: [{ kind: "pointer" }] },
    { parameters: [{ kind: "scalar", name: "x", dtype: "f31" }] },
    { blocks: -1 },
    { blocks: { kind: "ceildiv", of: { kind: "dimension", name: "n" }, by: 0 } },
    { lanes: -5 },
    { entry: 7 },
    { grid: [{ name: "i" }] },
    { messages: [{}] },
  ];
  test.each(planChanges)("with a plan that has %j is repaired", async (change) => {
    const store = new FileStore(folder, large);
    await expectRemade((_, name) => {
      const key = name.replace(".kernel", "");
      const { header } = store.peek(key) ?? {};
      if (!name.startsWith("kernel-") || typeof header !== "object") return;
      const { plan } = header as { readonly plan: object };
      store.write(key, { ...header, plan: { ...plan, ...change } }, new Uint8Array(0));
    });
  });

  test.each([[null], [{ kernel: "k", target: "sm_90a", log: 5 }]])(
    "with a code's header of %j is repaired",
    async (header) => {
      const store = new FileStore(folder, large);
      await expectRemade((_, name) => {
        const key = name.replace(".kernel", "");
        if (name.startsWith("code-"))
          store.write(key, header, store.peek(key)?.body ?? new Uint8Array(0));
      });
    },
  );

  test.each(["kernel-", "code-"])("whose %s files were exchanged runs neither", async (kind) => {
    await inProcess("1.0");
    const names = readdirSync(folder).filter((name) => name.startsWith(kind));
    const contents = names.map((name) => readFileSync(join(folder, name)));
    names.forEach((name, index) => {
      writeFileSync(join(folder, name), contents[1 - index] ?? "");
    });
    expect((await inProcess("1.0")).compiled).toEqual(both);
  });

  test("with code that the driver refuses compiles again", async () => {
    const store = new FileStore(folder, large);
    await expectRemade((_, name) => {
      const header = { kernel: "k", target: "sm_90a" };
      if (name.startsWith("code-")) store.write(name.replace(".kernel", ""), header, bytes(64));
    });
  });
});

describe("settings", () => {
  const linux = { platform: "linux", home: "/user" };

  test("name the folder", () => {
    const folderOf = (
      environment: { readonly [name: string]: string },
      platform = "linux",
      home = "/user",
    ) => cacheSettings({ environment, platform, home }).folder;
    expect(folderOf({})).toBe("/user/.cache/tilewright");
    expect(folderOf({}, "darwin")).toBe("/user/.cache/tilewright");
    expect(folderOf({ XDG_CACHE_HOME: "/xdg" })).toBe("/xdg/tilewright");
    const local = "C:\\Users\\ada\\AppData\\Local";
    expect(folderOf({ LOCALAPPDATA: local }, "win32")).toBe(`${local}\\tilewright`);
    expect(folderOf({}, "win32", "C:\\Users\\ada")).toBe(`${local}\\tilewright`);
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
    const here = new URL("../opening.ts", import.meta.url).href;
    const before = compilerFingerprint(here);
    expect(before).toMatch(/^\d+\.\d+\.\d+ \d+ files of [\d.]+$/);
    expect(compilerFingerprint(here)).toBe(before);
  });

  test("of a checkout is another when any module has changed since", () => {
    const modules = join(folder, "checkout/src");
    const names = ["cuda/opening.ts", ...compilerFolders.map((name) => `${name}/a.ts`), "ir/b.ts"];
    const past = new Date(2020, 0, 1);
    writeFileSync(made(join(folder, "checkout/package.json")), '{ "version": "1.2.3" }');
    for (const name of names) {
      writeFileSync(made(join(modules, name)), "");
      utimesSync(join(modules, name), past, past);
    }
    const address = pathToFileURL(join(modules, "cuda/opening.ts")).href;
    const before = compilerFingerprint(address);
    const seen = compilerFolders.map((name) => {
      const later = new Date(2020, 0, 2 + compilerFolders.indexOf(name));
      utimesSync(join(modules, name, "a.ts"), later, later);
      return compilerFingerprint(address);
    });
    expect(new Set([before, ...seen]).size).toBe(compilerFolders.length + 1);
  });

  test("looks at every folder that a kernel is lowered by", () => {
    const pipeline = readFileSync(new URL("../../lower/stages.ts", import.meta.url), "utf8");
    const imported = [...pipeline.matchAll(/from "\.\.\/(\w+)\//g)].map(([, name = ""]) => name);
    // Limits of a block refuse kernels and change none.
    const deciding = imported.filter((name) => name !== "sim");
    expect(compilerFolders).toEqual(expect.arrayContaining(["lower", ...deciding]));
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
