/** Tiles that move as matrices: what they cost, and that factors of mma.sync are stored so that they do. */
import { describe, expect, test } from "vitest";
import { tensor, bf16, dot, f16, f32, kernel, smem } from "tilewright";
import { place } from "../../lower/stages.ts";
import { walkOps } from "../../ir/traverse.ts";
import { targets } from "../../targets/target.ts";
import { matrixMoves } from "./ldmatrix-cost.ts";
import type { SampledPlaces } from "./ldmatrix-cost.ts";

const lanes = Array.from({ length: 32 }, (_, lane) => lane);

/** Words of elements in rows so many bits apart; each further word begins a row of its own. */
function places(pitch: number, transposed: boolean, move = 0): SampledPlaces {
  const at = (row: number, column: number) => move + row * pitch + 16 * column;
  const of = (lane: number, half: number): number =>
    transposed ? at(2 * (lane & 3) + half, lane >> 2) : at(lane >> 2, 2 * (lane & 3) + half);
  const words = [0, 1, 2, 3].flatMap((word) => [0, 1].map((half) => of(0, half) + word * 1024));
  const ofElements = [lanes.map((lane) => of(lane, 0)), lanes.map((lane) => of(lane, 1))] as const;
  return { ofRegisters: words, ofElements };
}

describe.each([false, true])("transposed: %s", (transposed) => {
  test("rows in different banks take a wavefront a matrix", () => {
    expect(matrixMoves(places(128, transposed), 8)).toEqual({ instructions: 1, wavefronts: 4 });
    expect(matrixMoves(places(128, transposed), 2)).toEqual({ instructions: 1, wavefronts: 1 });
  });

  test("rows in the same banks take one each", () => {
    expect(matrixMoves(places(1024, transposed), 8)).toEqual({ instructions: 1, wavefronts: 32 });
  });

  test("rows begin at multiples of 16 bytes", () => {
    expect(matrixMoves(places(128, transposed, 64), 8)).toBeUndefined();
    expect(matrixMoves(places(64, transposed), 8)).toBeUndefined();
  });

  test("further words lie as the first does, and every lane has both of its elements", () => {
    const { ofRegisters, ofElements } = places(128, transposed);
    const moved = ofRegisters.map((bit, register) => (register === 3 ? 48 : bit));
    expect(matrixMoves({ ofRegisters: moved, ofElements }, 8)).toBeUndefined();
    const missing = [
      ofElements[0].map((bit, lane) => (lane === 9 ? undefined : bit)),
      ofElements[1],
    ];
    const some = missing as unknown as SampledPlaces["ofElements"];
    expect(matrixMoves({ ofRegisters, ofElements: some }, 8)).toBeUndefined();
    expect(matrixMoves(places(128, transposed), 1)).toBeUndefined();
  });
});

/** Of which lanes have 16 bytes of each factor at least. */
const shapes = [
  [16, 64, 64],
  [32, 128, 32],
  [64, 64, 64],
] as const;
const orders = [false, true].flatMap((left) => [false, true].map((right) => ({ left, right })));

/** Units of the accesses of a product whose factors come through shared memory, each stored by rows or turned. */
function unitsOf(
  [m, n, k]: readonly [m: number, n: number, k: number],
  turned: (typeof orders)[number],
  dtype: typeof bf16 | typeof f16,
): readonly (string | undefined)[] {
  const [a, b] = [turned.left ? [k, m] : [m, k], turned.right ? [n, k] : [k, n]];
  const { kernel: traced } = kernel(
    {
      name: "product",
      inputs: { a: tensor(dtype, a), b: tensor(dtype, b) },
      outputs: { c: tensor(f32, [m, n]) },
      scratch: { left: smem(dtype, a), right: smem(dtype, b) },
    },
    ({ a, b, c, left, right }) => {
      left.store(a.load());
      right.store(b.load());
      const [first, second] = [left.load(), right.load()];
      c.store(
        dot(turned.left ? first.transpose() : first, turned.right ? second.transpose() : second),
      );
    },
  );
  const units: (string | undefined)[] = [];
  walkOps(place(traced, targets.sm_80).kernel.body, (op) => {
    if (op.kind === "load") units.push(op.attributes.unit);
  });
  return units;
}

// A factor is read from global memory as it lies there, and from shared memory as the tensor cores take it.
describe.each(shapes)("factors of %i × %i × %i", (...shape) => {
  test.each(orders)("turned: %j", (turned) => {
    for (const dtype of [bf16, f16])
      expect(unitsOf(shape, turned, dtype)).toEqual([
        ...["global 16", "global 16"],
        ...["shared matrices", "shared matrices"],
      ]);
  });
});
