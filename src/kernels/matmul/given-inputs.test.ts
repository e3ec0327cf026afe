/** What a product is given besides its operands: names, how arrays lie, groups of prologues, and room for what these exchange. */
import { describe, expect, test } from "vitest";
import { codeOf } from "../../../test/support/library-checks.ts";
import { bf16, f32, f64, i32, i4, i8, u4 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { tensor, cdiv, dim } from "../../lang/index.ts";
import type { TensorSpec, Tile } from "../../lang/index.ts";
import { place } from "../../lower/stages.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { attention } from "../attention/attention.ts";
import { raggedDot } from "../ragged/ragged-dot.ts";
import type { MatmulConfiguration, PersistentConfiguration } from "./configuration.ts";
import { matmul } from "./matmul.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const given = { a: bf16, b: bf16, out: f32 } as const;
const byColumns = tensor(f32, [m, n], { strides: [1, m] });

/** Weights of 8 bits with scales, which a prologue multiplies. */
function scaled(scale: TensorSpec<"f32">, b: TensorSpec<"i8"> | typeof i8 = i8) {
  const depth = "shape" in b ? (b.shape[0] ?? k) : k;
  return matmul({
    ...{ a: tensor(bf16, [m, depth]), b, inputs: { scale } },
    prologue: {
      b: {
        ...{ as: bf16, inputs: ["scale"] },
        compute: (tiles) => tiles.b.cast(f32).mul(tiles.scale).cast(bf16),
      },
    },
  });
}

test("further arrays that do not lie by rows are refused, since kernels read them by rows", () => {
  const epilogue = ({ sums }: { readonly sums: Tile<"f32"> }): Tile<"f32"> => sums;
  const outputs = (x: unknown) => () =>
    matmul({
      ...{ ...given, outputs: { x } as never },
      epilogue: ({ sums }) => ({ out: sums, x: sums }) as never,
    });
  for (const make of [
    () => matmul({ ...given, inputs: { x: byColumns }, epilogue }),
    () => matmul({ ...given, inputs: { x: tensor(f32, [n], { strides: [2] }) }, epilogue }),
    () => raggedDot({ ...given, inputs: { x: byColumns }, epilogue }),
    () => scaled(tensor(f32, [cdiv(k, 32), n], { strides: [1, cdiv(k, 32)] })),
    outputs(byColumns),
    outputs({ array: tensor(f32, [m], { strides: [2] }), combine: "sum" }),
  ])
    expect(codeOf(make)).toBe("TW9902");
});

test("names of operands, sums and the result are refused for further inputs, and a format is no input", () => {
  const named = (name: string) => () =>
    matmul({ ...given, inputs: { [name]: tensor(f32, [m, n]) }, epilogue: ({ sums }) => sums });
  for (const name of ["a", "b", "sums", "out"]) expect(codeOf(named(name))).toBe("TW9905");
  expect(codeOf(named("before"))).toBe("nothing was thrown");
  expect(codeOf(() => matmul({ ...given, inputs: { x: f32 as never } }))).toBe("TW9902");
  const sizes = { groupSizes: tensor(f32, [m, n]) };
  expect(codeOf(() => raggedDot({ ...given, inputs: sizes }))).toBe("TW9905");
  const compute = ({ a }: { readonly a: Tile<"bf16"> }): Tile<"bf16"> => a;
  const prologue = { a: { as: bf16, inputs: ["constructor"] as never, compute } };
  expect(codeOf(() => matmul({ ...given, prologue }))).toBe("TW9905");
});

test("groups of a k that is a number are a power of two, or nobody knows how long they are", () => {
  const groups = (depth: number, count: number) => () =>
    scaled(tensor(f32, [count, n]), tensor(i8, [depth, n]));
  expect(codeOf(groups(256, 2))).toBe("nothing was thrown");
  expect(codeOf(groups(192, 1))).toBe("nothing was thrown");
  // Groups of 96, or one of 128 and one of 64.
  expect(codeOf(groups(192, 2))).toBe("TW9902");
});

test("operands that are swapped and computed leave room for what warps exchange", () => {
  const op = scaled(tensor(f32, [cdiv(k, 128), n]));
  const { configuration, launches } = op.plan({ m: 64, n: 4096, k: 4096 }, "sm_90a");
  expect(configuration).toMatchObject({ kernel: "persistent", swapAB: true });
  for (const { kernel } of launches)
    expect(() => place(kernel.kernel, targets.sm_90a)).not.toThrow();
});

test("functions that combine elements of a piece are refused: its size is the plan's", () => {
  const sizes = { m: 64, n: 64, k: 64 };
  const given16 = { q: bf16, k: bf16, v: bf16 } as const;
  const heads = { b: 1, s: 64, t: 64, h: 1, kv: 1, d: 16, e: 16 };
  for (const make of [
    () =>
      matmul({
        ...given,
        epilogue: ({ sums }) => sums.sub(sums.max({ axis: 1, keepDims: true })),
      }).kernels(sizes),
    () =>
      matmul({
        ...{ ...given, inputs: { bias: tensor(f32, [n]) } },
        epilogue: ({ sums, bias }) => sums.add(bias.sum()),
      }).kernels(sizes),
    () =>
      matmul({
        ...given,
        prologue: {
          a: { as: bf16, compute: ({ a }) => a.sub(a.max({ axis: 1, keepDims: true })) },
        },
      }).kernels(sizes),
    () =>
      attention({
        ...given16,
        score: ({ score }) => score.sub(score.max({ axis: 1, keepDims: true })),
      }).kernels(heads),
  ])
    expect(codeOf(make)).toBe("TW9905");
});

test("tiles of f64 that no registers suffice for are refused where they are given", () => {
  const op = (rows: 64 | 128, depth: 32 | 128) =>
    matmul({
      a: f64,
      b: f64,
      configuration: { kernel: "plain", rows, columns: 32, depth, splitK: 1 },
    });
  const sizes = { m: 8, n: 8, k: 8 };
  expect(codeOf(() => op(128, 128).plan(sizes))).toBe("TW9904");
  expect(codeOf(() => op(128, 32).plan(sizes))).toBe("nothing was thrown");
});

test("integers of 4 bits are multiplied by the plain kernel, for any sizes", () => {
  for (const sizes of [
    { m: 64, n: 64, k: 64 },
    { m: 4096, n: 4096, k: 4096 },
  ]) {
    const plan = matmul({ a: i4, b: u4 }).plan(sizes, "sm_90a");
    expect(plan.configuration).toMatchObject({ kernel: "plain" });
    expect(plan.notes).toEqual(["the plain kernel is used: wgmma does not multiply i4 as it is"]);
    expect(plan.launches.length).toBeGreaterThan(0);
  }
});

describe("where k is 0, what the epilogue makes of zeros is written, whichever kernel was asked for", () => {
  const persistent: PersistentConfiguration = {
    ...({ kernel: "persistent", consumers: 1, columns: 64, stages: 4 } as const),
    ...({ schedule: "tiles", swapAB: false, cluster: 1 } as const),
  };
  const bias = fromNumbers(f32, [3], [1, 2, 3]);
  const inputs = { bias: tensor(f32, [n]) };
  const epilogue = ({ sums, bias: added }: { readonly [N in "sums" | "bias"]: Tile<"f32"> }) =>
    sums.add(added);
  const b = tensor(bf16, [k, n], { strides: [1, k] });
  const gemv = { kernel: "gemv", columns: 1, warps: 1, words: 1 } as const;
  test.each<[string, MatmulConfiguration]>([
    ["persistent", persistent],
    ["in parts", { ...persistent, schedule: "split-k" }],
    ["plain", { kernel: "plain", rows: 64, columns: 64, depth: 32, splitK: 1 }],
    ["gemv", gemv],
  ])("%s", async (_, configuration) => {
    const device = await open("simulator", { onNotes: () => undefined });
    const op = matmul({ a: bf16, b, out: f32, inputs, epilogue, configuration });
    const operands = { a: fromNumbers(bf16, [1, 0], []), b: fromNumbers(bf16, [0, 3], []), bias };
    const { out } = await device.run(op, operands);
    expect([...toNumbers(out)]).toEqual([1, 2, 3]);
    device.dispose();
  });

  test("of groups of rows", async () => {
    const device = await open("simulator", { onNotes: () => undefined });
    const spec = { a: bf16, b: bf16, out: f32, inputs, epilogue } as const;
    const op = raggedDot({ ...spec, configuration: persistent });
    const operands = {
      a: fromNumbers(bf16, [1, 0], []),
      b: fromNumbers(bf16, [2, 0, 3], []),
      bias,
    };
    const groupSizes = fromNumbers(i32, [2], [0, 1]);
    const { out } = await device.run(op, { ...operands, groupSizes });
    expect([...toNumbers(out)]).toEqual([1, 2, 3]);
    device.dispose();
  });

  test("and settings that a kernel has not are refused all the same", () => {
    const misspelt = { ...persistent, stagse: 3 } as never;
    expect(
      codeOf(() => matmul({ a: bf16, b, configuration: misspelt }).plan({ m: 1, n: 3, k: 0 })),
    ).toBe("TW9904");
  });
});
