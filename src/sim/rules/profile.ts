/** Marks of a profiled kernel on the simulator, where time is counted in steps of the machine. */
import type { Op } from "../../ir/node.ts";
import { headSlots, ringsOfWarps, slotWords } from "../../ir/profile-ring.ts";
import type { Agent } from "../agent.ts";
import type { Assembler } from "../program.ts";
import { isView } from "../view.ts";
import type { View } from "../view.ts";

export function profileMark(op: Op<"profile_mark">, code: Assembler): void {
  const { ring } = op.operands;
  if (ring === undefined) return;
  const slot = code.slot(ring);
  const warps = ringsOfWarps(code.kernel) ? code.kernel.warps : 1;
  const perBlock = warps * code.kernel.threads.length;
  code.emit(op, (agent) => {
    const view = agent.slots[slot];
    if (!isView(view)) throw new Error("a profile's rings are no array");
    const { coordinates, rank } = agent.block;
    const block = agent.machine.grid.blockNumber(coordinates, rank);
    const first = block * perBlock + agent.thread * warps;
    // What a thread does, all of its warps do.
    const [from, to] = agent.warp === undefined ? [0, warps] : [agent.warp, agent.warp + 1];
    for (let warp = from; warp < to; warp += 1) write(op, agent, ringWords(view, first + warp));
    return "proceed";
  });
}

function ringWords({ memory, sizes }: View, ring: number): Uint32Array {
  const words = (sizes[1] ?? 0) * slotWords;
  const { buffer, byteOffset } = memory.bytes;
  return new Uint32Array(buffer, byteOffset + 4 * words * ring, words);
}

function write({ attributes }: Op<"profile_mark">, agent: Agent, ring: Uint32Array): void {
  const { edge, site = 0 } = attributes;
  const { steps } = agent.machine.statistics;
  const time = [steps >>> 0, Math.floor(steps / 2 ** 32)];
  if (edge === "open") ring.set([0, 0, ...time, ...time]);
  else if (edge === "close") ring.set([...time, ...time], slotWords + 2);
  else {
    const count = ring[1] ?? 0;
    const slots = ring.length / slotWords - headSlots;
    ring.set([site + 1, 0, ...time], slotWords * (headSlots + (count % slots)));
    ring[1] = count + 1;
  }
}
