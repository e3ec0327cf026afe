/**
 * The device around compiled kernels: memory, threads, limits and what goes wrong. The kernels are modules written by hand, so that nothing
 * here depends on the compiler.
 */
import { afterEach, describe, expect, test, vi } from "vitest";
import { SourceThreads } from "../../../test/support/source-threads.ts";
import { Device } from "../../device/device.ts";
import { f32, i32 as i32Type } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { Kernel } from "../../ir/node.ts";
import { cdiv, dim, kernel, slice, tensor } from "../../lang/index.ts";
import { cpuTarget } from "../../targets/target.ts";
import type { CpuKernel } from "../compiled-kernel.ts";
import { constant, i32, load, ModuleBuilder, op } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import { emitModule } from "../loops/emit.ts";
import type { Expression } from "../loops/ir.ts";
import { CpuBackend } from "./backend.ts";
import { askAgain, requireWebAssembly } from "./support.ts";

const n = dim("n");

/** Its blocks are sixteen elements each; what they do is written below, by its name. */
const kernelNamed = (name: string) =>
  kernel(
    {
      name,
      grid: { i: cdiv(n, 16) },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]), count: tensor(i32Type, [16]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(16), 16);
      out.at(here).store(x.at(here).load().mul(2));
    },
  );

interface Place {
  readonly block: Expression;
  readonly scratch: Expression;
  readonly arrays: { readonly [N in "x" | "out" | "count"]: Expression };
}

const bodies: { readonly [name: string]: (b: FunctionBuilder, place: Place) => void } = {
  scale: (b, { block, arrays: { x, out, count } }) => {
    const at = b.keep(op("i32.shl", block, i32.of(6)));
    b.countedLoop(i32.of(0), i32.of(64), 16, (offset) => {
      const value = b.keep(load("v128.load", i32.add(x, i32.add(at, offset))));
      b.store("v128.store", i32.add(out, i32.add(at, offset)), op("f32x4.add", value, value));
    });
    b.run(op("i32.atomic.rmw.add", count, i32.of(1)));
  },
  // About a millisecond.
  slow: (b, { arrays: { count } }) => {
    b.countedLoop(i32.of(0), i32.of(2_000_000), 1, () => undefined);
    b.run(op("i32.atomic.rmw.add", count, i32.of(1)));
  },
  trap: (b, { block }) => {
    b.if(op("i32.eq", block, i32.of(3)), () => b.unreachable());
  },
  fault: stopsWith(1),
  waits: stopsWith(2),
};

function stopsWith(number: number): (b: FunctionBuilder, place: Place) => void {
  return (b, { block, scratch }) => {
    b.if(op("i32.eq", block, i32.of(5)), () => {
      b.store("i32.store", scratch, block);
      b.return(i32.of(number));
    });
  };
}

function compile({ name, grid, location }: Kernel): CpuKernel {
  const body = bodies[name];
  if (body === undefined) throw new Error(name);
  const module = new ModuleBuilder({ memory: { minimum: 1, maximum: 65_536, shared: true } });
  module.define(
    "run",
    ["i32", "i32", "i32", "i32"],
    ["i32"],
    (b, given, begin, end, scratch) => {
      const [x, out, count] = [0, 4, 8].map((at) => b.keep(load("i32.load", given, at))) as [
        Expression,
        Expression,
        Expression,
      ];
      b.countedLoop(begin, end, 1, (block) => {
        body(b, { block, scratch, arrays: { x, out, count } });
      });
      b.return(constant("i32", 0));
    },
    { exported: true },
  );
  return {
    name,
    bytes: emitModule(module.finish()),
    relaxed: false,
    grid,
    argumentBytes: 12,
    fields: ["x", "out", "count"].map((array, i) => ({
      kind: "array",
      name: array,
      offset: 4 * i,
    })),
    scratchBytes: 16,
    blocks: "atomic",
    faults: [
      { kind: "assert", text: "five", location, values: [] },
      { kind: "deadlock", text: "a barrier", location, values: [] },
    ],
    prints: [],
    hostCalls: [],
  };
}

const open = (threads = 1, memoryLimit?: number): { device: Device; host: SourceThreads } => {
  const host = new SourceThreads();
  const parts = { compile, features: { relaxed: false }, host };
  const backend = new CpuBackend({ target: cpuTarget, threads, memoryLimit }, parts);
  return { device: new Device(backend, { onLeak: () => undefined }), host };
};

