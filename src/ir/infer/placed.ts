/** Inference for ops of placed kernels; layouts are no part of it. */
import { u8 } from "../../formats/dtype.ts";
import type { placedOps } from "../ops/placed.ts";
import { refType, tileType } from "../types.ts";
import { tileOperand } from "./checks.ts";
import type { InferRules } from "./inference-input.ts";

export const placedRules: InferRules<keyof typeof placedOps> = {
  convert_layout(draft) {
    const { dtype, shape } = tileOperand(draft, "the operand", draft.operands.source);
    return [tileType(dtype, shape)];
  },
  alloc_scratch: ({ attributes: { bytes, agents } }) => [refType("smem", u8, [agents, bytes])],
  lane_barrier: () => [],
  barriers_ready: () => [],
  products_wait: () => [],
  cluster_barrier: () => [],
  copies_read: () => [],
};
