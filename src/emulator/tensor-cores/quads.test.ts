import { describe, expect, test } from "vitest";
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { Random } from "../../support/random.ts";
import { runPtx } from "../../../test/support/ptx-kernel.ts";

const seed = 884;

type Sum = "f16" | "f32";

/** Row and column of element i of a lane, as the manual's tables have them. */
const places: {
  readonly [matrix: string]: (lane: number, i: number) => readonly [number, number];
} = {
  "a.row": (lane, i) => [(lane % 4) + (lane < 16 ? 0 : 4), i],
  "a.col": (lane, i) => [i + (lane < 16 ? 0 : 4), lane % 4],
  "b.row": (lane, i) => [lane % 4, i + (lane < 16 ? 0 : 4)],
  "b.col": (lane, i) => [i, (lane % 4) + (lane < 16 ? 0 : 4)],
  f16: (lane, i) => [(lane % 4) + (lane < 16 ? 0 : 4), i],
  f32: (lane, i) => [(lane & 1) + (i & 2) + (lane < 16 ? 0 : 4), (i & 4) + (lane & 2) + (i & 1)],
};

/** Which of the four products a lane takes part in. */
const productOf = (lane: number): number => (lane % 16) >> 2;

/** Lanes' elements of four matrices, in registers: two f16 each, or one f32. */
function spread(
  matrices: readonly (readonly number[][])[],
  matrix: string,
  count: number,
  type: Sum,
): Uint8Array {
  const size = type === "f16" ? 2 : 4;
  const view = new DataView(new ArrayBuffer(32 * count * size));
  for (let lane = 0; lane < 32; lane++)
    for (let i = 0; i < count; i++) {
      const [row, column] = places[matrix]?.(lane, i) ?? [0, 0];
      const value = matrices[productOf(lane)]?.[row]?.[column] ?? 0;
      const at = (lane * count + i) * size;
      if (type === "f16") view.setUint16(at, encodeFloat("f16", value), true);
      else view.setFloat32(at, value, true);
    }
  return new Uint8Array(view.buffer);
}

function loads(array: string, first: number, count: number): string {
  const registers = Array.from(
    { length: count },
    (_, at) => `ld.global.b32 %r${first + at}, [%d1+${4 * at}];`,
  );
  return [
    `mul.wide.u32 %d1, %thread, ${4 * count}; add.u64 %d1, %d1, %${array};`,
    ...registers,
  ].join("\n");
}

function list(first: number, count: number): string {
  return `{${Array.from({ length: count }, (_, at) => `%r${first + at}`).join(", ")}}`;
}

interface Form {
  readonly layoutA: "row" | "col";
  readonly layoutB: "row" | "col";
  readonly d: Sum;
  readonly c: Sum;
}

type Matrices = readonly (readonly number[][])[];

/** D of the four products. */
function run(
  { layoutA, layoutB, d, c }: Form,
  a: Matrices,
  b: Matrices,
  sums: Matrices,
): number[][][] {
  const [dCount, cCount] = [d, c].map((type) => (type === "f16" ? 4 : 8)) as [number, number];
  const body = [
    loads("a", 0, 2),
    loads("b", 10, 2),
    loads("c", 20, cCount),
    `mma.sync.aligned.m8n8k4.${layoutA}.${layoutB}.${d}.f16.f16.${c} ${list(40, dCount)}, ${list(0, 2)}, ${list(10, 2)}, ${list(20, cCount)};`,
    `mul.wide.u32 %d1, %thread, ${4 * dCount}; add.u64 %d1, %d1, %out;`,
    ...Array.from({ length: dCount }, (_, at) => `st.global.b32 [%d1+${4 * at}], %r${40 + at};`),
  ].join("\n");
  const { arrays, codes } = runPtx({
    body,
    arrays: {
      a: spread(a, `a.${layoutA}`, 4, "f16"),
      b: spread(b, `b.${layoutB}`, 4, "f16"),
      c: spread(sums, c, 8, c),
      out: 128 * dCount,
    },
  });
  expect(codes).toEqual([]);
  const view = new DataView(arrays["out"]?.buffer ?? new ArrayBuffer(0));
  const results = [0, 1, 2, 3].map(() =>
    Array.from({ length: 8 }, () => new Array<number>(8).fill(NaN)),
  );
  for (let lane = 0; lane < 32; lane++)
    for (let i = 0; i < 8; i++) {
      const [row, column] = places[d]?.(lane, i) ?? [0, 0];
      const at = lane * 8 + i;
      const line = results[productOf(lane)]?.[row] ?? [];
      line[column] =
        d === "f16"
          ? decodeFloat("f16", view.getUint16(2 * at, true))
          : view.getFloat32(4 * at, true);
    }
  return results;
}

