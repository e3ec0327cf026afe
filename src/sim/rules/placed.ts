/** Simulation of ops of placed kernels, which change where things are and never what they are. */
import type { Op } from "../../ir/node.ts";
import type { placedOps } from "../../ir/ops/placed.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { elementsAt } from "../values.ts";
import { countOf, dtypeOf } from "./elementwise.ts";

function convertLayout(op: Op<"convert_layout">, code: Assembler): void {
  const { source } = op.operands;
  const [slot, target] = [code.slot(source), code.result(op)];
  const pool = code.pool(dtypeOf(source), countOf(source));
  code.emit(op, (agent) => {
    const elements = pool.take();
    elements.set(elementsAt(agent, slot) as never);
    agent.slots[target] = elements;
    return "proceed";
  });
}

function meaningless(): void {
  // A program thread is one to the simulator: nothing of it lags behind.
}

export const placedRules: Pick<SimulationRules, keyof typeof placedOps> = {
  convert_layout: convertLayout,
  alloc_scratch: () => {
    // What ops do in their scratch is no part of their meaning.
  },
  lane_barrier: meaningless,
  barriers_ready: meaningless,
  products_wait: meaningless,
  cluster_barrier: meaningless,
  copies_read: meaningless,
};
