/**
 * Puts together what several ranges have of a row: values that are averages each, with the logarithms of the sums of their
 * exponentials. A block takes one row; where a single range had all of it, there is nothing to do.
 *
 *   part      log-sum-exp    weight                   out = Σ weight · values / Σ weight
 *   0         3              e^(3 - 5)
 *   1         5              e^0                      log-sum-exp = 5 + ln Σ weight
 */
import {
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
import type { KernelDefinition, Ref, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import { packingOf, paddedHead, pagedArrays, pagedDimensions, partArrays } from "./arrays.ts";
import type { PagedForm } from "./arrays.ts";
import { dealOf, optionalRef } from "./attend.ts";
import { sequenceTiles, tilesBefore, tilesOfRange } from "./ranges.ts";
import type { Integer } from "./ranges.ts";

/** Parts that are added at once. */
const together = 16;

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
  return kernel(
    {
      name: "paged_attention_combine",
      grid: { sequence: dimensions.b, token: dimensions.s, head: sizes.h },
      inputs: { lengths, ...partArrays(form, dimensions) },
      inouts: outputs,
    },
    (argument) => {
      waitForPreviousKernel();
      launchNextKernel();
      const { sequence, token, head } = argument as unknown as {
        readonly [N in "sequence" | "token" | "head"]: Integer;
      };
      const refs = argument as unknown as Refs;
      const deal = dealOf(form, dimensions, packing, refs.lengths);
      const { each } = tilesOfRange(deal);
      const { count } = sequenceTiles(deal, refs.lengths.at(sequence).loadScalar().maximum(0));
      const shared = head.div(packing.group);
      const inGroup = head.sub(shared.mul(packing.group));
      const part = inGroup.div(packing.heads);
      const block = token.div(packing.tokens).mul(packing.parts).add(part);
      const row = token
        .rem(packing.tokens)
        .mul(packing.heads)
        .add(inGroup.sub(part.mul(packing.heads)));
      const begin = tilesBefore(deal, sequence).mul(deal.blocks).add(block.mul(count));
      const first = begin.div(each);
      const last = begin.add(count).sub(1).div(each);
      when(last.gt(first), () => {
        const { values, logSumExp } = combined(form, refs, { first, last, shared, row });
        const e = paddedHead(sizes.e);
        const result = values.cast(problem.out.dtype) as Tile;
        refs.out.at(sequence, token, head, slice(0, e)).store(result.reshape([e]));
        optionalRef(form, argument, "logSumExp")
          ?.at(sequence, slice(head, 1), token)
          .store(logSumExp.reshape([1]));
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
}

function combined(
  { sizes }: PagedForm,
  { parts, weights }: Refs,
  { first, last, shared, row }: Parts,
): { readonly values: Tile<"f32">; readonly logSumExp: Tile<"f32"> } {
  const e = paddedHead(sizes.e);
  const start = {
    high: full(dtypes.f32, [1, 1], -Infinity),
    sum: zeros(dtypes.f32, [1, 1]),
    values: zeros(dtypes.f32, [1, e]),
  };
  const steps = last.sub(first).add(together).div(together);
  const end = loop({ to: steps, carry: start }, (step, before) => {
    const range = iota(dtypes.i32, [together], 0).add(step.mul(together)).add(first);
    const where = range.le(last);
    // The first one has the beginning of the sequence, the others later parts of it.
    const place = range.eq(first).cast(dtypes.i32);
    const own = weights
      .at(range, shared, place, row)
      .load({ where, fill: -Infinity })
      .reshape([together, 1]);
    const high = before.high.maximum(own.max(0, { keep: true }));
    const base = high.eq(-Infinity).select(zeros(dtypes.f32, [1, 1]), high);
    const weight = own.sub(base).exp();
    const change = before.high.sub(base).exp();
    const read = parts
      .at(range, shared, place, row, slice(0, e))
      .load({ where: where.expand(1), fill: 0 });
    return {
      high,
      sum: before.sum.mul(change).add(weight.sum(0, { keep: true })),
      values: before.values.mul(change).add(weight.mul(read).sum(0, { keep: true })),
    };
  });
  const isEmpty = end.sum.eq(0);
  const divisor = isEmpty.select(full(dtypes.f32, [1, 1], 1), end.sum);
  return { values: end.values.div(divisor), logSumExp: end.high.add(end.sum.log()) };
}
