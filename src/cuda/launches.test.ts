/** Parameters of every kind, tensor maps, and messages, as the driver receives and gives them. */
import { describe, expect, test } from "vitest";
import { bf16, bool, dtypes, f16, f32, f4e2m1fn, i4, i64, i8, u8 } from "../formats/dtype.ts";
import type { DType, HostValue } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, scalar, slice } from "../lang/index.ts";
import { multiplySizes } from "../ir/size.ts";
import type { LaunchParameter, MessageSite, TensorMapPlan } from "../ptx/executable.ts";
import { ringHeaderWords } from "../ptx/print-ring.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { readAddress } from "./driver.ts";
import type { FakeKernel, FakeLaunch } from "../../test/support/fake-driver/driver.ts";
import { floatsAt, openFake, settle } from "../../test/support/fake-driver/harness.ts";
import type { Harness } from "../../test/support/fake-driver/harness.ts";
import { readTensorMap } from "../../test/support/fake-driver/launch.ts";
import type { FakeTensorMap } from "../../test/support/fake-driver/launch.ts";

const n = dim("n");

async function withDevice<T>(harness: Harness, use: (harness: Harness) => Promise<T>): Promise<T> {
  try {
    return await use(harness);
  } finally {
    harness.device.dispose();
    await settle();
    expect(harness.driver.live).toEqual({});
    expect(harness.driver.misuses).toEqual([]);
  }
}

describe("scalars", () => {
  const cases: readonly (readonly [DType, HostValue, readonly number[]])[] = [
    [f32, 1.5, [0, 0, 0xc0, 0x3f]],
    [dtypes.f64, 1, [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]],
    [f16, -2, [0, 0xc0]],
    [bf16, 3, [0x40, 0x40]],
    [i8, -1, [0xff]],
    [i4, -3, [0xfd]],
    [f4e2m1fn, 6, [7]],
    [u8, 200, [200]],
    [bool, true, [1]],
    [i64, -2n, [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]],
  ];

  test.each(cases)("of $name are passed as their bits", async (dtype, value, bytes) => {
    const takes = kernel(
      { name: "takes", grid: { i: 1 }, inputs: { value: scalar(dtype) } },
      () => undefined,
    );
    let found: readonly number[] = [];
    const run: FakeKernel = {
      sizes: [bytes.length],
      run: ({ parameters: [only] }) => {
        found = Array.from(new Uint8Array(only?.buffer ?? new ArrayBuffer(0)));
      },
    };
    const parameters: readonly LaunchParameter[] = [{ kind: "scalar", name: "value", dtype }];
    await withDevice(
      openFake({ kernels: { takes: run }, plans: { takes: { parameters } } }),
      ({ device }) => device.run(takes, { value }),
    );
    expect(found).toEqual(bytes);
  });
});

describe("sizes", () => {
  test("are evaluated with the launch's dimensions, in 32 or 64 bits", async () => {
    const sized = kernel(
      { name: "sized", grid: { i: cdiv(n, 3) }, inputs: { x: tensor(u8, [n]) } },
      () => undefined,
    );
    const found: number[] = [];
    const run: FakeKernel = {
      sizes: [4, 8],
      run: ({ grid, parameters: [small, large] }) => {
        found.push(
          grid,
          small?.getUint32(0, true) ?? 0,
          readAddress(large ?? new DataView(new ArrayBuffer(8)), 0),
        );
      },
    };
    const parameters: readonly LaunchParameter[] = [
      { kind: "size", size: cdiv(n, 3), bits: 32 },
      { kind: "size", size: multiplySizes(n, 2 ** 33), bits: 64 },
    ];
    await withDevice(
      openFake({ kernels: { sized: run }, plans: { sized: { parameters } } }),
      ({ device }) => device.run(sized, { x: fromNumbers(u8, [7], Array(7).fill(0)) }),
    );
    expect(found).toEqual([3, 3, 7 * 2 ** 33]);
  });
});

