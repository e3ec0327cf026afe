/** Steps that each warp takes on its own, with what it makes brought together through shared memory. */
import { i32 } from "../../../src/formats/dtype.ts";
import { scoped, smem, warps } from "../../../src/index.ts";
import { formats } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { elementSteps } from "./element-steps.ts";
import type { StepMaker } from "./element-steps.ts";
import { countOf, held } from "./held.ts";
import { computeBody, traceBody, usesOf } from "./steps.ts";
import { warpTileSteps } from "./tile-steps.ts";

/** A step of kernels that have so many warps. */
export function warpsOf(count: number): StepMaker {
  return (draft: Draft) => {
    if (draft.inWarps) return;
    const { dtype, shape } = draft.some((slot) => slot.shape.length > 0, formats);
    if (count * countOf(shape) > draft.room) return;
    const index = draft.slot(i32, []);
    draft.inWarps = true;
    const body = draft.body([index], () => {
      for (let made = 1 + draft.random.below(4); made > 0; made--)
        draft.random.pick([...elementSteps, ...warpTileSteps])(draft);
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
