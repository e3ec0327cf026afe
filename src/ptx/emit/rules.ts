/** One emission rule for every op kind. */
import type { OpRules } from "../../ir/ops.ts";
import { asynchronousRules } from "./asynchronous/rules.ts";
import type { EmitContext } from "./context.ts";
import { controlRules } from "./control.ts";
import { dot } from "./dot.ts";
import { scaledDot } from "./scaled-dot.ts";
import { valueRules } from "./elementwise/rules.ts";
import { blockIndex, clusterRank, gridExtent, scalarOf } from "./grid.ts";
import { memoryRules } from "./memory/rules.ts";
import { freshValue, moveTogether } from "./moves.ts";
import { placedRules } from "./placed.ts";
import { synchronizationRules } from "./synchronization.ts";
import { iota, tileRules } from "./tiles/rules.ts";
import { inlinePtx } from "./inline.ts";
import { tensorMemoryRules } from "./asynchronous/tensor-memory.ts";

export const emitRules: OpRules<[EmitContext], void> = {
  ...valueRules,
  ...tileRules,
  ...memoryRules,
  ...asynchronousRules,
  ...tensorMemoryRules,
  ...synchronizationRules,
  ...controlRules,
  ...placedRules,
  dot,
  scaled_dot: scaledDot,
  iota,
  inline_ptx: inlinePtx,
  inline_ptx_memory: inlinePtx,
  is_simulated() {
    throw new Error("what the simulator does is left out of compiled kernels");
  },
  optimization_barrier(op, context) {
    op.operands.values.forEach((value, position) => {
      const source = value.type.kind === "tile" ? context.tile(value) : context.scalar(value);
      const copy = freshValue(context, op.results[position] ?? value);
      moveTogether(context, [source], [copy]);
      context.define(op.results[position], copy);
    });
  },

  block_index(op, context) {
    context.define(op.results[0], scalarOf(blockIndex(context, op.attributes.axis)));
  },
  grid_size(op, context) {
    context.define(op.results[0], scalarOf(gridExtent(context, op.attributes.axis)));
  },
  cluster_rank(op, context) {
    context.define(op.results[0], scalarOf(clusterRank(context, op.attributes.axis)));
  },
  thread_index(op, context) {
    context.define(op.results[0], scalarOf(context.numbers.thread));
  },
  size(op, context) {
    context.define(op.results[0], scalarOf(context.size(op.attributes.of)));
  },
};
