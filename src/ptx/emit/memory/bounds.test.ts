/**
 * Windows whose start the launch decides, at the edges of what an index can be. A test of bounds must not be
 * left out where it is not certain, and must not wrap around: what the simulator says of each is what the
 * lanes do, and nothing around the arrays is read or written.
 */
import { afterAll, describe, expect, test } from "vitest";
import { compileAhead, fromNumbers, open, toNumbers } from "tilewright";
import type { HostArray, KernelDefinition } from "tilewright";
import { f32, i32 } from "../../../formats/dtype.ts";
import {
  tensor,
  constant,
  dim,
  kernel,
  loop,
  scalar,
  slice,
  smem,
  when,
} from "../../../lang/index.ts";
import type { Index, Scalar } from "../../../lang/index.ts";

const [least, greatest] = [-(2 ** 31), 2 ** 31 - 1];
const extent = 2112;
const n = dim("n");

function counting(count: number): HostArray {
  return fromNumbers(
    f32,
    [count],
    Array.from({ length: count }, (_, index) => index + 1),
  );
}

type Arguments = { readonly [name: string]: HostArray | number };

const devices = await Promise.all([open("simulator"), open("emulator")]);
afterAll(() => {
  for (const device of devices) device.dispose();
});

/** The outputs on simulator and emulator. */
async function onBoth(
  definition: KernelDefinition,
  values: () => Arguments,
): Promise<readonly (readonly number[])[]> {
  const results: (readonly number[])[] = [];
  for (const device of devices) {
    const outputs = await device.run(definition, values());
    results.push(Object.values<HostArray>(outputs).flatMap((each) => [...toNumbers(each)]));
  }
  return results;
}

async function expectSame(definition: KernelDefinition, values: () => Arguments): Promise<void> {
  const [simulated, emulated] = await onBoth(definition, values);
  expect(emulated).toEqual(simulated);
}

/** Loads and stores 64 elements from an index that each block reads from memory. */
function windowed(index: (s: Scalar<"i32">) => Index, rows: number | typeof n, count: number) {
  return kernel(
    {
      name: "windowed",
      grid: { i: count },
      inputs: { x: tensor(f32, [rows]), starts: tensor(i32, [count]) },
      outputs: { out: tensor(f32, [count, 64]) },
      inouts: { y: tensor(f32, [count, extent]) },
    },
    ({ i, x, starts, out, y }) => {
      const start = index(starts.at(i).loadScalar());
      out.at(i).store(x.at(slice(start, 64)).load({ fill: 7 }));
      y.at(i).at(slice(start, 64)).store(-1);
    },
  );
}

const edges = [
  least,
  least + 1,
  least + 63,
  least + 64,
  least + extent,
  -100,
  -64,
  -63,
  -1,
  0,
  extent - 64,
  extent - 1,
  extent,
  2 ** 25 + 1,
  greatest - 64,
  greatest - 4,
  greatest,
];

const indices: readonly (readonly [string, (s: Scalar<"i32">) => Index])[] = [
  ["the argument", (s) => s],
  ["at most 2048", (s) => s.minimum(2048)],
  ["at least 0, at most 2048", (s) => s.maximum(0).minimum(2048)],
  ["a sum that wraps", (s) => s.maximum(0).add(16).minimum(2048)],
  ["a product that wraps", (s) => s.maximum(0).mul(64).minimum(2048)],
  ["a magnitude", (s) => s.abs().minimum(2048)],
  ["a negation", (s) => s.neg().minimum(2048)],
  ["a remainder", (s) => s.rem(2048)],
  ["a remainder by a negative number", (s) => s.rem(-100)],
  ["a quotient by −1", (s) => s.div(-1)],
  ["a multiple of 64", (s) => s.mul(64)],
  ["a multiple of 64, at most the extent", (s) => s.mul(64).minimum(extent)],
  ["a shift", (s) => s.shr(20)],
];

