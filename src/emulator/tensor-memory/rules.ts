/**
 * The instructions of `tcgen05`, by the modifier behind the root:
 *
 *   alloc dealloc relinquish_alloc_permit     columns of tensor memory            `allocation.ts`
 *   ld st wait::ld wait::st                   registers and tensor memory         `access.ts`
 *   mma cp shift                              run by themselves, in a queue       `products.ts`, `copies.ts`
 *   commit                                    their end, on an mbarrier           `commit.ts`
 *   fence::before_thread_sync, after          what counts for others              `order.ts`
 */
import type { Collective, CollectiveInstruction, CollectiveRule } from "../collective.ts";
import { tensorAccess } from "./access.ts";
import { allocation, deallocation, relinquishment } from "./allocation.ts";
import { commitment } from "./commit.ts";
import { tensorCopy, tensorShift } from "./copies.ts";
import { orderOf } from "./order.ts";
import { product } from "./products.ts";

function wait(kind: "ld" | "st"): Collective {
  return {
    aligned: true,
    run: ({ machine, warp }) => {
      orderOf(machine, warp)?.wait(kind);
      return "done";
    },
  };
}

function fence(side: "fenceBefore" | "fenceAfter"): Collective {
  return {
    aligned: false,
    run: ({ machine, warp }) => {
      orderOf(machine, warp)?.[side]();
      return "done";
    },
  };
}

const operations: {
  readonly [operation: string]: (instruction: CollectiveInstruction) => Collective | undefined;
} = {
  alloc: allocation,
  dealloc: deallocation,
  relinquish_alloc_permit: relinquishment,
  ld: (instruction) => tensorAccess(instruction, "ld"),
  st: (instruction) => tensorAccess(instruction, "st"),
  "wait::ld": () => wait("ld"),
  "wait::st": () => wait("st"),
  "fence::before_thread_sync": () => fence("fenceBefore"),
  "fence::after_thread_sync": () => fence("fenceAfter"),
  mma: product,
  cp: tensorCopy,
  shift: tensorShift,
  commit: commitment,
};

export const tcgen05: CollectiveRule = (instruction) => {
  const [operation = ""] = instruction.modifiers;
  return operations[operation]?.(instruction);
};
