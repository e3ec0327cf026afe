/** Launches of operations, found from one process to the next by what an operation was given: what is found, and what never is. */
import { mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FakeDriver } from "../../../test/support/fake-driver/driver.ts";
import {
  elementwise,
  openFake,
  scaledParameters,
  settle,
  stubCompiler,
} from "../../../test/support/fake-driver/harness.ts";
import type { CompilationRecord } from "../../device/compilation.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import { f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, scalar, slice } from "../../lang/index.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
import { KernelCache } from "./kernel-cache.ts";
import { FileStore } from "./store.ts";

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-launches-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const n = dim("n");

/** What the kernels of the fake driver do is told by their names. */
const kernels = {
  times2: elementwise((x, factor) => 2 * x * factor),
  times3: elementwise((x, factor) => 3 * x * factor),
};

interface Given {
  readonly times: number;
  readonly [name: string]: unknown;
}

/** An operation of two launches through scratch: out = (times · factor)² x. */
function squared(
  given: Given,
  onTrace: () => void = () => undefined,
  onPlan: () => void = () => undefined,
) {
  const product = (times: number) => {
    onTrace();
    return kernel(
      {
        name: `times${times}`,
        grid: { i: cdiv(n, 4) },
        inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
        outputs: { out: tensor(f32, [n]) },
      },
      ({ i, x, factor, out }) => {
        const here = slice(i.mul(4), 4);
        out.at(here).store(x.at(here).load().mul(times).mul(factor));
      },
    );
  };
  const plan = ({ n: count = 0 }: { readonly [name: string]: number }): Planned => {
    onPlan();
    return {
      configuration: {},
      source: "heuristic",
      scratch: { between: { dtype: f32, shape: [count] } },
      launches: () => [
        {
          kernel: product(given.times),
          arguments: {
            x: { argument: "x" },
            factor: { scalar: 1 },
            out: { argument: "between", shape: [count] },
          },
        },
        {
          kernel: product(given.times),
          arguments: {
            x: { argument: "between" },
            factor: { scalar: 1 },
            out: { argument: "out" },
          },
        },
      ],
    };
  };
  return libraryOperation(
    { name: "squared", inputs: { x: tensor(f32, [n]) }, outputs: { out: tensor(f32, [n]) }, plan },
    given,
  );
}

interface Surroundings {
  readonly compiler?: string;
  readonly driverVersion?: number;
  readonly notes?: { readonly [kernel: string]: readonly PerformanceNote[] };
  readonly before?: (operation: Operation) => void;
}

/** Runs the operation in what stands for a process of its own; gives what it had to do. */
async function inProcess(given: Given, surroundings: Surroundings = {}) {
  const { compiler: version = "1.0", driverVersion = 13000, notes = {}, before } = surroundings;
  const [compiled, done] = [[] as string[], { traced: 0, planned: 0 }];
  const driver = new FakeDriver({ kernels, driverVersion });
  const { device } = openFake({
    driver,
    cache: new KernelCache(new FileStore(folder, 2 ** 30), version),
    compiler: stubCompiler(
      { times2: { parameters: scaledParameters }, times3: { parameters: scaledParameters } },
      (name) => compiled.push(name),
      notes,
    ),
  });
  const operation = squared(
    given,
    () => (done.traced += 1),
    () => (done.planned += 1),
  );
  before?.(operation as unknown as Operation);
  const { out } = await device.run(operation, { x: fromNumbers(f32, [2], [1, 2]) });
  const records: readonly CompilationRecord[] = device.compilations;
  device.dispose();
  const { traced, planned } = done;
  return { out: [...toNumbers(out)], compiled, traced, planned, records, done };
}

const cold2 = { out: [4, 8], compiled: ["times2"], traced: 2, planned: 1 };
const warm2 = { out: [4, 8], compiled: [], traced: 0, planned: 0 };
const cold3 = { out: [9, 18], compiled: ["times3"], traced: 2, planned: 1 };
const warm3 = { out: [9, 18], compiled: [], traced: 0, planned: 0 };

