/**
 * Puts together what several ranges have of a row: values that are averages each, with the logarithms of the sums of their
 * exponentials. A block takes one row, or some columns of it; where a single range had all of it, there is nothing to do.
 *
 *   part      log-sum-exp    weight                   out = Σ weight · values / Σ weight
 *   0         3              e^(3 - 5)
 *   1         5              e^0                      log-sum-exp = 5 + ln Σ weight
 *
 * All of that is waiting, for the ranges to end and for memory, so little is done in turn: where the parts of a row lie is found while
 * ranges still work, all parts of a row are asked for at once where there are few, and those of several turns meet only in the end.
 */
import {
  constant,
  full,
  iota,
  kernel,
  launchNextKernel,
  loop,
  slice,
  waitForPreviousKernel,
  when,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition, Ref, Slice, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import { packingOf, paddedHead, pagedArrays, pagedDimensions, partArrays } from "./arrays.ts";
import type { PagedForm } from "./arrays.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import { dealOf, optionalRef } from "./attend.ts";
import { rangesOfBlock } from "./ranges.ts";
import type { Integer } from "./ranges.ts";

/** A block's warps, the parts of a row that it asks for at once, and the columns of them. */
interface CombineShape {
  readonly warps: 1 | 4 | 8;
  readonly together: number;
  readonly width: number;
}

/** Numbers of parts that a lane holds at once, parts that a block does at least, and columns: 128 bytes are read together. */
const [laneNumbers, fewestParts, fewestColumns] = [32, 4, 32];

/**
 * As many parts at once as a row has where sequences are of one length: in one warp, where its registers hold them, or else by
 * blocks that share the columns of a row.
 */
function combineShape({ sizes, configuration }: PagedForm): CombineShape {
  const { tokens, parts } = packingOf(sizes, configuration);
  const blocks = sizes.b * Math.ceil(sizes.s / tokens) * parts;
  // A sequence begins and ends within a range, unless it is the only one.
  const each = blocks === 1 ? configuration.ranges : Math.ceil(configuration.ranges / blocks) + 1;
  const expected = powerOfTwoFrom(Math.max(fewestParts, each));
  const e = paddedHead(sizes.e);
  if (expected * e <= laneNumbers * 32) return { warps: 1, together: expected, width: e };
  const fewest = Math.min(e, fewestColumns);
  const warps = expected * fewest > laneNumbers * 32 * 4 ? 8 : 4;
  const numbers = laneNumbers * 32 * warps;
  const width = Math.min(e, Math.max(fewest, numbers / expected));
  return { warps, together: Math.min(expected, numbers / width), width };
}

interface Refs {
  readonly lengths: Ref<"i32">;
  readonly parts: Ref<"f32">;
  readonly weights: Ref<"f32">;
  readonly out: Ref;
}

export function combineKernel(form: PagedForm): KernelDefinition {
  const { problem, sizes, configuration } = form;
  const dimensions = pagedDimensions();
  const { inputs, outputs } = pagedArrays(form, dimensions);
  const { lengths } = inputs;
  if (lengths === undefined) throw new Error("the kernel has lengths");
  const packing = packingOf(sizes, configuration);
  const { warps, together, width } = combineShape(form);
  const e = paddedHead(sizes.e);
  return kernel(
    {
      name: "paged_attention_combine",
      grid: { sequence: dimensions.b, token: dimensions.s, head: sizes.h, piece: e / width },
      warps,
      inputs: { lengths, ...partArrays(form, dimensions) },
      inouts: outputs,
    },
    (argument) => {
      const { sequence, token, head, piece } = argument as unknown as {
        readonly [N in "sequence" | "token" | "head" | "piece"]: Integer;
      };
      const refs = argument as unknown as Refs;
      // Lengths were written before the ranges were begun, which wait for that before they let this kernel start.
      const deal = dealOf(form, dimensions, packing, refs.lengths);
      const shared = head.div(packing.group);
      const inGroup = head.sub(shared.mul(packing.group));
      const part = inGroup.div(packing.heads);
      const block = token.div(packing.tokens).mul(packing.parts).add(part);
      const row = token
        .rem(packing.tokens)
        .mul(packing.heads)
        .add(inGroup.sub(part.mul(packing.heads)));
      const { first, last } = rangesOfBlock(deal, sequence, block);
      waitForPreviousKernel();
      launchNextKernel();
      when(last.gt(first), () => {
        const columns = slice(piece.mul(width), width);
        const hasTurns = configuration.ranges > together;
        const rows = { first, last, shared, row, columns, together, hasTurns };
        const { values, logSumExp } = combined(refs, rows);
        const result = values.cast(problem.out.dtype) as Tile;
        refs.out.at(sequence, token, head, columns).store(result.reshape([width]));
        // Each piece of a row finds the same.
        const sums = optionalRef(form, argument, "logSumExp");
        if (sums !== undefined)
          when(piece.eq(0), () => {
            sums.at(sequence, slice(head, 1), token).store(logSumExp.reshape([1]));
          });
      });
    },
  ) as unknown as KernelDefinition;
}

/** Where the parts of a row lie. */
interface Parts {
  readonly first: Integer;
  readonly last: Integer;
  readonly shared: Integer;
  readonly row: Integer;
  readonly columns: Slice;
  readonly together: number;
  /** Whether there may be more of them than are asked for at once. */
  readonly hasTurns: boolean;
}

function combined(
  { parts, weights }: Refs,
  { first, last, shared, row, columns, together, hasTurns }: Parts,
): { readonly values: Tile<"f32">; readonly logSumExp: Tile<"f32"> } {
  const partsFrom = (turn: Integer) => {
    const range = iota(dtypes.i32, [together], 0).add(turn.mul(together)).add(first);
    const where = range.le(last);
    // The first one has the beginning of the sequence, the others later parts of it.
    const place = range.eq(first).cast(dtypes.i32);
    const own = weights
      .at(range, shared, place, row)
      .load({ where, fill: -Infinity })
      .reshape([together, 1]);
    const read = parts
      .at(range, shared, place, row, columns)
      .load({ where: where.expand(1), fill: 0 });
    return { own, read };
  };
  const opening = partsFrom(constant(dtypes.i32, 0));
  const turns = last.sub(first).add(together).div(together);
  // Each of them is as high as itself.
  const start = {
    high: opening.own,
    sum: opening.own.gt(-Infinity).cast(dtypes.f32),
    values: opening.read,
  };
  const all = hasTurns
    ? loop({ from: 1, to: turns, carry: start }, (turn, before) => {
        const { own, read } = partsFrom(turn);
        const high = before.high.maximum(own);
        const base = finite(high);
        const [weight, change] = [own.sub(base).exp(), before.high.sub(base).exp()];
        return {
          high,
          sum: before.sum.mul(change).add(weight),
          values: before.values.mul(change).add(weight.mul(read)),
        };
      })
    : start;
  const high = all.high.max(0, { keep: true });
  const weight = all.high.sub(finite(high)).exp();
  const sum = all.sum.mul(weight).sum(0, { keep: true });
  const values = all.values.mul(weight).sum(0, { keep: true });
  const divisor = sum.eq(0).select(full(dtypes.f32, [1, 1], 1), sum);
  return { values: values.div(divisor), logSumExp: high.add(sum.log()) };
}

/** The same, but 0 where nothing was seen, from which -∞ is no distance. */
function finite(high: Tile<"f32">): Tile<"f32"> {
  return high.eq(-Infinity).select(zeros(dtypes.f32, high.shape), high);
}