const devices: Device[] = [];
function opened(threads = 1, memoryLimit?: number): { device: Device; host: SourceThreads } {
  const made = open(threads, memoryLimit);
  devices.push(made.device);
  return made;
}

afterEach(() => {
  for (const device of devices.splice(0)) device.dispose();
  vi.unstubAllGlobals();
  askAgain();
});

const input = (count: number) =>
  fromNumbers(
    f32,
    [count],
    Float64Array.from({ length: count }, (_, at) => at % 1001),
  );

async function runs(device: Device, name: string, count: number): Promise<void> {
  const { out } = await device.run(kernelNamed(name), { x: input(count) });
  if (name === "scale")
    expect(toNumbers(out)).toEqual(toNumbers(input(count)).map((value) => 2 * value));
}

/** Counters begin with anything: arrays of devices are not cleared. */
async function blocksRun(device: Device, name: string, count: number): Promise<number> {
  const x = await device.upload(input(count));
  const out = device.allocate(f32, [count]);
  const counter = await device.zeros(i32Type, [16]);
  try {
    device.launch(kernelNamed(name), { x, out, count: counter });
    await device.synchronize();
    return Number(await device.element(counter, 0));
  } finally {
    for (const array of [x, out, counter]) array.dispose();
  }
}

describe("memory", () => {
  test("grows while arrays live, and views of it are made anew", async () => {
    const { device } = opened();
    const small = await device.upload(input(64));
    const before = device.memory.reserved;
    const large = device.allocate(f32, [1 << 22]);
    expect(device.memory.reserved).toBeGreaterThan(before);
    expect(device.memory).toMatchObject({ used: 256 + (1 << 24), allocations: 2 });
    expect(toNumbers(await device.download(small))).toEqual(toNumbers(input(64)));
    await runs(device, "scale", 1 << 16);
    large.dispose();
    small.dispose();
    await device.synchronize();
    expect(device.memory).toMatchObject({ used: 0, allocations: 0 });
  });

  test("what has no room in 4 GiB is a coded error, and the device goes on", async () => {
    const { device } = opened();
    expect(() => device.allocate(f32, [1 << 30])).toThrow(
      expect.objectContaining({ code: "TW4701" }),
    );
    await runs(device, "scale", 1024);
  });

  test("above 2 GiB addresses are as good as below", async () => {
    const { device } = opened();
    const below = device.allocate(f32, [550_000_000]);
    const array = await device.upload(input(64));
    expect(device.memory.reserved).toBeGreaterThan(2 ** 31);
    expect(toNumbers(await device.download(array))).toEqual(toNumbers(input(64)));
    await runs(device, "scale", 1600);
    expect(await blocksRun(device, "scale", 1600)).toBe(100);
    below.dispose();
    array.dispose();
  });

  test("a memoryLimit is kept", () => {
    const { device } = opened(1, 1024);
    expect(() => device.allocate(f32, [512])).toThrow(expect.objectContaining({ code: "TW4030" }));
  });

  test("arrays lie apart: what is written behind one harms none", async () => {
    const { device } = opened();
    const arrays = await Promise.all(
      [3, 16, 17, 0].map((count) =>
        device.upload(fromNumbers(f32, [count], new Float64Array(count).fill(count))),
      ),
    );
    for (const array of arrays) await device.fill(array, 7);
    for (const array of arrays) {
      const values = toNumbers(await device.download(array));
      expect(values).toEqual(new Float64Array(values.length).fill(7));
      array.dispose();
    }
  });
});

