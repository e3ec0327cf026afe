/**
 * A product as a loop of one instruction, where the placed kernel says that it closes several groups (`lower/product-groups.ts`):
 *
 *   $products:
 *       wgmma.fence; wgmma …; wgmma.commit_group      a group for each instruction
 *       descriptors go on by a step, and from the second one on sums are added
 *       @%p bra $products
 */
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";

/** A descriptor that a loop moves on. */
export interface MovedDescriptor {
  readonly base: Register;
  /** What is added to it for the next step. */
  readonly step: number;
}

/** The instructions of a product, each a group. */
export function emitRolled(
  { code }: EmitContext,
  steps: number,
  factors: readonly MovedDescriptor[],
  adds: Operand | undefined,
  product: (factors: readonly Register[], adds: Operand) => void,
): void {
  const moved = factors.map(({ base }) => code.make("b64", "mov.b64", base));
  const adding = adds && code.make("pred", "mov.pred", adds);
  const count = code.constant("b32", 0);
  const head = code.label("products");
  code.place(head);
  code.pragma("nounroll");
  code.emit("wgmma.fence.sync.aligned", [], "registers enter the asynchronous proxy");
  product(moved, adding ?? integer(1));
  code.emit("wgmma.commit_group.sync.aligned");
  for (const [index, register] of moved.entries())
    code.emit("add.s64", [register, register, integer(factors[index]?.step ?? 0)]);
  if (adding !== undefined) code.emit("mov.pred", [adding, integer(1)]);
  code.emit("add.u32", [count, count, integer(1)]);
  code.jumpIf(code.make("pred", "setp.lt.u32", count, integer(steps)), head);
}
