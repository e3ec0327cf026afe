/**
 * Puts together what several splits have of a row: values that are averages each, with the logarithms of the sums of their
 * exponentials. A block takes one row, or some columns of it; where a single split had all of it, there is nothing to do.
 *
 *   part      log-sum-exp    weight                   out = Σ weight · values / Σ weight
 *   0         3              e^(3 - 5)
 *   1         5              e^0                      log-sum-exp = 5 + ln Σ weight
 *
 * All of that is waiting, for the splits to end and for memory, so little is done in turn: where the parts of a row lie is found while
 * splits still work, all parts of a row are asked for at once where there are few, and those of several turns meet only in the end.
 */
import {
  constant,
  full,
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
import { splitsOfBlock } from "./tile-scheduler.ts";
import type { Integer } from "./tile-scheduler.ts";

/** A block's warps, the parts of a row that it asks for at once, and the columns of them. */
interface CombineShape {
  readonly warps: 1 | 2 | 4 | 8;
  readonly together: number;
  readonly width: number;
}

const fast = { approximate: true } as const;

/** Numbers of parts that a lane holds at once, parts that a block does at least, and columns. */
const [laneNumbers, fewestParts, fewestColumns] = [32, 4, 32];

/**
 * As many parts at once as a row has where sequences are of one length: blocks share the columns of a row where one warp does not hold all of them, and have
 * more warps where it does not hold the fewest columns of them.
 */
function combineShape({ sizes, configuration }: PagedForm): CombineShape {
  const { tokens, parts } = packingOf(sizes, configuration);
  const blocks = sizes.b * Math.ceil(sizes.s / tokens) * parts;
  // A sequence begins and ends within a split, unless it is the only one; its beginning is read by itself.
  const each = Math.ceil(configuration.splits / blocks) - (blocks === 1 ? 1 : 0);
  const expected = powerOfTwoFrom(Math.max(fewestParts, each));
  const e = paddedHead(sizes.e);
  const numbers = laneNumbers * 32;
  const width = Math.min(e, Math.max(fewestColumns, numbers / expected));
  const warps = ([1, 2, 4] as const).find((count) => expected * width <= count * numbers) ?? 8;
  return { warps, together: Math.min(expected, (numbers * warps) / width), width };
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
      // Lengths were written before the splits were begun, which wait for that before they let this kernel start.
      const deal = dealOf(form, dimensions, packing, refs.lengths);
      const shared = head.div(packing.group);
      const inGroup = head.sub(shared.mul(packing.group));
      const part = inGroup.div(packing.heads);
      const block = token.div(packing.tokens).mul(packing.parts).add(part);
      const row = token
        .rem(packing.tokens)
        .mul(packing.heads)
        .add(inGroup.sub(part.mul(packing.heads)));
      const { first, last } = splitsOfBlock(deal, sequence, block);
      // Waited for in both branches: an assembler that has to know which one it is computes all of that before. What comes after this kernel waits for it alone,
      // and so for the splits, too, by way of all of its blocks.
      const follow = (): void => {
        waitForPreviousKernel({ independent: ["lengths"] });
        launchNextKernel();
      };
      when(
        last.gt(first),
        () => {
          follow();
          const columns = slice(piece.mul(width), width);
          const hasTurns = configuration.splits - 1 > together;
          const rows = { first, last, shared, row, columns, together, hasTurns };
          const { values, logSumExp } = combined(refs, rows);
          const result = values.cast(problem.out.dtype);
          refs.out.at(sequence, token, head, columns).store(result.reshape([width]));
          // Each piece of a row finds the same.
          const sums = optionalRef(form, argument, "logSumExp");
          if (sums !== undefined)
            when(piece.eq(0), () => {
              sums.at(sequence, slice(head, 1), token).store(logSumExp.reshape([1]));
            });
        },
        follow,
      );
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
  const own = slice(row, 1);
  const partsOf = (splits: Slice, place: number) => ({
    // By powers of two, which there is an instruction for.
    weight: weights.at(splits, shared, place, own).load({ fill: -Infinity }).mul(Math.LOG2E),
    read: parts.at(splits, shared, place, row, columns).load({ fill: 0 }),
  });
  // The beginning of the sequence has another place than what follows.
  const beginning = partsOf(slice(first, 1), 1);
  const partsFrom = (turn: Integer) =>
    partsOf(slice(turn.mul(together).add(first).add(1), together, { end: last.add(1) }), 0);
  const opening = partsFrom(constant(dtypes.i32, 0));
  const turns = last
    .sub(first)
    .add(together - 1)
    .div(together);
  // Each of them is as high as itself.
  const start = {
    high: opening.weight,
    sum: opening.weight.gt(-Infinity).cast(dtypes.f32),
    values: opening.read,
  };
  const all = hasTurns
    ? loop({ from: 1, to: turns, carry: start }, (turn, before) => {
        const { weight: further, read } = partsFrom(turn);
        const high = before.high.maximum(further);
        const base = finite(high);
        const [weight, change] = [further.sub(base).exp2(fast), before.high.sub(base).exp2(fast)];
        return {
          high,
          sum: before.sum.mul(change).add(weight),
          values: before.values.mul(change).add(weight.mul(read)),
        };
      })
    : start;
  const high = all.high.max({ axis: 0, keepDims: true }).maximum(beginning.weight);
  const base = finite(high);
  const weight = all.high.sub(base).exp2(fast);
  const weightOfBeginning = beginning.weight.sub(base).exp2(fast);
  const sum = all.sum.mul(weight).sum({ axis: 0, keepDims: true }).add(weightOfBeginning);
  const values = all.values.mul(weight).sum({ axis: 0, keepDims: true });
  const both = values.add(beginning.read.mul(weightOfBeginning));
  const one = full(dtypes.f32, [1, 1], 1);
  // One quotient a row; sums are from 1 on, so that it is a number like others.
  const left = one.div(sum.eq(0).select(one, sum), fast);
  return { values: both.mul(left), logSumExp: high.add(sum.log2()).mul(Math.LN2) };
}

/** The same, but 0 where nothing was seen, from which -∞ is no distance. */
function finite(high: Tile<"f32">): Tile<"f32"> {
  return high.eq(-Infinity).select(zeros(dtypes.f32, high.shape), high);
}