describe.each([["a fixed extent", extent] as const, ["an extent of the launch", n] as const])(
  "windows on %s",
  (_, rows) => {
    test.each(indices)("from %s", async (_text, index) => {
      await expectSame(windowed(index, rows, edges.length), () => ({
        x: counting(extent),
        y: fromNumbers(f32, [edges.length, extent], new Float64Array(edges.length * extent)),
        starts: fromNumbers(i32, [edges.length], edges),
      }));
    });
  },
);

describe("windows of windows", () => {
  const outer = [least, least + 90, -8, 0, 60, extent - 50, greatest - 10, greatest];
  const inner = [least, -greatest, -8, 0, 84, 95, greatest - 90, greatest];
  const nested = kernel(
    {
      name: "nested",
      grid: { i: outer.length, j: inner.length },
      inputs: {
        x: tensor(f32, [n]),
        s: tensor(i32, [outer.length]),
        t: tensor(i32, [inner.length]),
      },
      outputs: { out: tensor(f32, [outer.length, inner.length, 16]) },
    },
    ({ i, j, x, s, t, out }) => {
      const window = x.at(slice(s.at(i).loadScalar(), 100)).at(slice(t.at(j).loadScalar(), 16));
      out.at(i, j).store(window.load({ fill: 7 }));
    },
  );
  test("whose starts wrap together are outside", async () => {
    await expectSame(nested, () => ({
      x: counting(extent),
      s: fromNumbers(i32, [outer.length], outer),
      t: fromNumbers(i32, [inner.length], inner),
    }));
  });
});

test("a window before a window that is as long as an index can be", async () => {
  const [count, before] = [512, 3];
  const definition = kernel(
    {
      name: "long",
      inputs: { x: tensor(f32, [n]), starts: tensor(i32, [1]) },
      outputs: { out: tensor(f32, [count]) },
    },
    ({ x, starts, out }) => {
      const start = starts.at(0).loadScalar();
      out.store(x.at(slice(10, greatest)).at(slice(start, count)).load({ fill: -1 }));
    },
  );
  const expected = Array.from({ length: count }, (_, index) =>
    index < before ? -1 : 11 + index - before,
  );
  const results = await onBoth(definition, () => ({
    x: counting(extent),
    starts: fromNumbers(i32, [1], [-before]),
  }));
  expect(results).toEqual([expected, expected]);
});

test.each([1, 511, 512, 513, 1023, 1024, 1025])(
  "tiles of 512 of %d elements are moved 16 bytes at a time where they are whole",
  async (count) => {
    const definition = kernel(
      {
        name: "twice",
        grid: { i: 3 },
        inputs: { x: tensor(f32, [n]) },
        outputs: { out: tensor(f32, [n]) },
      },
      ({ i, x, out }) => {
        const here = slice(i.mul(512), 512);
        out.at(here).store(x.at(here).load().mul(2));
      },
    );
    expect(compileAhead(definition).ptx).toMatch(/st\.global\.v4/);
    const expected = Array.from({ length: count }, (_, index) => 2 * (index + 1));
    const results = await onBoth(definition, () => ({ x: counting(count) }));
    expect(results).toEqual([expected, expected]);
  },
);

describe("sizes of the launch", () => {
  const load = (index: (i: Scalar<"i32">) => Index) =>
    kernel(
      {
        name: "sized",
        grid: { i: 4 },
        inputs: { x: tensor(f32, [n]), y: tensor(f32, [128]) },
        outputs: { out: tensor(f32, [4, 64]) },
      },
      ({ i, y, out }) => {
        out.at(i).store(y.at(slice(index(i), 64)).load());
      },
    );
  test.each([
    ["a quotient by 0", (i: Scalar<"i32">) => i.div(n), 0],
    ["a remainder by 0", (i: Scalar<"i32">) => i.add(1).rem(n), 0],
    ["a negative multiple", () => constant(i32, n).mul(-1), 100],
    ["a power that wraps", () => constant(i32, n).mul(n).mul(n).minimum(64), 1500],
  ])("%s", async (_, index, rows) => {
    await expectSame(load(index), () => ({ x: counting(rows), y: counting(128) }));
  });
});