describe("tensor maps", () => {
  const mapped = kernel(
    { name: "mapped", grid: { i: 1 }, inputs: { x: tensor(f32, [8, n]) } },
    () => undefined,
  );
  const plan: TensorMapPlan = {
    array: "x",
    dtype: f32,
    extents: [n, 8],
    strides: [multiplySizes(n, 4)],
    box: [32, 8],
    swizzle: 128,
    fill: "zero",
    use: "load",
  };

  /** The map that reaches the kernel for an array of `columns` columns. */
  async function mapFor(
    changes: Partial<TensorMapPlan>,
    columns = 16,
  ): Promise<FakeTensorMap & { readonly base: number; readonly standIn: Uint8Array }> {
    const maps: FakeTensorMap[] = [];
    let [base, standIn] = [0, new Uint8Array()];
    const run: FakeKernel = {
      sizes: [8, 128],
      run: ({ parameters: [x, map], memory }) => {
        if (x === undefined || map === undefined) throw new Error("a parameter is missing");
        base = readAddress(x, 0);
        const found = readTensorMap(map);
        maps.push(found);
        if (found.address !== base) standIn = memory.view("host", found.address, 64).slice();
      },
    };
    const parameters: readonly LaunchParameter[] = [
      { kind: "array", name: "x" },
      { kind: "tensorMap", map: { ...plan, ...changes } },
    ];
    const x = fromNumbers(f32, [8, columns], Array<number>(8 * columns).fill(0));
    await withDevice(
      openFake({ kernels: { mapped: run }, plans: { mapped: { parameters } } }),
      ({ device }) => device.run(mapped, { x }),
    );
    const [map] = maps;
    if (map === undefined) throw new Error("nothing was launched");
    return { ...map, base, standIn };
  }

  test("are encoded with the array's address and the launch's dimensions", async () => {
    const { base, standIn, ...map } = await mapFor({});
    expect(standIn).toHaveLength(0);
    expect(map).toEqual({
      dataType: 7,
      address: base,
      extents: [16, 8],
      strides: [64],
      box: [32, 8],
      swizzle: 3,
      fill: 0,
    });
  });

  test("know number formats, swizzles and fills", async () => {
    expect(await mapFor({ dtype: bf16, swizzle: 64, fill: "nan" })).toMatchObject({
      dataType: 9,
      swizzle: 2,
      fill: 1,
    });
    expect((await mapFor({ dtype: dtypes.f8e4m3fn, swizzle: 0 })).dataType).toBe(0);
    expect((await mapFor({ dtype: dtypes.tf32, swizzle: 32 })).dataType).toBe(11);
  });

  test("of arrays without elements have memory of their own, with the fill to load or to store to", async () => {
    const found: number[] = [];
    for (const changes of [{}, { fill: "nan" }, { use: "store" }] as const) {
      const { base, address, extents, strides, standIn } = await mapFor(changes, 0);
      expect({ extents, strides }).toEqual({ extents: [1, 1], strides: [16] });
      expect(address).not.toBe(base);
      found.push(new Uint16Array(standIn.buffer)[31] ?? -1);
    }
    expect(found).toEqual([0, 0x7ff7, 0]);
  });

  test.each([
    ["a stride of 20 bytes", {}, 5],
    ["cuTensorMapEncodeTiled answered CUDA_ERROR_INVALID_VALUE (1)", { box: [512, 1] }, 16],
  ] as const)("of %s are refused with what to do", async (found, changes, columns) => {
    const report: unknown = await mapFor(changes, columns).catch((error: unknown) => error);
    expect(report).toMatchObject({ code: "TW4511", found });
    expect(String(report)).toContain("array x of kernel mapped");
  });
});

