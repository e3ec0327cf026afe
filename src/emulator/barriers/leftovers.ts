/**
 * What barriers hold when they end, with their block or before it. Several phases behind the last wait are reported of any PTX: no wait
 * could have told them apart. A phase with some of its arrivals is legal there, since hardware forgets it with the block; in a kernel of
 * ours it is reported, as the simulator does: whoever arrives counts on a phase that completes.
 *
 *   init 2     arrive     arrive, phase 0     wait     arrive     end      one of two arrivals is left over
 */
import type { BlockView, MachineView } from "../collective.ts";
import { reportOnce } from "../reports.ts";
import { barriersOf } from "./table.ts";
import type { BarrierRecord } from "./table.ts";

/** More than this make a report longer, not clearer. */
const shownArrivals = 4;

/** Reports what the barriers of a block hold when nobody can arrive on them any more. */
export function reportLeftovers(machine: MachineView, block: BlockView): void {
  for (const [offset, record] of barriersOf(block))
    reportBarrierLeftovers(machine, block, offset, record);
}

/** The same of one barrier, which ends. */
export function reportBarrierLeftovers(
  machine: MachineView,
  block: BlockView,
  offset: number,
  record: BarrierRecord,
): void {
  reportExtraPhases(machine, block, offset, record);
  if (machine.isOwn) reportArrivals(machine, block, offset, record);
}

/** Phases that nobody can have told apart. */
function reportExtraPhases(
  machine: MachineView,
  block: BlockView,
  offset: number,
  { barrier, awaited, changedBy }: BarrierRecord,
): void {
  const extra = barrier.phase - awaited;
  if (extra < 2 || changedBy === undefined) return;
  const { naming } = machine;
  reportOnce(machine, changedBy, {
    code: "TW8066",
    message: `phases of an mbarrier of ${naming.block(block.index)} ended that nobody waited for`,
    location: changedBy.location,
    expected: "at most one phase that ended behind the last wait",
    found: `${extra}, ${naming.shared(offset)}`,
  });
}

/** Arrivals of a phase that never ended. Where bytes are outstanding, it is the copy that nobody waited for. */
function reportArrivals(
  machine: MachineView,
  block: BlockView,
  offset: number,
  { barrier: { phase, expected, pending, transactions }, arrivedBy }: BarrierRecord,
): void {
  const [first] = arrivedBy;
  if (first === undefined || transactions !== 0) return;
  const { naming } = machine;
  reportOnce(machine, first.instruction, {
    code: "TW8067",
    message: `arrivals are left over on ${naming.shared(offset)}, of ${naming.block(block.index)}`,
    location: first.instruction.location,
    expected: `${expected} arrivals of warps and copies, which end phase ${phase}`,
    found: `${expected - pending} when the barrier ended`,
    notes: arrivedBy.slice(0, shownArrivals).map(({ warp, instruction }) => ({
      message: `${instruction.instruction.opcode} of ${warp.title} arrived`,
      location: instruction.location,
    })),
  });
}
