/**
 * Pipelines that the compiler makes: loops of products over global memory, written as if memory were near, with the
 * blocks of later steps on their way while earlier ones are multiplied.
 *
 *   plan.ts     which loops, which of their loads, which of their sums
 *   depth.ts    how many stages fit in shared memory
 *   expand.ts   the loop with its copies, barriers and ring
 *   writer.ts   how ops are written
 *
 * The result is a traced kernel like any other: it prints (`--dump` writes it as the stage `pipeline`), is verified, and
 * runs on the simulator, which holds it against the loop as it was written.
 */
import type { AnyOp, Kernel, Region } from "../../ir/node.ts";
import { changeBody, changeEachOp, changeRegions } from "../../ir/rewrite/substitute.ts";
import { verifyKernel } from "../../ir/verify/index.ts";
import { runPasses } from "../../passes/pass-order.ts";
import type { Target } from "../../targets/target.ts";
import { depthOf } from "./depth.ts";
import { expandLoop } from "./expand.ts";
import { planLoops } from "./plan.ts";

/** The kernel with copies ahead where that gains something; itself where nothing does. */
export function pipelineLoops(kernel: Kernel, target: Target): Kernel {
  let pipelined = kernel;
  for (const plan of planLoops(kernel, target)) {
    const depth = depthOf(plan, kernel, target);
    if (depth > 1) pipelined = replaceOp(pipelined, plan.loop, expandLoop(pipelined, plan, depth));
  }
  if (pipelined === kernel) return kernel;
  const simplified = runPasses(pipelined);
  verifyKernel(simplified);
  return simplified;
}

function replaceOp(kernel: Kernel, old: AnyOp, replacement: AnyOp): Kernel {
  const change = (region: Region): Region =>
    changeEachOp(region, (op) => (op === old ? replacement : changeRegions(op, change)));
  return changeBody(kernel, change(kernel.body));
}