describe("launches of an operation", () => {
  test("are found without the plan's being made, or a kernel's being traced", async () => {
    expect(await inProcess({ times: 2 })).toMatchObject(cold2);
    expect(await inProcess({ times: 2 })).toMatchObject(warm2);
    expect(await inProcess({ times: 3 })).toMatchObject(cold3);
    expect(await inProcess({ times: 3 })).toMatchObject(warm3);
    expect(await inProcess({ times: 2 })).toMatchObject(warm2);
  });

  test("are on the record, which traces kernels where somebody asks for them", async () => {
    await inProcess({ times: 2 });
    const { records, done } = await inProcess({ times: 2 });
    const [record] = records;
    expect(records).toHaveLength(1);
    expect(record).toMatchObject({ kernel: "times2", cached: true, notes: [], device: "gpu" });
    expect(record?.reason).toBe("first launch");
    expect(record?.machineCode).toMatchObject({ registers: 40 });
    expect(record?.traced?.name).toBe("times2");
    expect(done.traced).toBe(2);
  });

  test.each([
    ["behind the result that was waited for", true],
    ["at the end, where nothing was", false],
  ])("are put into files %s", async (_, waits) => {
    const parameters = { parameters: scaledParameters };
    const { device } = openFake({
      driver: new FakeDriver({ kernels }),
      cache: new KernelCache(new FileStore(folder, 2 ** 30), "1.0"),
      compiler: stubCompiler({ times2: parameters }),
    });
    const [x, out] = [device.allocate(f32, [2]), device.allocate(f32, [2])];
    device.launch(squared({ times: 2 }), { x, out });
    for (const each of [x, out]) each.dispose();
    if (waits) await device.synchronize();
    expect(readdirSync(folder)).toEqual([]);
    if (waits) await settle();
    else device.dispose();
    const kinds = readdirSync(folder).map((name) => name.split("-")[0]);
    expect(new Set(kinds)).toEqual(new Set(["code", "kernel", "launches"]));
    if (waits) device.dispose();
    expect(await inProcess({ times: 2 })).toMatchObject(warm2);
  });

  test("are put into files even where machine code cannot be had", async () => {
    let asked = 0;
    const { device } = openFake({
      driver: new FakeDriver({ kernels }),
      cache: new KernelCache(new FileStore(folder, 2 ** 30), "1.0"),
      compiler: stubCompiler({ times2: { parameters: scaledParameters } }),
      machineCode: () => {
        asked += 1;
        throw new Error("no machine code");
      },
    });
    const [x, out] = [device.allocate(f32, [2]), device.allocate(f32, [2])];
    device.launch(squared({ times: 2 }), { x, out });
    await device.synchronize();
    await settle();
    expect(asked).toBeGreaterThan(0);
    const kinds = readdirSync(folder).map((name) => name.split("-")[0]);
    expect(new Set(kinds)).toEqual(new Set(["code", "kernel", "launches"]));
    for (const each of [x, out]) each.dispose();
    device.dispose();
  });

  test("are found again when the device has used many other kernels since", async () => {
    await inProcess({ times: 2 });
    const { device } = openFake({
      driver: new FakeDriver({ kernels }),
      cache: new KernelCache(new FileStore(folder, 2 ** 30), "1.0"),
      compiler: stubCompiler(),
    });
    const operation = squared({ times: 2 });
    const x = fromNumbers(f32, [2], [1, 2]);
    for (let turn = 0; turn < 3; turn += 1)
      expect([...toNumbers((await device.run(operation, { x })).out)]).toEqual([4, 8]);
    expect(device.compilations).toHaveLength(1);
    device.dispose();
  });

  test("are not those of another compiler or driver", async () => {
    await inProcess({ times: 2 });
    expect(await inProcess({ times: 2 }, { compiler: "1.1" })).toMatchObject(cold2);
    expect(await inProcess({ times: 2 }, { driverVersion: 12080 })).toMatchObject(cold2);
  });

  test("are traced where something that was given is a function, or was changed", async () => {
    const traced = { out: [4, 8], compiled: [], traced: 2 };
    const captured = { times: 2, epilogue: () => 0 };
    await inProcess(captured);
    expect(await inProcess(captured)).toMatchObject(traced);
    const changed: { times: number } = { times: 3 };
    // Whether the operation has looked at the number already is its own affair.
    expect(await inProcess(changed, { before: () => (changed.times = 2) })).toMatchObject({
      out: [4, 8],
      traced: 2,
    });
    expect(await inProcess({ times: 3 })).toMatchObject(cold3);
  });

  test("are not kept where something changed between planning and tracing", async () => {
    const changed: { times: number } = { times: 2 };
    const before = (operation: Operation): void => {
      operation.plan({ n: 2 });
      changed.times = 3;
    };
    await inProcess(changed, { before });
    expect(await inProcess({ times: 2 })).toMatchObject(cold2);
    expect(await inProcess({ times: 3 })).toMatchObject({ out: [9, 18], traced: 2 });
  });

  test("are traced where a kernel has notes, which name source lines", async () => {
    const note: PerformanceNote = {
      code: "TW7502",
      message: "load of x moves 2 bytes a thread at a time",
      because: "rows of n elements need not begin at a multiple of 16 bytes",
      remedy: "say what n is a multiple of",
      position: undefined,
    };
    const notes = { times2: [note] };
    await inProcess({ times: 2 }, { notes });
    const again = await inProcess({ times: 2 }, { notes });
    expect(again.traced).toBe(2);
    expect(again.records[0]?.notes).toContainEqual(note);
  });

  type Change = (path: string, name: string) => void;
  const changes: readonly (readonly [string, Change])[] = [
    ["corrupt", (path) => writeFileSync(path, "rubbish")],
    ["empty", (path) => writeFileSync(path, "")],
    ["gone", (path) => rmSync(path)],
  ];
  const kinds = ["launches", "kernel", "code"];
  test.each(kinds.flatMap((kind) => changes.map(([what, change]) => ({ kind, what, change }))))(
    "whose $kind file is $what are made again",
    async ({ kind, change }) => {
      await inProcess({ times: 2 });
      for (const name of readdirSync(folder))
        if (name.startsWith(`${kind}-`)) change(join(folder, name), name);
      expect(await inProcess({ times: 2 })).toMatchObject({ out: [4, 8], traced: 2 });
      expect(await inProcess({ times: 2 })).toMatchObject(warm2);
    },
  );

  test("are not those of another plan that lie under its name", async () => {
    const launchesFile = (): string =>
      readdirSync(folder).find((name) => name.startsWith("launches-")) ?? "";
    await inProcess({ times: 2 });
    const own = launchesFile();
    renameSync(join(folder, own), join(folder, "aside"));
    await inProcess({ times: 3 });
    renameSync(join(folder, launchesFile()), join(folder, own));
    expect(await inProcess({ times: 2 })).toMatchObject({ out: [4, 8], traced: 2 });
    expect(await inProcess({ times: 3 })).toMatchObject({ out: [9, 18], traced: 2 });
  });

  type Fields = { readonly [name: string]: unknown };
  interface PlanHeader {
    readonly launches: readonly Fields[];
    readonly scratch: { readonly [name: string]: Fields };
  }
  /** A header with another first launch, and with other scratch. */
  const launched =
    (change: (first: Fields | undefined) => unknown) =>
    ({ launches: [first, ...others], scratch }: PlanHeader): unknown => ({
      launches: [change(first), ...others],
      scratch,
    });
  const between =
    (change: Fields) =>
    ({ launches, scratch }: PlanHeader): unknown => ({
      launches,
      scratch: { between: { ...scratch["between"], ...change } },
    });
  const headers: readonly (readonly [string, (header: PlanHeader) => unknown])[] = [
    ["is null", () => null],
    ["is a text", () => "x"],
    ["has no launches", ({ scratch }) => ({ launches: [], scratch })],
    ["is a list of launches", ({ launches }) => launches],
    ["holds nothing", launched(() => null)],
    ["has another key", launched((first) => ({ ...first, key: "../../x" }))],
    ["has no kernel", launched((first) => ({ ...first, kernel: undefined }))],
    ["gives nothing", launched((first) => ({ ...first, arguments: undefined }))],
    ["gives no array", launched((first) => ({ ...first, arguments: { x: { argument: 3 } } }))],
    [
      "gives less than nothing",
      launched((first) => ({ ...first, arguments: { x: { argument: "x", shape: [-1] } } })),
    ],
    ["gives a text", launched((first) => ({ ...first, arguments: { x: { scalar: "1" } } }))],
    ["has odd sizes", launched((first) => ({ ...first, dimensions: { n: 1.5 } }))],
    ["has no scratch", ({ launches }) => ({ launches })],
    ["has scratch of no format", between({ dtype: "f31" })],
    ["has scratch of no shape", between({ shape: undefined })],
    ["has scratch of odd sizes", between({ shape: [0.5] })],
  ];
  test.each(headers)("whose file %s are made again", async (_, change) => {
    await inProcess({ times: 2 });
    const store = new FileStore(folder, 2 ** 30);
    const name = readdirSync(folder).find((each) => each.startsWith("launches-")) ?? "";
    const key = name.replace(".kernel", "");
    store.write(key, change(store.peek(key)?.header as PlanHeader), new Uint8Array(0));
    expect(await inProcess({ times: 2 })).toMatchObject({ out: [4, 8], traced: 2 });
    expect(await inProcess({ times: 2 })).toMatchObject(warm2);
  });
});
