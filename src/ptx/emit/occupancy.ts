/**
 * Occupancy: how many blocks a multiprocessor should hold at once (`.minnctapersm`), which limits the registers that the assembler may use.
 * A kernel without loops waits for its loads, computes, and stores: while one block waits only others can compute, so too few blocks leave
 * memory or arithmetic idle. Without a limit the assembler uses registers for convenience:
 *
 *   softmax of rows of 8192    tiles need    assembler takes    blocks    limited to    blocks
 *   4 warps                    64            168                3         128           4
 *   8 warps                    32            95                 2         64            4
 *
 * The limit is twice what a thread's tiles need at once, and 64 at least, so that little is spilled for it. Kernels with loops or several
 * program threads overlap waits with work of their own, and ops that need many registers for themselves do not unroll: kernels with any of
 * these, in a branch or not, get no limit.
 */
import type { AnyOp, Kernel, Region, Value } from "../../ir/node.ts";
import { onlyComputes, traitsOf } from "../../ir/traits.ts";
import { operandValues, regionList, walkOps } from "../../ir/traverse.ts";
import { registersPerLane } from "../../layout/algebra/register-layout.ts";
import { parseLayout } from "../../layout/algebra/parse-layout.ts";
import { lanesPerWarp, occupancy } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { clusterSize } from "./grid.ts";

/** Registers of a lane that are never asked back. */
const fewestRegisters = 64;

/** Blocks of the kernel that a processor is to hold at once: what the kernel says, or an estimate; 1 says nothing. */
export function minBlocksPerMultiprocessor(
  kernel: Kernel,
  target: Target,
  sharedBytes: number,
): number {
  const { body, grid, threads, warps, resident } = kernel;
  if (resident !== undefined) return resident;
  let isStraight = true;
  walkOps(body, (op) => (isStraight &&= traitsOf(op).unrolls === "freely"));
  const isAlone = threads.length === 1 && clusterSize(grid) === 1;
  if (!isStraight || !isAlone) return 1;
  const registers = Math.max(fewestRegisters, 2 * registersHeld(kernel));
  const perBlock = warps * lanesPerWarp;
  return Math.max(1, occupancy(target, { threads: perBlock, sharedBytes, registers }).blocks);
}

/** Registers of a lane for the tiles that are held at once, between ops, where they are most; those of branches too. */
function registersHeld({ body, parameters }: Kernel): number {
  const single = new Set<Value>(parameters.map(({ value }) => value));
  walkOps(body, (op) => {
    if (isSingle(op, single)) op.results.forEach((value) => single.add(value));
  });
  const held = new Set<Value>();
  let most = 0;
  const goBack = ({ ops }: Region): void => {
    for (const op of ops.toReversed()) {
      for (const result of op.results) held.delete(result);
      regionList(op).toReversed().forEach(goBack);
      for (const operand of operandValues(op)) if (!single.has(operand)) held.add(operand);
      let registers = 0;
      for (const value of held) registers += registersOf(value);
      most = Math.max(most, registers);
    }
  };
  goBack(body);
  return most;
}

/** Whether the results are one number each: scalars, and what is computed of nothing but single numbers. */
function isSingle(op: AnyOp, single: ReadonlySet<Value>): boolean {
  if (op.results.every(({ type }) => type.kind !== "tile")) return true;
  const operands = operandValues(op);
  return onlyComputes(op) && operands.length > 0 && operands.every((value) => single.has(value));
}

function registersOf({ type }: Value): number {
  if (type.kind !== "tile" || type.layout === undefined) return 0;
  const elements = registersPerLane(parseLayout(type.layout), type.shape);
  return type.dtype.kind === "bool" ? elements : Math.ceil((elements * type.dtype.bits) / 32);
}
