/** How a copy ends: by bytes that an mbarrier counts, or in a group that its lane waits for. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { recordOrdinary } from "../asynchronous.ts";
import type { Issue, Issuer } from "../asynchronous.ts";
import {
  barrierBytes,
  barrierPlace,
  changeBarrier,
  findBarrier,
  toldToAll,
} from "../barriers/table.ts";
import type { BlockView, OperandView, Place } from "../collective.ts";
import { reportOnce } from "../reports.ts";
import { groupsOf } from "./groups.ts";
import type { Work } from "./groups.ts";

/** The blocks that a copy writes to: those of a multicast's mask, or the one its address lies in. */
export function targetBlocks(
  { warp, lane, instruction }: Issuer,
  destination: Place,
  mask: OperandView | undefined,
): readonly BlockView[] {
  if (mask === undefined) return destination.block === undefined ? [] : [destination.block];
  const bits = mask.word(warp, lane) & 0xffff;
  const { cluster } = warp.block;
  if (bits === 0 || bits >= 2 ** cluster.length)
    throw new TilewrightError({
      code: "TW8054",
      message: `the mask 0x${bits.toString(16)} of a multicast does not fit a cluster of ${cluster.length}`,
      location: instruction.location,
      expected: `bits 0 to ${cluster.length - 1}, one of them at least`,
      found: `0b${bits.toString(2)}`,
    });
  return cluster.filter(({ rank }) => ((bits >> rank) & 1) === 1);
}

/** The same place in the shared memory of another block. */
export function inBlock(place: Place, block: BlockView): Place {
  return { ...place, block, views: block.shared };
}

/**
 * The barriers that a copy tells, one a target; each must be there when the copy is issued. A copy of a pair of blocks may
 * tell that of either block, its multicast those of the even or of the odd blocks, as the address says:
 *
 *   targets 0 1 2 3, multicast, barrier of block 0    tells 0 0 2 2
 */
export function completionBarriers(
  issuer: Issuer,
  barrier: OperandView,
  targets: readonly BlockView[],
  multicast: boolean,
): readonly Place[] {
  const { modifiers } = issuer.instruction;
  const own = barrierPlace(issuer, "shared", barrier.address(issuer.warp, issuer.lane));
  const isPair = modifiers.includes("cta_group::2");
  if (!multicast && (isPair || modifiers.includes("cta_group::1")))
    requireReach(issuer, own, targets, isPair);
  const places = multicast
    ? targets.map((block) => inBlock(own, isPair ? ofPair(block, own) : block))
    : [own];
  for (const place of places) {
    findBarrier(issuer, place);
    recordOrdinary(issuer, place, barrierBytes, "atomic");
  }
  return places;
}

/** Of the pair that a block is in, the one on the same side as where a barrier lies. */
function ofPair(block: BlockView, { block: side }: Place): BlockView {
  const rank = (block.rank & ~1) | ((side?.rank ?? 0) & 1);
  return block.cluster[rank] ?? block;
}

/** The barrier is in the block that the copy writes to, or in the other one of its pair. */
function requireReach(
  { instruction, warp }: Issuer,
  { block }: Place,
  targets: readonly BlockView[],
  isPair: boolean,
): void {
  const [target] = targets;
  const ranks = [target?.rank ?? 0, ...(isPair ? [(target?.rank ?? 0) ^ 1] : [])];
  if (block !== undefined && ranks.includes(block.rank)) return;
  throw new TilewrightError({
    code: "TW8094",
    message: `${instruction.instruction.opcode} of ${warp.title} would tell a barrier of another block`,
    location: instruction.location,
    expected: `a barrier of block ${ranks.join(" or ")} of the cluster`,
    found: `one of block ${block?.rank ?? "none"}`,
  });
}

/**
 * Runs a copy later, as a whole, and then counts its bytes at the barrier of each target. `user` is the block
 * whose shared memory it needs.
 */
export function completeAtBarriers(
  issue: Issue,
  move: () => void,
  barriers: readonly Place[],
  bytes: number,
  user: BlockView = issue.issuer.warp.block,
): void {
  const { machine } = issue.issuer;
  machine.schedule(() => {
    reportLeftOver(issue, user);
    move();
    const told = toldToAll(issue.finished);
    for (const place of barriers)
      changeBarrier(issue.issuer, place, told, (barrier) => barrier.complete(bytes));
  });
}

/** Reads the source later, and writes later still. */
export function completeInGroup(issue: Issue, read: () => void, write: () => void): void {
  const { machine, warp, lane } = issue.issuer;
  const work: Work = { issue, sourceRead: false, done: false };
  groupsOf("bulk", warp).add(lane, work);
  machine.schedule(() => {
    reportLeftOver(issue, warp.block);
    read();
    work.sourceRead = true;
    machine.changed();
    machine.schedule(() => {
      write();
      work.done = true;
      machine.changed();
    });
  });
}

/** Reports a copy that uses the shared memory of a block that has ended; checks have found that where the block ended. */
function reportLeftOver({ issuer }: Issue, block: BlockView): void {
  if (issuer.machine.checks || block.warps.some(({ live }) => live !== 0)) return;
  const { opcode } = issuer.instruction.instruction;
  reportUnawaited(issuer, `${opcode} uses the shared memory of a block that has ended`);
}

function reportUnawaited(
  { machine, warp, instruction }: Issuer,
  found: string,
  remedy?: string,
): void {
  reportOnce(machine, instruction, {
    code: "TW8056",
    message: `${instruction.instruction.opcode} issued by ${warp.title} is not awaited`,
    location: instruction.location,
    expected: "a wait for it before its block ends",
    found,
    remedy,
  });
}
