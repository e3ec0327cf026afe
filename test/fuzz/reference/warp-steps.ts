/** Steps that each warp takes on its own, with what it makes brought together through shared memory. */
import { i32 } from "../../../src/formats/dtype.ts";
import { scoped, smem, warps } from "../../../src/index.ts";
import { controlSteps } from "./control-steps.ts";
import type { Filling } from "./control-steps.ts";
import { formats } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { elementSteps } from "./element-steps.ts";
import { countOf, held } from "./held.ts";
import { gatherStep, loadScalarStep, loadStep } from "./memory-steps.ts";
import type { Source } from "./memory-steps.ts";
import { computeBody, traceBody, usesOf } from "./steps.ts";
import { warpTileSteps } from "./tile-steps.ts";

const loads = [loadStep, loadScalarStep, gatherStep];

/** Steps of whoever shares memory of a scope with others, and so takes those without. */
export function stepsApart(sources: readonly Source[]): Filling {
  const fill: Filling = (draft, count) => {
    for (let made = 0; made < count; made++) {
      const kind = draft.random.below(8);
      if (kind === 0) draft.random.pick(loads)(draft, sources);
      else if (kind === 1 && draft.depth < 3) draft.random.pick(controlSteps)(draft, fill);
      else draft.random.pick([...elementSteps, ...warpTileSteps])(draft);
    }
  };
  return fill;
}

/** A step of kernels that have so many warps. */
export function warpsOf(count: number): (draft: Draft, sources: readonly Source[]) => void {
  return (draft, sources) => {
    if (draft.inWarps) return;
    const fill = stepsApart(sources);
    const { dtype, shape } = draft.some((slot) => slot.shape.length > 0, formats);
    if (count * countOf(shape) > draft.room) return;
    const index = draft.slot(i32, []);
    draft.inWarps = true;
    const body = draft.body([index], () => {
      fill(draft, 1 + draft.random.below(5));
      return [draft.exactly(dtype, shape)];
    });
    draft.inWarps = false;
    draft.giveBy(
      "warps",
      usesOf(body),
      dtype,
      [count, ...shape],
      (tracing) =>
        scoped({ buffer: smem(dtype, [count, ...shape]) }, ({ buffer }) => {
          warps((warp) => {
            const [value] = traceBody(body, tracing, [warp]);
            if (value !== undefined) buffer.at(warp).store(value as never);
          });
          return buffer.load();
        }),
      (computing) => {
        const own = Array.from({ length: count }, (_, warp) => {
          const [value] = computeBody(body, computing, [held(i32, [], () => BigInt(warp))]);
          return value?.items ?? [];
        });
        return { dtype, shape: [count, ...shape], items: own.flat() };
      },
    );
  };
}
