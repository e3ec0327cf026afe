/** Tensor memory is a GPU's own: kernels that name it are refused. */
import type { AnyOp } from "../../ir/node.ts";
import type { tensorMemoryOps } from "../../ir/ops/tensor-memory.ts";
import type { Lowering } from "./lowering.ts";
import type { LoweringRules } from "./regions.ts";

function refused(op: AnyOp, lowering: Lowering): never {
  return lowering.refuse(op, "tensor memory");
}

export const tensorMemoryRules: Pick<LoweringRules, keyof typeof tensorMemoryOps> = {
  alloc_tmem: refused,
  tmem_member: refused,
  tmem_load: refused,
  tmem_store: refused,
  tcgen05_mma: refused,
  tcgen05_copy: refused,
  tcgen05_commit: refused,
};