test("a store through one array does not land in another", async () => {
  const definition = kernel(
    {
      name: "beside",
      grid: { i: 2 },
      inouts: { x: tensor(f32, [extent]), out: tensor(f32, [extent]) },
    },
    ({ i, out }) => {
      out
        .at(
          slice(
            i
              .mul(greatest)
              .add(1)
              .div(2 ** 20),
            64,
          ),
        )
        .store(-1);
    },
  );
  const [, emulated] = await onBoth(definition, () => ({
    x: counting(extent),
    out: counting(extent),
  }));
  expect(emulated?.slice(0, extent)).toEqual([...toNumbers(counting(extent))]);
});

describe("alignment", () => {
  const starts = {
    global: (index: (s: Scalar<"f32">) => Index) =>
      kernel(
        {
          name: "aligned",
          inputs: { x: tensor(f32, [1024]), s: scalar(f32) },
          outputs: { out: tensor(f32, [512]) },
        },
        ({ x, s, out }) => {
          out.store(x.at(slice(index(s), 512)).load());
        },
      ),
    shared: (index: (s: Scalar<"f32">) => Index) =>
      kernel(
        {
          name: "aligned",
          inputs: { x: tensor(f32, [1024]), s: scalar(f32) },
          outputs: { out: tensor(f32, [512]) },
          scratch: { buffer: smem(f32, [1024]) },
        },
        ({ x, s, out, buffer }) => {
          buffer.store(x.load());
          out.store(buffer.at(slice(index(s), 512)).load());
        },
      ),
  };
  const floats: readonly (readonly [string, (s: Scalar<"f32">) => Index, number])[] = [
    ["a product of floats", (s) => s.mul(16).cast(i32), 0.0625],
    ["a sum of floats", (s) => s.mul(8).add(s.mul(24)).cast(i32), 0.03125],
    ["a difference of floats", (s) => s.maximum(16).minimum(16).sub(s).cast(i32), 15],
  ];
  describe.each(Object.entries(starts))("in %s memory", (_, definition) => {
    test.each(floats)("%s promises nothing", async (_text, index, s) => {
      await expectSame(definition(index), () => ({ x: counting(1024), s }));
    });
  });

  test("a multiple of an integer does, though it may wrap", () => {
    const definition = kernel(
      {
        name: "multiple",
        inputs: { x: tensor(f32, [1024]), s: scalar(i32) },
        outputs: { out: tensor(f32, [512]) },
      },
      ({ x, s, out }) => {
        out.store(x.at(slice(s.mul(48), 512)).load());
      },
    );
    expect(compileAhead(definition).ptx).toContain("ld.global.nc.v4.b32");
  });
});

describe("tests that are left out", () => {
  const blocks = (rows: typeof n) =>
    compileAhead(
      kernel(
        {
          name: "blocks",
          grid: { i: 16 },
          inputs: { x: tensor(f32, [1024]), z: tensor(f32, [rows]) },
          outputs: { out: tensor(f32, [1024]) },
        },
        ({ i, x, out }) => {
          const here = slice(i.mul(64), 64);
          out.at(here).store(x.at(here).load());
        },
      ),
    ).ptx;
  test("blocks that lie inside for every launch test nothing", () => {
    const access = blocks(n)
      .split("\n")
      .filter((line) => line.includes("ld.global"));
    expect(access).not.toHaveLength(0);
    expect(access.filter((line) => line.includes("@"))).toEqual([]);
  });
});

