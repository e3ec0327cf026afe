/** Inference for ops by which program threads and blocks order themselves. */
import { bool, i32 } from "../../formats/dtype.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import type { Value } from "../node.ts";
import { opName } from "../op-names.ts";
import type { synchronizationOps } from "../ops/synchronization.ts";
import { barrierType, scalarType, semaphoreType, typeText } from "../types.ts";
import type { Type } from "../types.ts";
import {
  barrierOperand,
  countText,
  fail,
  indexOperand,
  isPositiveInteger,
  requireCluster,
  requireSizes,
  semaphoreOperand,
} from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";

/** An mbarrier counts arrivals in 20 bits. */
const mostArrivals = 2 ** 20 - 1;

/** One barrier of an array is named by an index; a single barrier may go without. */
export function requireBarrierIndex(
  draft: AnyDraft,
  barrier: Value,
  index: Value | undefined,
): void {
  const type = barrierOperand(draft, "the barrier", barrier);
  if (index === undefined && type.count > 1)
    fail(draft, "TW2080", `${opName(draft)} on an array of ${type.count} barriers needs an index`, {
      expected: "an i32 index",
      found: "none",
    });
  if (index !== undefined) indexOperand(draft, "the index", index);
}

function barrierArrive(draft: Draft<"barrier_arrive">, context: InferContext): readonly Type[] {
  const { barrier, index, peer } = draft.operands;
  requireBarrierIndex(draft, barrier, index);
  if (peer !== undefined) {
    indexOperand(draft, "the peer", peer);
    requireCluster(draft, context);
  }
  return [];
}

function requireSemaphore(
  draft: Draft<"semaphore_signal" | "semaphore_wait" | "semaphore_read">,
): void {
  const type = semaphoreOperand(draft, "the semaphore", draft.operands.semaphore);
  const { indices } = draft.operands;
  if (indices.length !== type.shape.length)
    fail(draft, "TW2083", `${opName(draft)} names one counter of ${typeText(type)}`, {
      expected: countText(type.shape.length, "index", "indices"),
      found: String(indices.length),
    });
  for (const index of indices) indexOperand(draft, "an index", index);
}

export const synchronizationRules: InferRules<keyof typeof synchronizationOps> = {
  alloc_barrier(draft) {
    const { count, arrivals, shape = [count] } = draft.attributes;
    const fits = shape.reduce((product, extent) => product * extent, 1) === count;
    if (
      !fits ||
      !shape.every(isPositiveInteger) ||
      !isPositiveInteger(count) ||
      !isPositiveInteger(arrivals) ||
      arrivals > mostArrivals
    )
      fail(draft, "TW2082", `there is no barrier array of ${count} with ${arrivals} arrivals`, {
        expected: `a count of at least 1 and arrivals from 1 to ${mostArrivals}`,
        found: `count ${count}, arrivals ${arrivals}`,
      });
    return [barrierType(count, arrivals)];
  },

  linear_index(draft) {
    const { indices } = draft.operands;
    const { extents, strides } = draft.attributes;
    if (indices.length !== extents.length || indices.length !== strides.length)
      fail(draft, "TW2080", `${opName(draft)} has ${indices.length} indices of ${extents.length}`, {
        expected: countText(extents.length, "index", "indices"),
        found: String(indices.length),
      });
    for (const index of indices) indexOperand(draft, "an index", index);
    return [scalarType(i32)];
  },

  barrier_arrive: barrierArrive,

  barrier_wait(draft) {
    const { barrier, index, parity } = draft.operands;
    requireBarrierIndex(draft, barrier, index);
    if (parity !== undefined) indexOperand(draft, "the parity", parity);
    return [];
  },

  barrier_test(draft) {
    const { barrier, index, parity } = draft.operands;
    requireBarrierIndex(draft, barrier, index);
    indexOperand(draft, "the parity", parity);
    return [scalarType(bool)];
  },

  delay(draft) {
    indexOperand(draft, "the nanoseconds", draft.operands.nanoseconds);
    return [];
  },

  block_sync: () => [],
  cluster_arrive: () => [],
  cluster_wait: () => [],

  set_registers(draft, { warps }) {
    if (warps < warpsPerGroup)
      fail(
        draft,
        "TW2085",
        `all warps of a warpgroup keep as many registers, and threads have ${warps}`,
        {
          expected: `${warpsPerGroup} warps or more`,
          found: String(warps),
        },
      );
    const { count } = draft.attributes;
    if (!Number.isInteger(count) || count % 8 !== 0 || count < 24 || count > 256)
      fail(draft, "TW2084", `a thread cannot keep ${count} registers`, {
        expected: "a multiple of 8 from 24 to 256",
        found: String(count),
      });
    return [];
  },

  grid_dependency: () => [],

  alloc_semaphore(draft, context) {
    const { shape } = draft.attributes;
    requireSizes(draft, shape, context);
    return [semaphoreType(shape)];
  },

  semaphore_signal(draft) {
    requireSemaphore(draft);
    indexOperand(draft, "the increment", draft.operands.increment);
    return [];
  },

  semaphore_wait(draft) {
    requireSemaphore(draft);
    indexOperand(draft, "the value", draft.operands.value);
    return [];
  },

  semaphore_read(draft) {
    requireSemaphore(draft);
    return [scalarType(i32)];
  },
};