describe("messages", () => {
  const position = { file: "user.ts", line: 12, column: 5 };
  const sites: readonly MessageSite[] = [
    { kind: "print", text: "x is {}", values: [{ dtype: f32, shape: [] }], position },
    {
      kind: "assert",
      text: "x is small",
      values: [{ dtype: bool, shape: [] }],
      position,
    },
  ];
  const talks = kernel(
    {
      name: "talks",
      grid: { i: n },
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
    },
    ({ i, x, out }) => out.at(slice(i, 1)).store(x.at(slice(i, 1)).load()),
  );

  /** Prints every element, and asserts that it is below 10. */
  const talking: FakeKernel = {
    sizes: [8, 8, 8],
    run: (launch: FakeLaunch) => {
      const [x, out, ring] = launch.parameters.map((view) => readAddress(view, 0));
      const values = floatsAt(launch, x ?? 0, launch.grid);
      floatsAt(launch, out ?? 0, launch.grid).set(values);
      const bytes = launch.memory.view("device", ring ?? 0, 2 ** 18);
      const words = new Uint32Array(bytes.buffer, bytes.byteOffset, 2 ** 16);
      const append = (...record: readonly number[]): void => {
        const start = words[0] ?? 0;
        words[0] = start + record.length;
        if (start + ringHeaderWords + record.length <= (words[1] ?? 0))
          words.set(record, start + ringHeaderWords);
      };
      values.forEach((value, block) => {
        append(1, block, 0, 1, new Uint32Array(Float32Array.of(value).buffer)[0] ?? 0);
        if (value < 10) return;
        words[2] = 1;
        append(2, block, 0, 1, 0);
      });
    },
  };
  const plans = {
    talks: {
      parameters: [
        { kind: "array", name: "x" },
        { kind: "array", name: "out" },
        { kind: "messages" },
      ] satisfies LaunchParameter[],
      messages: sites,
    },
  };

  function openTalking(lines: string[]): Harness {
    return openFake({ kernels: { talks: talking }, plans, onPrint: (line) => lines.push(line) });
  }

  function floats(...values: readonly number[]) {
    return fromNumbers(f32, [values.length], values);
  }

  test("are printed when the host next waits, once", async () => {
    const lines: string[] = [];
    await withDevice(openTalking(lines), async ({ device }) => {
      const { out } = await device.run(talks, { x: floats(1, 2) });
      expect(Array.from(toNumbers(out))).toEqual([1, 2]);
      const first = [
        "[thread main of block (i = 0)] x is 1",
        "[thread main of block (i = 1)] x is 2",
      ];
      expect(lines).toEqual(first);
      await device.synchronize();
      expect(lines).toEqual(first);
      const x = await device.upload(floats(7));
      const target = device.allocate(f32, [1]);
      const bound = device.bind(talks, { x, out: target });
      bound.launch();
      device.launch(talks, { x, out: target });
      bound.launch();
      await device.download(target);
      expect(lines).toHaveLength(5);
      bound.dispose();
      x.dispose();
      target.dispose();
    });
  });

  test("that tell of a failed assertion fail the run, with the user's line", async () => {
    await withDevice(openTalking([]), async ({ device }) => {
      const report: unknown = await device
        .run(talks, { x: floats(1, 20) })
        .catch((error: unknown) => error);
      expect(report).toBeInstanceOf(TilewrightError);
      expect(report).toMatchObject({
        code: "TW3012",
        summary: "assertion failed: x is small",
        position,
        found: "false in thread main of block (i = 1)",
      });
      // The device is as good as before, and the failure was told.
      await device.synchronize();
      await device.run(talks, { x: floats(1) });
    });
  });

  test("of a launch wait for synchronize", async () => {
    await withDevice(openTalking([]), async ({ device }) => {
      const x = await device.upload(floats(11));
      const out = device.allocate(f32, [1]);
      device.launch(talks, { x, out });
      expect(Array.from(toNumbers(await device.download(out)))).toEqual([11]);
      await expect(device.synchronize()).rejects.toMatchObject({ code: "TW3012" });
      await device.synchronize();
      x.dispose();
      out.dispose();
    });
  });

  test("of many launches share a ring, and so take no more memory", async () => {
    const lines: string[] = [];
    await withDevice(openTalking(lines), async ({ driver, device }) => {
      const x = await device.upload(floats(1));
      const out = device.allocate(f32, [1]);
      for (let round = 0; round < 100; round += 1) device.launch(talks, { x, out });
      expect(driver.memory.count("device")).toBe(3);
      await device.synchronize();
      expect(lines).toHaveLength(100);
      x.dispose();
      out.dispose();
    });
  });

  describe("of launches that differ keep apart:", () => {
    const speaks = kernel(
      {
        name: "speaks",
        grid: { i: n },
        inputs: { x: tensor(f32, [n]) },
        outputs: { out: tensor(f32, [n]) },
      },
      ({ i, x, out }) => out.at(slice(i, 1)).store(x.at(slice(i, 1)).load()),
    );
    const both = {
      kernels: { talks: talking, speaks: talking },
      plans: {
        ...plans,
        speaks: {
          ...plans.talks,
          messages: sites.map((site) => ({ ...site, text: site.text.replace("x", "y") })),
        },
      },
    };

    async function linesOf(work: (harness: Harness) => Promise<void>): Promise<readonly string[]> {
      const lines: string[] = [];
      await withDevice(openFake({ ...both, onPrint: (line) => lines.push(line) }), work);
      return lines;
    }

    test("of other kernels", async () => {
      const lines = await linesOf(async ({ device }) => {
        const x = await device.upload(floats(7));
        const out = device.allocate(f32, [1]);
        device.launch(talks, { x, out });
        device.launch(speaks, { x, out });
        await device.synchronize();
        const bound = device.bind(talks, { x, out });
        bound.launch();
        bound.dispose();
        const other = device.bind(speaks, { x, out });
        other.launch();
        await device.synchronize();
        for (const each of [other, x, out]) each.dispose();
      });
      const block = "[thread main of block (i = 0)]";
      const pair = [`${block} x is 7`, `${block} y is 7`];
      expect(lines).toEqual([...pair, ...pair]);
    });

    test("of other sizes", async () => {
      await linesOf(async ({ driver, device }) => {
        const [one, two] = [await device.upload(floats(1)), await device.upload(floats(2, 3))];
        const [first, second] = [device.allocate(f32, [1]), device.allocate(f32, [2])];
        device.launch(talks, { x: one, out: first });
        device.launch(talks, { x: two, out: second });
        expect(driver.memory.count("device")).toBe(6);
        await device.synchronize();
        for (const each of [one, two, first, second]) each.dispose();
      });
    });

    test("of recordings", async () => {
      const lines = await linesOf(async ({ device }) => {
        const x = await device.upload(floats(7));
        const out = device.allocate(f32, [1]);
        const parts = [device.bind(talks, { x, out }), device.bind(speaks, { x, out })];
        const recording = device.record(parts);
        recording.launch();
        await device.synchronize();
        recording.launch();
        await device.synchronize();
        for (const each of [recording, ...parts, x, out]) each.dispose();
      });
      expect(lines.map((line) => line.slice(-6))).toEqual(["x is 7", "y is 7", "x is 7", "y is 7"]);
    });
  });

  test("that find no room are counted", async () => {
    const lines: string[] = [];
    await withDevice(openTalking(lines), async ({ device }) => {
      await device.run(talks, { x: floats(...Array<number>(20_000).fill(3)) });
      expect(lines.at(-1)).toMatch(/^\[kernel talks\] further messages found no room: \d+ bytes/);
      expect(lines.length).toBe(Math.floor((2 ** 16 - 4) / 5) + 1);
    });
  });
});
