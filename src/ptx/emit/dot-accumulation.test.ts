/**
 * How products of FP8 are summed in f32: each word has one meaning, which the simulator computes, and whatever instruction makes the product is
 * as far from it as its own arithmetic allows.
 *
 *   |        | simulator                          | mma.sync        | wgmma           | threads        |
 *   |--------|------------------------------------|-----------------|-----------------|----------------|
 *   | dot    | promoted: as f16, 16 of k a step   | bit for bit     | within a bound  | within a bound |
 *   | dot    | fast: as wgmma                     | within a bound  | bit for bit     | within a bound |
 *   | wgmma  | promoted: wgmma of 128 of k, added |                 | bit for bit     |                |
 *   | wgmma  | fast: as wgmma                     |                 | bit for bit     |                |
 */
import { describe, expect, test } from "vitest";
import { mmaBound, wgmmaBound } from "../../../test/support/fp8-sums.ts";
import type { Accumulation } from "../../../test/support/fp8-sums.ts";
import { bool, f16, f32, f8e4m3fn, f8e5m2, i32, u16 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, hostArray, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import {
  accumulator,
  commitShared,
  dot,
  kernel,
  loop,
  scalar,
  slice,
  smem,
  tensor,
  wgmma,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition, ProductOptions, Tile } from "../../lang/index.ts";
import { compileAhead } from "../../lower/compile-ahead.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";

type Shape = readonly [m: number, n: number, k: number];
type Fp8 = typeof f8e4m3fn | typeof f8e5m2;

interface Inputs {
  readonly [name: string]: HostArray;
}

/** Numbers of FP8 of many magnitudes, none of them a NaN or infinite. */
function draw(dtype: DType, shape: readonly number[], random: Random): HostArray {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const drawn = Array.from(
    { length: count },
    () => (random.uniform() - 0.5) * 2 ** (random.below(15) - 7),
  );
  return fromNumbers(dtype, shape, drawn);
}

async function outputs(
  definition: KernelDefinition,
  inputs: Inputs,
  name: "simulator" | "emulator",
  target: "sm_80" | "sm_90a" = "sm_90a",
): Promise<readonly number[]> {
  const device = await open(name, { target, onNotes: () => undefined });
  const { out } = await device.run(definition, inputs);
  device.dispose();
  if (out === undefined) throw new Error("the kernel has this output");
  return [...toNumbers(out)];
}

/** Exact sums, and those of the magnitudes of what is summed. */
function exactly({ a, b, c }: Inputs, [m, n, k]: Shape) {
  const [left, right, start] = [a, b, c].map((each) => each && toNumbers(each));
  return Array.from({ length: m * n }, (_, at) => {
    const [row, column] = [Math.floor(at / n), at % n];
    let sum = start?.[at] ?? 0;
    let magnitude = Math.abs(sum);
    for (let inner = 0; inner < k; inner += 1) {
      const term = (left?.[row * k + inner] ?? NaN) * (right?.[inner * n + column] ?? NaN);
      sum += term;
      magnitude += Math.abs(term);
    }
    return { sum, magnitude };
  });
}

function expectWithin(
  found: readonly number[],
  exact: ReturnType<typeof exactly>,
  bound: number,
): void {
  found.forEach((value, at) => {
    const { sum, magnitude } = exact[at] ?? { sum: NaN, magnitude: NaN };
    expect(Math.abs(value - sum)).toBeLessThanOrEqual(magnitude * bound);
  });
}

function dotOf(
  [a, b]: readonly [Fp8, Fp8],
  [m, n, k]: Shape,
  accumulation: Accumulation | undefined,
  place: "registers" | "shared" | "mixed",
): KernelDefinition {
  return kernel(
    {
      name: "product",
      inputs: { a: tensor(a, [m, k]), b: tensor(b, [k, n]), c: tensor(f32, [m, n]) },
      outputs: { out: tensor(f32, [m, n]) },
      scratch: { left: smem(a, [m, k]), right: smem(b, [n, k]) },
    },
    ({ a: first, b: second, c, out, left, right }) => {
      const options = { accumulator: c.load(), ...(accumulation && { accumulation }) };
      if (place === "registers") {
        out.store(dot(first.load() as Tile, second.load() as Tile, options));
        return;
      }
      left.store(first.load() as never);
      right.store((second.load() as Tile).transpose() as never);
      commitShared();
      const rows = place === "mixed" ? first : left;
      out.store(dot(rows.load() as Tile, right.transpose().load() as Tile, options));
    },
  );
}

const formats = [
  [f8e4m3fn, f8e4m3fn],
  [f8e5m2, f8e5m2],
  [f8e4m3fn, f8e5m2],
] as const;

function inputsOf([a, b]: readonly [DType, DType], [m, n, k]: Shape): Inputs {
  const random = new Random(m + 3 * n + 5 * k);
  return {
    a: draw(a, [m, k], random),
    b: draw(b, [k, n], random),
    c: draw(f32, [m, n], random),
  };
}

describe.each(formats)("dot of $name by $name", (...pair) => {
  test.each(["sm_80", "sm_90a"] as const)(
    "promoted, the default, by mma.sync: bit for bit, on %s",
    async (target) => {
      for (const shape of [
        [16, 8, 16],
        [32, 16, 160],
      ] as const) {
        const definition = dotOf(pair, shape, undefined, "registers");
        const inputs = inputsOf(pair, shape);
        const simulated = await outputs(definition, inputs, "simulator");
        expect(await outputs(definition, inputs, "emulator", target)).toEqual(simulated);
        expectWithin(simulated, exactly(inputs, shape), mmaBound(shape[2]));
      }
    },
  );

  test.each([
    ["promoted", "shared", [64, 16, 32]],
    ["promoted", "shared", [64, 8, 128]],
    ["promoted", "shared", [64, 16, 288]],
    ["promoted", "mixed", [64, 16, 256]],
    ["fast", "shared", [64, 16, 288]],
    ["fast", "mixed", [64, 8, 64]],
  ] as const)("%s by wgmma, of what is in %s, of %j", async (accumulation, place, shape) => {
    const definition = dotOf(pair, shape, accumulation, place);
    expect(compileAhead(definition, targets.sm_90a).ptx).toContain("wgmma.mma_async");
    const inputs = inputsOf(pair, shape);
    const exact = exactly(inputs, shape);
    const simulated = await outputs(definition, inputs, "simulator");
    const found = await outputs(definition, inputs, "emulator");
    expectWithin(found, exact, wgmmaBound(shape[2], accumulation));
    if (accumulation === "fast") expect(found).toEqual(simulated);
    else expectWithin(simulated, exact, mmaBound(shape[2]));
  });

  test("fast by mma.sync, and both by threads: within the bounds", async () => {
    for (const [accumulation, shape] of [
      ["fast", [16, 8, 64]],
      ["fast", [4, 8, 64]],
      ["promoted", [4, 8, 64]],
    ] as const) {
      const definition = dotOf(pair, shape, accumulation, "registers");
      const inputs = inputsOf(pair, shape);
      const exact = exactly(inputs, shape);
      expectWithin(await outputs(definition, inputs, "emulator"), exact, mmaBound(shape[2]));
      const bound = accumulation === "fast" ? wgmmaBound(shape[2], "fast") : mmaBound(shape[2]);
      expectWithin(await outputs(definition, inputs, "simulator"), exact, bound);
    }
  });
});

test("65536 + 4 is that where sums are promoted, and 65536 by wgmma", async () => {
  const shape = [64, 8, 256] as const;
  const [m, n, k] = shape;
  const [a, b] = [new Float32Array(m * k), new Float32Array(k * n)];
  // The 4 comes of another 128 of k than the 65536.
  [a[0], a[k - 1], b[0], b[(k - 1) * n]] = [256, 2, 256, 2];
  const inputs = {
    a: fromNumbers(f8e4m3fn, [m, k], a),
    b: fromNumbers(f8e4m3fn, [k, n], b),
    c: fromNumbers(f32, [m, n], new Float32Array(m * n)),
  };
  const firstOf = async (
    accumulation: Accumulation,
    place: "registers" | "shared",
    name: "simulator" | "emulator",
  ): Promise<number | undefined> => {
    const definition = dotOf([f8e4m3fn, f8e4m3fn], shape, accumulation, place);
    return (await outputs(definition, inputs, name))[0];
  };
  for (const place of ["registers", "shared"] as const)
    for (const name of ["simulator", "emulator"] as const)
      expect(await firstOf("promoted", place, name), `${place} ${name}`).toBe(65540);
  expect(await firstOf("fast", "shared", "simulator")).toBe(65536);
  expect(await firstOf("fast", "shared", "emulator")).toBe(65536);
});

interface Form {
  readonly shape: Shape;
  readonly held?: boolean;
  readonly replaces?: boolean;
  readonly sparse?: boolean;
}

function wgmmaOf(
  { shape: [m, n, k], held = false, replaces = false, sparse = false }: Form,
  more: ProductOptions,
  sum: typeof f32 | typeof f16 = f32,
): KernelDefinition {
  const width = sparse ? k / 2 : k;
  return kernel(
    {
      name: "product",
      inputs: {
        a: tensor(f8e4m3fn, [m, width]),
        b: tensor(f8e4m3fn, [k, n]),
        c: tensor(sum, [m, n]),
        metadata: tensor(u16, [m, k / 16]),
        adds: scalar(bool),
      },
      outputs: { out: tensor(sum, [m, n]) },

      scratch: { left: smem(f8e4m3fn, [m, width]), right: smem(f8e4m3fn, [n, k]) },
    },
    ({ a, b, c, metadata, out, left, right, adds }) => {
      left.store(a.load());
      right.store(b.load().transpose());
      const words = sparse ? { sparse: metadata.load() } : {};
      commitShared();
      const start = accumulator(sum as typeof f32, [m, n], c.load() as Tile<"f32">);
      const factor = held ? a.load() : left;
      const options = { ...words, ...(replaces && { adds }), ...more };
      out.store(wgmma(start, factor, right.transpose(), options).wait());
    },
  );
}

describe.each(["promoted", "fast"] as const)("wgmma, %s", (accumulation) => {
  test.each<readonly [string, Form]>([
    ["of a few steps", { shape: [64, 8, 64] }],
    ["of 128 of k", { shape: [64, 8, 128] }],
    ["of more", { shape: [64, 16, 320] }],
    ["of a left factor in registers", { shape: [64, 8, 256], held: true }],
    ["that may replace what is there", { shape: [64, 8, 256], replaces: true }],
    ["of a sparse factor", { shape: [64, 8, 128], sparse: true }],
    ["of a sparse factor and more of k", { shape: [64, 8, 256], sparse: true }],
  ])("%s: bit for bit", async (_, form) => {
    const { shape, sparse = false } = form;
    const [m, , k] = shape;
    const definition = wgmmaOf(form, { accumulation });
    const dense = inputsOf([f8e4m3fn, f8e4m3fn], shape);
    const random = new Random(k);
    const inputs = {
      ...dense,
      ...(sparse && { a: draw(f8e4m3fn, [m, k / 2], random) }),
      metadata: hostArray(u16, [m, k / 16], new Uint16Array((m * k) / 16).fill(0xce4d)),
      adds: false,
    } as unknown as Inputs;
    const simulated = await outputs(definition, inputs, "simulator");
    expect(await outputs(definition, inputs, "emulator")).toEqual(simulated);
    if (!sparse && form.replaces !== true)
      expectWithin(simulated, exactly(dense, shape), wgmmaBound(k, accumulation));
  });

  test("sums in f16 are the instruction's own", async () => {
    const shape = [64, 8, 256] as const;
    const { c, ...factors } = inputsOf([f8e4m3fn, f8e4m3fn], shape);
    const inputs = {
      ...factors,
      c: fromNumbers(f16, [64, 8], toNumbers(c as HostArray)),
      metadata: hostArray(u16, [64, 16], new Uint16Array(64 * 16)),
      adds: true,
    } as unknown as Inputs;
    const promoted = await outputs(wgmmaOf({ shape }, {}, f16), inputs, "simulator");
    const definition = wgmmaOf({ shape }, { accumulation }, f16);
    expect(await outputs(definition, inputs, "simulator")).toEqual(promoted);
    expect(await outputs(definition, inputs, "emulator")).toEqual(promoted);
  });
});

test.each(["promoted", "fast"] as const)("a pipelined loop, %s", async (accumulation) => {
  const [m, n, k, steps] = [64, 16, 64, 6];
  const shape = [m, n, k * steps] as const;
  const definition = kernel(
    {
      name: "product",
      inputs: { a: tensor(f8e4m3fn, [m, k * steps]), b: tensor(f8e4m3fn, [n, k * steps]) },
      outputs: { out: tensor(f32, [m, n]) },
    },
    ({ a, b, out }) => {
      const sums = loop({ to: steps, carry: zeros(f32, [m, n]) }, (step, sum) => {
        const along = slice(step.mul(k), k);
        const [left, right] = [a.at(slice(0, m), along), b.at(slice(0, n), along)];
        return dot(left.load(), right.transpose().load(), { accumulator: sum, accumulation });
      });
      out.store(sums);
    },
  );
  expect(compileAhead(definition, targets.sm_90a).ptx).toContain("wgmma.mma_async");
  const { a, b } = inputsOf([f8e4m3fn, f8e4m3fn], shape) as { a: HostArray; b: HostArray };
  const numbers = toNumbers(b);
  const turned = Array.from({ length: n * shape[2] }, (_, at) => {
    const [column, inner] = [Math.floor(at / shape[2]), at % shape[2]];
    return numbers[inner * n + column] ?? NaN;
  });
  const inputs = { a, b: fromNumbers(f8e4m3fn, [n, shape[2]], turned) };
  const found = await outputs(definition, inputs, "emulator");
  expectWithin(found, exactly({ a, b }, shape), wgmmaBound(shape[2], accumulation));
  if (accumulation === "fast")
    expect(await outputs(definition, inputs, "simulator")).toEqual(found);
});

test("words that say nothing of sums are refused", () => {
  const given = "precise" as "fast";
  expect(() => dotOf([f8e4m3fn, f8e4m3fn], [16, 8, 32], given, "registers")).toThrow(
    expect.objectContaining({ code: "TW2001", expected: "one of promoted, fast" }),
  );
  expect(() => wgmmaOf({ shape: [64, 8, 32] }, { accumulation: given })).toThrow(
    expect.objectContaining({ code: "TW2001", expected: "one of promoted, fast" }),
  );
});

test("products of other formats are the same by both words", () => {
  const texts = (["promoted", "fast"] as const).map((accumulation) => {
    const definition = kernel(
      {
        name: "product",
        inputs: { a: tensor(f16, [64, 64]), b: tensor(f16, [64, 64]) },
        outputs: { out: tensor(f32, [64, 64]), count: tensor(i32, [1]) },
      },
      ({ a, b, out }) => out.store(dot(a.load(), b.load(), { accumulation })),
    );
    return compileAhead(definition, targets.sm_90a).ptx.replaceAll(/^\s*\.(loc|file).*$/gm, "");
  });
  expect(texts[0]).toBe(texts[1]);
});