describe("loops", () => {
  const counted = kernel(
    {
      name: "counted",
      inputs: { bounds: tensor(i32, [3]) },
      outputs: { out: tensor(i32, [1]) },
    },
    ({ bounds, out }) => {
      const [from, to, step] = [0, 1, 2].map((at) => bounds.at(at).loadScalar());
      if (from === undefined || to === undefined || step === undefined) throw new Error("three");
      const count = loop({ from, to, step, carry: constant(i32, 0) }, (_, before) => before.add(1));
      out.at(0).store(count);
    },
  );
  const run = (bounds: readonly number[]) =>
    devices.map(async (device) => {
      const { out } = await device.run(counted, { bounds: fromNumbers(i32, [3], bounds) });
      return toNumbers(out)[0];
    });

  test.each([
    [0, 10, 0],
    [0, 10, -1],
    [10, 0, -3],
    [0, 0, least],
  ])("from %i to %i by %i are refused", async (...bounds) => {
    const results = await Promise.allSettled(run(bounds));
    for (const result of results)
      expect(result).toMatchObject({ status: "rejected", reason: { code: "TW3014" } });
  });

  test.each([
    [[0, 10, 3], 4],
    [[greatest - 5, greatest, 3], 2],
    [[least, greatest, greatest], 3],
    [[5, 5, 1], 0],
  ])("from and to %j run as often as they say", async (bounds, expected) => {
    for (const result of run(bounds)) await expect(result).resolves.toBe(expected);
  });
});

test("a window may begin before its array, be its start known or not", async () => {
  const definition = kernel(
    { name: "before", inputs: { x: tensor(f32, [7]) }, outputs: { out: tensor(f32, [2, 4]) } },
    ({ x, out }) => {
      out.at(0).store(x.at(slice(-1, 4)).load());
      out.at(1).store(x.at(slice(constant(i32, -1), 4)).load());
    },
  );
  const [simulated, emulated] = await onBoth(definition, () => ({ x: counting(7) }));
  expect(simulated).toEqual([0, 1, 2, 3, 0, 1, 2, 3]);
  expect(emulated).toEqual(simulated);
});

test("rows may lie far apart", () => {
  const definition = kernel(
    {
      name: "apart",
      inputs: { x: tensor(f32, [4, 4], { strides: [2 ** 33, 1] }) },
      outputs: { out: tensor(f32, [4, 4]) },
    },
    ({ x, out }) => {
      out.store(x.load());
    },
  );
  expect(compileAhead(definition).ptx).toContain("ld.global.nc.v4.b32");
});

test("offsets beyond 32 bits are no part of an instruction", () => {
  const { ptx } = compileAhead(
    kernel(
      {
        name: "far",
        inputs: { x: tensor(f32, [4, 8, 4], { strides: [2 ** 33, 2 ** 31, 1] }), s: scalar(i32) },
        outputs: { out: tensor(f32, [2, 4, 4]) },
      },
      ({ x, s, out }) => {
        out.store(x.at(slice(1, 2), slice(s, 4), slice(0, 4)).load());
      },
    ),
  );
  const offsets = [...ptx.matchAll(/\[%d\d+\+(\d+)\]/g)].map(([, offset]) => Number(offset));
  expect(offsets.filter((offset) => offset >= 2 ** 31)).toEqual([]);
  expect(ptx).toMatch(/add\.s64 .*34359738368|mad\..*34359738368/);
});

test.each(["WARP_SZ", "shared_memory", "_", "__proto__"])("a kernel may be called %s", (name) => {
  const definition = kernel({ name, outputs: { out: tensor(f32, [4]) } }, ({ out }) => {
    out.store(1);
  });
  expect(compileAhead(definition).ptx).toContain(`.entry kernel_${name} (`);
});

