/** Assembles a kernel for one launch; see `program.ts` for what comes out. */
import type { Kernel } from "../ir/node.ts";
import type { DimensionValues } from "../ir/size.ts";
import { Assembler } from "./program.ts";
import type { Program } from "./agent.ts";
import type { Observer } from "./program.ts";
import { waitForCopies } from "./rules/asynchronous.ts";
import { requireNoArrival } from "./rules/execution-barriers.ts";
import { simulationRules } from "./rules/index.ts";

export function assemble(kernel: Kernel, dimensions: DimensionValues, observe?: Observer): Program {
  const code = new Assembler(kernel, simulationRules, dimensions, observe);
  code.region(kernel.body);
  const ending = kernel.body.ops.at(-1);
  if (ending === undefined) throw new Error("a region ends with yield");
  code.emit(ending, (agent) => {
    // No block ends while its shared memory is read.
    const waiting = waitForCopies(agent, 0, true);
    if (waiting !== undefined) return waiting;
    requireNoArrival(agent, agent.block.cluster.syncPoint);
    agent.ended = true;
    agent.machine.checker?.agentEnded(agent);
    agent.block.threadEnded(agent, ending);
    return "ended";
  });
  return code.finish();
}
