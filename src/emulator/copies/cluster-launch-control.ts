/**
 * Cluster launch control: a cluster asks for the work of one that has not started, which then never starts.
 *
 *   try_cancel.async [response], [mbar]      16 bytes by the asynchronous proxy, counted at the mbarrier
 *   query_cancel.is_canceled p, q            whether one was left
 *   query_cancel.get_first_ctaid {x, y, z, _}, q      the index of its first block
 *
 * Which of those left is given, the seed decides. The bytes mean nothing to a program; here they are the index and a mark.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { forLanes, Issue } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import type {
  BlockView,
  Collective,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
  Place,
} from "../collective.ts";
import { byteStates } from "../memory.ts";
import { reportOnce } from "../reports.ts";
import { completeAtBarriers, completionBarriers, inBlock } from "./completion.ts";

const responseBytes = 16;
/** In the last word of a response. */
const marks = { canceled: 0x434c_4301, failed: 0x434c_4300 } as const;

/** Clusters, by their blocks, that have seen that nothing was left. */
const exhausted = new WeakSet<readonly BlockView[]>();

function requestAgain({ machine, warp, instruction }: Issuer): void {
  if (!exhausted.has(warp.block.cluster)) return;
  reportOnce(machine, instruction, {
    code: "TW8077",
    message: `${warp.title} asks for another cluster after a request that failed`,
    location: instruction.location,
    expected: "no request once is_canceled was false",
    found: instruction.instruction.opcode,
  });
}

/** `[response], [mbar]` */
function request(instruction: CollectiveInstruction): Collective | undefined {
  const [response, barrier] = instruction.operands;
  if (response === undefined || barrier === undefined) return undefined;
  const toAll = instruction.modifiers.includes("multicast::cluster::all");
  return forLanes(instruction, (issuer) => {
    const { machine, warp, lane } = issuer;
    requestAgain(issuer);
    const address = response.address(warp, lane);
    const access = { warp, instruction, lane, kind: "shared", address } as const;
    const own = machine.resolve({ ...access, bytes: responseBytes, alignment: responseBytes });
    const blocks = toAll ? warp.block.cluster : [warp.block];
    const places = toAll ? blocks.map((block) => inBlock(own, block)) : [own];
    const barriers = completionBarriers(issuer, barrier, blocks, toAll);
    const issue = new Issue(issuer, "async");
    for (const place of places) issue.record(place, responseBytes, "write");
    const answer = (): void => {
      const canceled = machine.cancelCluster();
      for (const place of places) writeResponse(place, canceled);
    };
    completeAtBarriers(issue, answer, barriers, responseBytes);
  });
}

function writeResponse(
  { views, offset }: Place,
  canceled: readonly [number, number, number] | undefined,
): void {
  const view = new DataView(views.bytes.buffer, views.bytes.byteOffset + offset, responseBytes);
  const words = [
    ...(canceled ?? [0, 0, 0]),
    canceled === undefined ? marks.failed : marks.canceled,
  ];
  words.forEach((word, at) => {
    view.setUint32(4 * at, word, true);
  });
  views.states.fill(byteStates.written, offset, offset + responseBytes);
}

function wordOf(bits: bigint, at: number): number {
  return Number((bits >> BigInt(32 * at)) & 0xffff_ffffn);
}

/** Whether a response gives a cluster. */
function isCanceled({ instruction, warp }: Issuer, bits: bigint): boolean {
  const mark = wordOf(bits, 3);
  if (mark === marks.canceled) return true;
  if (mark === marks.failed) return false;
  throw new TilewrightError({
    code: "TW8076",
    message: `${warp.title} queries 128 bits that no request has written`,
    location: instruction.location,
    expected: "the 16 bytes of a response, once its mbarrier has told",
    found: `0x${bits.toString(16)}`,
  });
}

function query(instruction: CollectiveInstruction): Collective | undefined {
  const [result, response] = instruction.operands;
  if (result === undefined || response === undefined) return undefined;
  return forLanes(instruction, (issuer) => {
    const { warp, lane } = issuer;
    const found = isCanceled(issuer, response.wide(warp, lane));
    if (!found) exhausted.add(warp.block.cluster);
    result.setWord(warp, lane, found ? 1 : 0);
  });
}

/** What a register holds that nobody gives a value. */
function poison({ warp, lane }: Issuer, operand: OperandView): void {
  if (operand.operand.kind !== "register") return;
  operand.setWord(warp, lane, 0xdead_beef);
  const at = operand.defined(warp);
  warp.words[at] = (warp.words[at] ?? 0) & ~(1 << lane);
}

/** The first block's index: one coordinate, or `{x, y, z, _}`, of which the last is left open. */
function firstBlock(instruction: CollectiveInstruction, axis: string): Collective | undefined {
  const [result, response] = instruction.operands;
  if (result === undefined || response === undefined) return undefined;
  const axes =
    axis === "" ? [0, 1, 2] : ["x", "y", "z"].flatMap((each, at) => (each === axis ? [at] : []));
  const results = axis === "" ? result.elements : [result];
  return forLanes(instruction, (issuer) => {
    const { machine, warp, lane } = issuer;
    const bits = response.wide(warp, lane);
    if (!isCanceled(issuer, bits)) {
      reportOnce(machine, instruction, {
        code: "TW8076",
        message: `${warp.title} asks for the block of a request that failed`,
        location: instruction.location,
        expected: "get_first_ctaid only where is_canceled is true",
        found: instruction.instruction.opcode,
      });
      for (const each of results) poison(issuer, each);
      return;
    }
    results.forEach((each, at) => {
      const word = axes[at];
      if (word === undefined) poison(issuer, each);
      else if (each.operand.kind === "register") each.setWord(warp, lane, wordOf(bits, word));
    });
  });
}

export const clusterLaunchControl: CollectiveRule = (instruction) => {
  const [name, operation = ""] = instruction.modifiers;
  if (name === "try_cancel") return request(instruction);
  if (name !== "query_cancel") return undefined;
  if (operation === "is_canceled") return query(instruction);
  const [first, axis = ""] = operation.split("::");
  return first === "get_first_ctaid" ? firstBlock(instruction, axis) : undefined;
};