const layouts = ["row", "col"] as const;
const types = [
  { d: "f32", c: "f32" },
  { d: "f32", c: "f16" },
  { d: "f16", c: "f16" },
] as const;

describe("m8n8k4 makes four products of f16 matrices", () => {
  const cases = layouts.flatMap((layoutA) =>
    layouts.flatMap((layoutB) => types.map((type) => ({ layoutA, layoutB, ...type }))),
  );
  test.for<Form>(cases)("$layoutA $layoutB, $c into $d", (form) => {
    const random = new Random(seed);
    const draw = (rows: number, columns: number): number[][][] =>
      [0, 1, 2, 3].map(() =>
        Array.from({ length: rows }, () =>
          Array.from({ length: columns }, () => random.below(21) - 10),
        ),
      );
    const [a, b, c] = [draw(8, 4), draw(4, 8), draw(8, 8)];
    const expected = c.map((matrix, product) =>
      matrix.map((line, row) =>
        line.map((old, column) =>
          [0, 1, 2, 3].reduce(
            (sum, k) => sum + (a[product]?.[row]?.[k] ?? 0) * (b[product]?.[k]?.[column] ?? 0),
            old,
          ),
        ),
      ),
    );
    // Adding 0 makes what is -0 a +0.
    const found = run(form, a, b, c).map((matrix) =>
      matrix.map((line) => line.map((sum) => sum + 0)),
    );
    expect(found, `seed ${seed}`).toEqual(expected);
  });
});

describe("the order of additions", () => {
  /** All elements of each matrix the same along a row, so that every sum is the same. */
  const same = (row: readonly number[], old: number) => ({
    a: [0, 1, 2, 3].map(() => Array.from({ length: 8 }, () => [...row])),
    b: [0, 1, 2, 3].map(() => Array.from({ length: 4 }, () => new Array<number>(8).fill(1))),
    c: [0, 1, 2, 3].map(() => Array.from({ length: 8 }, () => new Array<number>(8).fill(old))),
  });

  test("f32: products first, from the first to the last, then C", () => {
    const form = { layoutA: "row", layoutB: "col", d: "f32", c: "f32" } as const;
    const first = (row: readonly number[], old: number): number | undefined => {
      const { a, b, c } = same(row, old);
      return run(form, a, b, c)[3]?.[7]?.[7];
    };
    // 2^15 + 2^-10 is 2^15 in f32.
    expect(first([2 ** 15, 2 ** -10, 0, 0], -(2 ** 15))).toBe(0);
    expect(first([2 ** -10, 2 ** 15, -(2 ** 15), 0], 0)).toBe(0);
    expect(first([2 ** 15, 0, -(2 ** 15), 2 ** -10], 0)).toBe(2 ** -10);
    expect(first([1, 2, 3, 4], 2 ** 30)).toBe(2 ** 30);
  });

  test("f16: C and the first pair, then the second pair, in f32", () => {
    const form = { layoutA: "row", layoutB: "col", d: "f16", c: "f16" } as const;
    const { a, b, c } = same([2 ** -14, 0, -1, 0], 2 ** 10);
    expect(run(form, a, b, c)[0]?.[0]?.[0]).toBe(1023);
    const lost = same([2 ** 14, 2 ** -14, -(2 ** 14), 0], 2 ** -14);
    expect(run(form, lost.a, lost.b, lost.c)[2]?.[1]?.[1]).toBe(0);
    const kept = same([2 ** 14, -(2 ** 14), 2 ** -14, 0], 2 ** -14);
    expect(run(form, kept.a, kept.b, kept.c)[2]?.[1]?.[1]).toBe(2 ** -13);
  });
});
