/**
 * How many stages a pipelined loop has. The shared memory of a multiprocessor decides: two blocks on each
 * processor, so that one multiplies while the other begins or ends, where that leaves three steps or more to each; one
 * block otherwise. More than four steps gain nothing.
 *
 *   sm_90a, 228 KiB; bf16 128 × 64 and 64 × 128, 32 KiB a step:   two blocks of 3 steps
 *                    bf16 128 × 64 and 64 × 256, 48 KiB a step:   one block of 4 steps
 */
import type { Kernel, Value } from "../../ir/node.ts";
import { allocatesShared } from "../../ir/traits.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { Target } from "../../targets/target.ts";
import { tileOf } from "../../layout/model/product-instructions.ts";
import type { LoopPlan } from "./plan.ts";
import { packedBytes } from "../../formats/dtype.ts";

const kibibyte = 1024;
const mostSteps = 4;
const enoughSteps = 3;

/** Barriers, and what lies between buffers because they are aligned. */
const reserve = kibibyte;

/** The depth that the loop asks for, or that there is room for; 1 where copies ahead find none. */
export function depthOf(
  { loop, copies, products }: LoopPlan,
  kernel: Kernel,
  target: Target,
): number {
  const { depth } = loop.attributes;
  if (depth !== undefined) return depth;
  const stored = products.flatMap((product) => product.stored.map(tileBytes));
  const bytes = [...copies.map((copied) => copied.bytes), ...stored].reduce(
    (sum, one) => sum + one,
  );
  const others = sharedBytes(kernel) + reserve;
  const steps = (blocks: number): number => {
    // The hardware keeps 1 KiB of every block's shared memory for itself.
    const share = Math.floor(target.sharedMemoryPerProcessor / blocks) - kibibyte;
    const room = Math.min(share, target.sharedMemoryPerBlock) - others;
    return Math.max(1, Math.min(mostSteps, Math.floor(room / bytes)));
  };
  return steps(2) >= enoughSteps ? steps(2) : steps(1);
}

function tileBytes(value: Value): number {
  const { dtype, shape } = tileOf(value);
  return packedBytes(
    dtype,
    shape.reduce((all, extent) => all * extent, 1),
  );
}

/** What the kernel's own shared memory takes. */
function sharedBytes({ body }: Kernel): number {
  let total = 0;
  walkOps(body, (op) => {
    if (!allocatesShared(op)) return;
    if (op.kind === "alloc_union") total += op.attributes.bytes;
    if (op.kind !== "alloc") return;
    const elements = op.attributes.shape.reduce<number>((all, extent) => all * Number(extent), 1);
    total += packedBytes(op.attributes.dtype, elements);
  });
  return total;
}
