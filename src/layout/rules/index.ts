/**
 * Layout rules: one a kind of op. Leaving one out does not compile.
 *
 *   add %a, %b          pointwise: operands and result lie alike
 *   transpose %a        the result is the image of the operand under an exchange of axes
 */
import type { AnyOp } from "../../ir/node.ts";
import { ruleOf } from "../../ir/ops.ts";
import type { OpRules } from "../../ir/ops.ts";
import { asynchronousRules } from "./asynchronous.ts";
import { LayoutContext } from "./context.ts";
import type { Surroundings } from "./context.ts";
import { controlRules } from "./control.ts";
import { memoryRules } from "./memory.ts";
import type { placedOps } from "../../ir/ops/placed.ts";
import { synchronizationRules } from "./synchronization.ts";
import { tileRules } from "./tiles.ts";
import { valueRules } from "./values.ts";
import type { Rules } from "./values.ts";
import { tensorMemoryRules } from "./tensor-memory.ts";

/** Ops that placing itself adds. */
const placedRules: Rules<typeof placedOps> = {
  convert_layout: alreadyPlaced,
  alloc_scratch: alreadyPlaced,
  lane_barrier: alreadyPlaced,
  barriers_ready: alreadyPlaced,
  products_wait: alreadyPlaced,
  cluster_barrier: alreadyPlaced,
  copies_read: alreadyPlaced,
};

function alreadyPlaced({ kind }: AnyOp): never {
  throw new Error(`a kernel with ${kind} is placed already`);
}

const layoutRules: OpRules<[LayoutContext], void> = {
  ...valueRules,
  ...tileRules,
  ...memoryRules,
  ...asynchronousRules,
  ...tensorMemoryRules,
  ...synchronizationRules,
  ...controlRules,
  ...placedRules,
};

/** Everything the kernel's ops state about layouts. */
export function stateKernel(surroundings: Surroundings): LayoutContext {
  const walk = (op: AnyOp, context: LayoutContext): void => {
    ruleOf(layoutRules, op)(op, context);
  };
  const context = new LayoutContext(surroundings, walk);
  context.body(surroundings.kernel.body);
  return context;
}
