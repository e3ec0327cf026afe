/**
 * What four warps of the skinny kernel do together, who have 64 columns and may take turns with others at steps along k. Weights are rows of what
 * tensor cores multiply (`wgmma`), and come from registers; rows of a come from shared memory, where no lane has to read them. Of 4 bits, whose steps
 * are 256 elements, halves of a step follow each other, and tensor cores are the others' while one is converted:
 *
 *   lanes          convert 0 │            │ scale 0, convert 1 │            │ scale 1
 *   tensor cores             │ multiply 0 │                    │ multiply 1 │
 *
 * 8192 × 28672 of i4 took 31.9 µs with one row, where warps on their own took 32.7; of 8 bits as long. Where the second half was converted while the first
 * was multiplied, 8 rows took as long, and 16 have no registers for it.
 */
import {
  accumulator,
  all,
  commitShared,
  constant,
  loop,
  slice,
  wgmma,
  zeros,
} from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { threadRows } from "../configuration.ts";
import { scalesFromMemory, scalesFromSlots } from "./scales.ts";
import type { ScalePart, Scales } from "./scales.ts";
import { following, stepsOfSlice } from "./warp-share.ts";
import type { Share } from "./warp-share.ts";
import {
  asStored,
  dequantized,
  packedUnit,
  scalesOfUnit,
  storedFactor,
  unpacked,
} from "../weights/quantized.ts";

/** What 64 columns come to over their part of k, scales included: [rows, 64]. */
export function sumsTogether(share: Share): Tile {
  const { configuration, weights, argument, turn, depth } = share;
  const { stored, activations, full: landed, empty } = argument;
  const { rows, stages, sliceK } = configuration;
  const zero = constant(dtypes.i32, 0);
  const isGrouped = weights.group !== undefined;
  const factor = storedFactor(weights);
  const ofSteps = share.scales.filter(({ input }) => isGrouped || input.name !== "bScale");
  const units = Array.from({ length: depth / packedUnit }, (_, unit) => unit);
  const { first, left } = share;
  const empties: Tile<"f32"> = zeros(dtypes.f32, [threadRows, rows]);
  const { sums } = loop(
    { to: stepsOfSlice(share.steps, sliceK, turn), carry: { sums: empties, slot: turn } },
    (step, { sums: before, slot }) => {
      const start = share.from.add(step.mul(sliceK).add(turn)).mul(depth);
      const parts = units.map((unit): ScalePart => ({
        ...{ slot, unit, first, left, count: threadRows },
        along: start.add(unit * packedUnit),
      }));
      const asked = parts.map((part) => scalesFromMemory(weights, ofSteps, part));
      landed.at(slot).wait();
      const lines = units.map((unit) => {
        const within = slice(unit * packedUnit, packedUnit);
        return asStored(stored.at(slot, slice(first, threadRows), within).load(), 4);
      });
      const scales = parts.map((part, unit) => ({
        ...asked[unit],
        ...scalesFromSlots(ofSteps, part),
      }));
      let after = before;
      lines.forEach((line, unit) => {
        const made = madeOf(line, scales[unit] ?? {}, share);
        const rowsOf = activations.at(slot, all, slice(unit * packedUnit, packedUnit));
        const sum = accumulator(dtypes.f32, [threadRows, rows]);
        const product = wgmma(sum, made, rowsOf.transpose()).wait();
        const scale = scalesOfUnit(weights) === 1 ? scales[unit]?.bScale : undefined;
        after = scale === undefined ? after.add(product) : product.fma(transposed(scale), after);
      });
      // TMA overwrites what lanes have read here. Said before the products, it has these wait until all has been read: 30.7 µs instead of 30.5 with
      // 16 rows of 8192 × 28672 in i4.
      commitShared();
      empty.at(slot).arrive();
      return { sums: after, slot: following(slot, sliceK, stages, turn) };
    },
  );
  const products = factor === 1 ? sums : sums.mul(1 / factor);
  if (isGrouped) return products.transpose();
  const whole = { ...{ along: zero, slot: zero, unit: 0 }, ...{ first, left, count: threadRows } };
  const { bScale } = scalesFromMemory(weights, share.scales, whole);
  return (bScale === undefined ? products : products.mul(transposed(bScale))).transpose();
}

/** Stored lines of columns as tensor cores take them: [64, 128]. Differences to zero points are exact in bf16 and f16. */
function madeOf(line: Tile, { bScale, bZero: zero }: Scales, { weights }: Share): Tile<"bf16"> {
  if (scalesOfUnit(weights) > 1 && bScale !== undefined)
    return dequantized(line.transpose() as Tile, bScale, zero, weights).transpose() as Tile<"bf16">;
  const factor = storedFactor(weights);
  const numbers = unpacked(line.transpose()).cast(weights.as);
  const quick = factor === 1 ? numbers : numbers.mul(factor);
  const made = zero === undefined ? quick : quick.sub(zero.mul(factor).cast(weights.as));
  return made.transpose() as Tile<"bf16">;
}

/** A number for each column, or one for all, below each other. */
function transposed(scale: Tile<"f32">): Tile<"f32"> {
  return scale.transpose();
}