describe("what must lie inside", () => {
  const starts = [0, 1, 32, 33, greatest, -1, least];
  const rows = 33;

  /** What each start gives: the element read first, or the code of the report. */
  async function outcomes(definition: KernelDefinition, device: (typeof devices)[0]) {
    const found: unknown[] = [];
    for (const s of starts)
      found.push(
        await device.run(definition, { x: counting(rows), s }).then(
          (outputs) => toNumbers(Object.values<HostArray>(outputs)[0] ?? counting(0))[0],
          (error: unknown) => (error as { readonly code?: string }).code,
        ),
      );
    return found;
  }

  const shape = {
    inputs: { x: tensor(f32, [rows]), s: scalar(i32) },
    outputs: { out: tensor(f32, [1]) },
  };
  const shared = { ...shape, scratch: { buffer: smem(f32, [rows]), other: smem(f32, [rows, 64]) } };

  test.each([
    [
      "a window of shared memory",
      kernel({ name: "read", ...shared }, ({ x, s, out, buffer, other }) => {
        other.store(0);
        buffer.store(x.load());
        out.store(buffer.at(slice(s, 1)).load());
      }),
      "TW3004",
    ],
    [
      "a window of a window of shared memory",
      kernel({ name: "nested", ...shared }, ({ x, s, out, buffer, other }) => {
        other.store(0);
        buffer.store(x.load());
        const start = s.minimum(1).maximum(0);
        out.store(
          buffer
            .at(slice(start, 32))
            .at(slice(s.sub(start), 1))
            .load(),
        );
      }),
      "TW3004",
    ],
    [
      "a window of shared memory under a shape that strides cannot express",
      kernel({ name: "reshaped", ...shared }, ({ x, s, out, other }) => {
        const rowsOfThree = other.at(slice(0, 12), slice(0, 3));
        rowsOfThree.store(x.at(slice(0, 36)).load().reshape([12, 3]));
        const window = rowsOfThree.reshape([36]).at(slice(s, 4));
        out.store(window.load().slice([0], [1]));
      }),
      "TW3004",
    ],
    [
      "an index of shared memory",
      kernel({ name: "indexed", ...shared }, ({ x, s, out, buffer }) => {
        buffer.store(x.load());
        out.at(0).store(buffer.at(s).loadScalar());
      }),
      "TW3005",
    ],
    [
      "an index of an array",
      kernel({ name: "element", ...shape }, ({ x, s, out }) => {
        out.at(0).store(x.at(s).loadScalar());
      }),
      "TW3005",
    ],
    [
      "an index of a window that overhangs its array",
      kernel({ name: "overhang", ...shape }, ({ x, s, out }) => {
        out.at(0).store(
          x
            .at(slice(s.sub(1), 64))
            .at(1)
            .loadScalar(),
        );
      }),
      "TW3005",
    ],
    [
      "an index that leaves its axis and stays in its array",
      kernel({ name: "column", ...shape }, ({ x, s, out }) => {
        out.at(0).store(x.reshape([1, rows]).at(s.div(rows), s).loadScalar());
      }),
      "TW3005",
    ],
  ])("%s", async (_, definition, code) => {
    const [simulated, emulated] = await Promise.all(
      devices.map((device) => outcomes(definition, device)),
    );
    expect(simulated).toEqual([1, 2, 33, code, code, code, code]);
    expect(emulated).toEqual([1, 2, 33, "TW8016", "TW8016", "TW8016", "TW8016"]);
  });

  test("a window that nobody uses may lie anywhere", async () => {
    const definition = kernel({ name: "unused", ...shared }, ({ x, s, out, buffer }) => {
      buffer.store(x.load());
      const window = buffer.at(slice(s, 1));
      out.store(0);
      when(s.ge(0).and(s.lt(rows)), () => {
        out.store(window.load());
      });
    });
    for (const device of devices)
      expect(await outcomes(definition, device)).toEqual([1, 2, 33, 0, 0, 0, 0]);
  });

  test("each is asked for once, and not where it is certain", () => {
    const definition = kernel({ name: "once", ...shared }, ({ s, out, buffer }) => {
      const window = buffer.at(slice(s, 1));
      window.store(0);
      loop({ to: 3 }, (i) => {
        window.store(window.load().add(buffer.at(slice(i, 1)).load()));
      });
      out.store(window.load());
    });
    expect(compileAhead(definition).ptx.match(/ trap;/g)).toHaveLength(1);
  });
});