describe("launches", () => {
  test.each([0, 1, 15, 16, 17, 1000])("%s elements", async (count) => {
    const { device } = opened();
    await runs(device, "scale", 16 * Math.ceil(count / 16));
  });

  test("recorded ones run in their order, loops and branches by what memory says", async () => {
    const { device } = opened();
    const x = await device.upload(input(160));
    const out = device.allocate(f32, [160]);
    const count = await device.zeros(i32Type, [16]);
    const once = device.bind(kernelNamed("scale"), { x, out, count });
    const thrice = device.record([once, once, once]);
    thrice.launch();
    await device.synchronize();
    expect(await device.element(count, 0)).toBe(30);
    const branch = device.control({
      kind: "branch",
      selector: await device.upload(fromNumbers(i32Type, [1], [1])),
      isBool: false,
      branches: [[once, once], [once], []],
    });
    device.record([branch]).launch();
    await device.synchronize();
    expect(await device.element(count, 0)).toBe(40);
  });

  test("a trap is told with the kernel, and the device goes on", async () => {
    const { device } = opened();
    await expect(runs(device, "trap", 160)).rejects.toMatchObject({ code: "TW4702" });
    await runs(device, "scale", 160);
  });

  test("a fault is told in the simulator's words", async () => {
    const { device } = opened();
    const found = expect.stringContaining("i = 5") as string;
    await expect(runs(device, "fault", 160)).rejects.toMatchObject({ code: "TW3012", found });
    await expect(runs(device, "waits", 160)).rejects.toMatchObject({ code: "TW4705", found });
  });

  test.each([1, 2])(
    "with %s threads: a long launch ends with its time, the device goes on",
    async (threads) => {
      const { device } = opened(threads);
      // Threads are there.
      await blocksRun(device, "slow", 16 * 40);
      const begin = performance.now();
      const run = device.run(kernelNamed("slow"), { x: input(16 * 20_000) }, { timeLimit: 60 });
      await expect(run).rejects.toMatchObject({ code: "TW3022" });
      expect(performance.now() - begin).toBeLessThan(10_000);
      expect(await blocksRun(device, "scale", 1600)).toBe(100);
    },
  );

  test("a signal ends it, and steps are blocks", async () => {
    const { device } = opened();
    const controller = new AbortController();
    const run = device.run(
      kernelNamed("slow"),
      { x: input(16 * 20_000) },
      { signal: controller.signal },
    );
    setTimeout(() => controller.abort("enough"), 30);
    await expect(run).rejects.toMatchObject({ code: "TW3022" });
    const few = device.run(kernelNamed("slow"), { x: input(16 * 20_000) }, { stepLimit: 20 });
    await expect(few).rejects.toMatchObject({ code: "TW3022" });
  });
});

describe("threads", () => {
  test("take blocks of long launches, each once, and end with the device", async () => {
    const { device, host } = opened(3);
    for (let round = 0; round < 5; round++)
      expect(await blocksRun(device, "slow", 16 * 60)).toBe(60);
    expect(host.started.length).toBe(1);
    // Small launches between large ones, as threads wake late.
    for (let round = 0; round < 50; round++) {
      expect(await blocksRun(device, "scale", 16 * (1 + (round % 7)))).toBe(1 + (round % 7));
      if (round % 10 === 0) expect(await blocksRun(device, "slow", 16 * 9)).toBe(9);
    }
    const ended = Promise.all(
      host.started.map((worker) => new Promise((told) => worker.once("exit", told))),
    );
    device.dispose();
    await ended;
  });

  test("a trap in one of them is told", async () => {
    const { device } = opened(2);
    await blocksRun(device, "slow", 16 * 60);
    for (let round = 0; round < 5; round++)
      await expect(runs(device, "trap", 16_000)).rejects.toMatchObject({ code: "TW4702" });
    await runs(device, "scale", 16_000);
  });

  test("one that ends while it runs blocks is told", async () => {
    const { device, host } = opened(2);
    await blocksRun(device, "slow", 16 * 60);
    const run = blocksRun(device, "slow", 16 * 200);
    setTimeout(() => void host.started[0]?.terminate(), 20);
    await run.then(
      // It may have been between two ranges.
      (blocks) => expect(blocks).toBe(200),
      (error: unknown) => expect(error).toMatchObject({ code: "TW4704" }),
    );
    expect(await blocksRun(device, "slow", 16 * 20)).toBe(20);
  });

  test("none are there without shared memory", async () => {
    vi.stubGlobal("crossOriginIsolated", false);
    const { device, host } = opened(2);
    expect(await blocksRun(device, "slow", 16 * 30)).toBe(30);
    expect(host.started).toEqual([]);
  });
});

test("a host without WebAssembly, and a page that forbids it, are told so", () => {
  askAgain();
  vi.stubGlobal("WebAssembly", undefined);
  expect(requireWebAssembly).toThrow(expect.objectContaining({ code: "TW4703" }));
  askAgain();
  class Module {
    constructor() {
      throw new Error("Refused to compile or instantiate WebAssembly module");
    }
  }
  vi.stubGlobal("WebAssembly", { Module });
  expect(requireWebAssembly).toThrow(/may not compile WebAssembly/);
});
