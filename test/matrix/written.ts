/**
 * Kernels that users write in part themselves: instructions of PTX against their meaning, for each element and for each lane,
 * and kernels for one item that become kernels for a batch.
 */
import { bf16, bool, f16, f32, i32, i64, i8, u32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { tensor, concatenate, inlinePtx, kernel, slice, vmap } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

/** An instruction of two operands on lone elements of a format, and the method that it is. */
const instructions: readonly (readonly [DType, string, "add" | "and"])[] = [
  [f32, "add.rn.f32", "add"],
  [f16, "add.rn.f16", "add"],
  [bf16, "add.rn.bf16", "add"],
  [i32, "add.s32", "add"],
  [u32, "and.b32", "and"],
  [i64, "add.s64", "add"],
  [i8, "add.s32", "add"],
  [bool, "and.pred", "and"],
];

function eachElement(dtype: DType, opcode: string, method: "add" | "and"): MatrixCase {
  const shape = [7, 33];
  const inputs = { x: ordinaryNumbers(dtype, shape, 1), y: ordinaryNumbers(dtype, shape, 2) };
  const meant = (left: Tile, right: Tile): Tile =>
    (left as unknown as Record<string, (other: Tile) => Tile>)[method]?.(right) ?? left;
  return exactCase(`${opcode} on ${dtype.name}, written by hand`, inputs, () =>
    kernel(
      {
        name: "each_element",
        inputs: { x: tensor(dtype, shape), y: tensor(dtype, shape) },
        outputs: { out: tensor(dtype, shape) },
      },
      ({ x, y, out }) => {
        const [made] = inlinePtx({
          operands: [x.load(), y.load()] as readonly [Tile, Tile],
          results: [dtype],
          code: ([left, right], [result]) => `${opcode} ${result}, ${left}, ${right};`,
          meaning: (left, right) => [meant(left, right)],
        });
        out.store(made as never);
      },
    ),
  );
}

/** Lanes exchange what they hold: two registers each, by a shuffle. */
function eachLane(warps: number): MatrixCase {
  const shape = [warps, 64];
  const layout = `(${Array.from({ length: Math.log2(warps) }, (_, bit) => `W${bit}`).join(" ")} | R0 L0 L1 L2 L3 L4)`;
  const inputs = { x: ordinaryNumbers(f32, shape, 3) };
  return exactCase(`shuffles written by hand, ${warps} warps`, inputs, () =>
    kernel(
      {
        name: "each_lane",
        warps,
        inputs: { x: tensor(f32, shape) },
        outputs: { out: tensor(f32, shape) },
      },
      ({ x, out }) => {
        const [turned] = inlinePtx({
          operands: [x.load()],
          results: [{ dtype: f32, shape }],
          layouts: { operands: [layout], results: [layout] },
          code: ([own], [other]) =>
            own
              .map((register, at) => `shfl.sync.bfly.b32 ${other[at]}, ${register}, 16, 31, -1;`)
              .join("\n"),
          meaning: (tile) => {
            const half = (start: number): Tile<"f32"> => tile.slice([0, start], [warps, 32]);
            return [concatenate([half(32), half(0)], { axis: 1 })];
          },
        });
        out.store(turned);
      },
    ),
  );
}

/** Items along each axis of both arrays. */
function batched(axis: number): MatrixCase {
  const [items, rows, columns] = [5, 6, 37];
  const shape = [rows, columns].toSpliced(axis, 0, items);
  return exactCase(`vmap along axis ${axis}`, { x: ordinaryNumbers(f32, shape, 4) }, () =>
    vmap(
      kernel(
        {
          name: "item",
          grid: { i: rows / 2 },
          inputs: { x: tensor(f32, [rows, columns]) },
          outputs: { out: tensor(f32, [rows, columns]) },
        },
        ({ i, x, out }) => {
          const here = slice(i.mul(2), 2);
          const tile = x.at(here).load();
          out.at(here).store(tile.sub(tile.max({ axis: 1, keepDims: true })));
        },
      ),
      { x: axis, out: 2 - axis },
    ),
  );
}

export function writtenCases(): readonly MatrixCase[] {
  return [
    ...instructions.map((instruction) => eachElement(...instruction)),
    ...[2, 4, 8].map(eachLane),
    ...[0, 1, 2].map(batched),
  ];
}
