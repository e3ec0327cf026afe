/** `tcgen05.commit`: an arrival on mbarriers once all that the thread has issued is done. */
import { Knowledge } from "../../happens-before/knowledge.ts";
import { Issue, lanesOf, recordOrdinary } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import {
  barrierBytes,
  barrierPlace,
  changeBarrier,
  findBarrier,
  toldToAll,
} from "../barriers/table.ts";
import type { Collective, CollectiveInstruction, OperandView } from "../collective.ts";
import { inBlock, targetBlocks } from "../copies/completion.ts";
import { noteOnce } from "../reports.ts";
import { keepClock, orderOf } from "./order.ts";
import { enqueue, issuedBefore, toldBy } from "./queue.ts";

/** `tcgen05.commit [mbarrier] {, mask}` */
export function commitment(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const [barrier, mask] = operands;
  if (barrier === undefined) return undefined;
  const multicast = modifiers.includes("multicast::cluster");
  if (multicast && mask === undefined) return undefined;
  return {
    aligned: false,
    run: ({ machine, warp, mask: active }) => {
      const lanes = lanesOf(active);
      if (lanes.length > 1)
        noteOnce(machine, instruction, {
          code: "TW8092",
          message: `${instruction.instruction.opcode} of ${warp.title} is issued by ${lanes.length} lanes`,
          location: instruction.location,
          expected: "one lane, such as elect.sync chooses",
          found: `${lanes.length} arrivals, one a lane`,
        });
      for (const lane of lanes)
        commit({ machine, warp, lane, instruction }, barrier, multicast ? mask : undefined);
      return "done";
    },
  };
}

function commit(issuer: Issuer, barrier: OperandView, mask: OperandView | undefined): void {
  const { machine, warp, lane } = issuer;
  // Compilers in the field hand it an address in shared memory, widened to 64 bits, without saying so.
  const own = barrierPlace(issuer, "shared", barrier.address(warp, lane));
  const blocks = targetBlocks(issuer, own, mask);
  const places = blocks.map((block) => inBlock(own, block));
  for (const place of places) {
    findBarrier(issuer, place);
    recordOrdinary(issuer, place, barrierBytes, "atomic");
  }
  const { items, told, done } = issuedBefore(warp, warp, lane);
  const covered = [...items];
  const order = orderOf(machine, warp);
  const issue = new Issue(issuer, "async");
  const epoch = order?.takeCommit();
  if (order !== undefined && epoch !== undefined)
    keepClock(
      warp,
      epoch,
      covered.reduce((all, item) => all.join(item.done), done.join(order.fenced)),
    );
  enqueue(machine, {
    ...{ warp, lane, issue, isDone: false },
    kinds: [],
    after: covered,
    epochs: epoch === undefined ? [] : [epoch],
    done: covered.reduce((all, item) => all.join(item.done), done),
    run: () => {
      const ends = covered.reduce((all, item) => all.join(toldBy(item)), told);
      const known =
        epoch === undefined ? Knowledge.none : ends.join(issue.finished).withFinished(epoch);
      for (const place of places)
        changeBarrier(issuer, place, toldToAll(known), (each) => each.arrive(1));
    },
  });
}
