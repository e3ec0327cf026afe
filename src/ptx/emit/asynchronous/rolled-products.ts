/**
 * A product as a loop of one instruction, where the kernel asks for it (`rolled`). The assembler takes longer for each wgmma than for
 * hundreds of other instructions, and four of them as one in a loop are as fast on a GPU:
 *
 *   $products:
 *       wgmma.fence; wgmma …; wgmma.commit_group      a group for each instruction
 *       descriptors go on by a step, and from the second one on sums are added
 *       @%p bra $products
 *
 * A group that were closed behind the loop would take an instruction of its own there, which costs tensor cores 3 %. So a product is as
 * many groups as instructions, and waits count those. They can only where all products of a kernel are alike; otherwise none is rolled.
 */
import type { Kernel, Op } from "../../../ir/node.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { wgmmaRows } from "../../../layout/model/products.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";

/** Groups that may be left running by a wait. */
const mostPending = 7;

const known = new WeakMap<Kernel, number>();

/** Groups that each product of a kernel is. */
export function groupsOfProduct({ kernel, scope }: EmitContext): number {
  const found = known.get(kernel) ?? countGroups(kernel, wgmmaRows(scope.warps));
  known.set(kernel, found);
  return found;
}

function countGroups({ body }: Kernel, rows: number): number {
  const counts = new Set<number>();
  let pending = 1;
  walkOps(body, (op) => {
    if (op.kind === "wgmma") counts.add(instructionsOf(op, rows));
    else if (op.kind === "dot" && op.attributes.instruction === "wgmma") counts.add(1);
    else if (op.kind === "wgmma_wait" || op.kind === "products_wait")
      pending = Math.max(pending, op.attributes.pending);
  });
  const [count = 1] = counts;
  return counts.size === 1 && count * pending <= mostPending ? count : 1;
}

/** Instructions of a product that may be a loop; 1 for any other. */
function instructionsOf({ operands, attributes }: Op<"wgmma">, rows: number): number {
  const { a, b, accumulator, metadata } = operands;
  if (attributes.rolled !== true || metadata !== undefined) return 1;
  if (a.type.kind !== "ref" || b.type.kind !== "ref" || accumulator.type.kind !== "inflight")
    return 1;
  const [depth] = b.type.shape;
  const [height] = accumulator.type.shape;
  if (typeof depth !== "number" || height !== rows) return 1;
  return depth / (256 / a.type.dtype.bits);
}

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
  adds: Register | undefined,
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
