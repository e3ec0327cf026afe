/**
 * Simulation of cluster launch control: a block asks for the work of one that has not begun. Which one it is given, and whether one is given while some are
 * left, the schedule decides; what is taken never begins.
 *
 *   response    the number of the block, or -1, in its first word
 */
import type { Op } from "../../ir/node.ts";
import type { Agent } from "../agent.ts";
import { scatter } from "../memory.ts";
import type { Assembler, SimulationRules } from "../program.ts";
import { barrierAt, viewAt } from "../values.ts";
import { beginIssue, checkWrite, completionOf } from "./asynchronous.ts";
import { touch } from "./memory.ts";
import { readView } from "../memory.ts";
import { arriveOn, barrierReader } from "./synchronization.ts";

/** Bytes of a response. */
const responseBytes = 16;

function takeBlock(op: Op<"take_block">, code: Assembler): void {
  const [response, barrier] = [code.slot(op.operands.response), code.slot(op.operands.barrier)];
  const find = barrierReader(code, op.operands.index);
  code.emit(op, (agent) => {
    const view = viewAt(agent, response);
    const barriers = barrierAt(agent, barrier);
    const element = find(agent, barriers);
    const issue = beginIssue(agent, { writes: true });
    checkWrite(agent, issue, view, "write");
    agent.machine.issue({
      issuer: agent,
      origin: issue.origin,
      complete() {
        scatter(view, Int32Array.of(agent.machine.takeBlock() ?? -1, 0, 0, 0));
        arriveOn(barriers, element, completionOf(issue), issue.origin);
        return issue.origin;
      },
    });
    return "switch";
  });
}

function takenBlock(op: Op<"taken_block">, code: Assembler): void {
  const response = code.slot(op.operands.response);
  const target = code.result(op);
  code.emit(op, (agent: Agent) => {
    const view = viewAt(agent, response);
    touch(agent, view, "read", responseBytes);
    agent.slots[target] = readView(view, 0)[0];
    return "looked";
  });
}

export const launchControlRules: Pick<SimulationRules, "take_block" | "taken_block"> = {
  take_block: takeBlock,
  taken_block: takenBlock,
};
