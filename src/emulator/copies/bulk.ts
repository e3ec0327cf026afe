/** Bulk copies of plain stretches of memory, between global and shared memory and between blocks. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { forLanes, Issue } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import type {
  AddressKind,
  Collective,
  CollectiveInstruction,
  OperandView,
  Place,
} from "../collective.ts";
import { CarriedBytes } from "./bytes.ts";
import {
  completeAtBarriers,
  completeInGroup,
  completionBarriers,
  inBlock,
  targetBlocks,
} from "./completion.ts";
import { checkWritten } from "../reports.ts";
import { acceptsReduction, reduceBytes } from "./reduction.ts";
import type { ReductionOperation, ReductionType } from "./reduction.ts";

const unit = 16;
/** Of a mask that has a bit for each byte of a unit. */
const allBytes = 0xffff;

export interface BulkReduction {
  readonly operation: ReductionOperation;
  readonly type: ReductionType;
}

function sizeOf({ warp, lane, instruction }: Issuer, operand: OperandView): number {
  const bytes = operand.word(warp, lane);
  if (bytes % unit === 0) return bytes;
  throw new TilewrightError({
    code: "TW8052",
    message: `${instruction.instruction.opcode} of ${bytes} bytes`,
    location: instruction.location,
    expected: `a multiple of ${unit} bytes`,
    found: `${bytes} bytes`,
  });
}

function placeOf(issuer: Issuer, operand: OperandView, kind: AddressKind, bytes: number): Place {
  const { machine, warp, lane, instruction } = issuer;
  const address = operand.address(warp, lane);
  return machine.resolve({ warp, instruction, lane, kind, address, bytes, alignment: unit });
}

/** Puts what was carried at its place, or combines it with what is there. */
export function deliver(
  carried: CarriedBytes,
  { views, offset }: Place,
  reduction: BulkReduction | undefined,
): void {
  const length = carried.data.length;
  if (reduction === undefined) carried.put(0, views, offset, length);
  else {
    const target = views.bytes.subarray(offset, offset + length);
    reduceBytes(reduction.operation, reduction.type, target, carried.data);
  }
}

/** Into shared memory, completing on an mbarrier: `[dst], [src], size, [mbar] {, mask} {, policy}`. */
export function bulkLoad(
  instruction: CollectiveInstruction,
  source: AddressKind,
  reduction: BulkReduction | undefined,
): Collective | undefined {
  const [to, from, size, barrier, fifth] = instruction.operands;
  if (to === undefined || from === undefined || size === undefined || barrier === undefined)
    return undefined;
  const multicast = instruction.modifiers.includes("multicast::cluster");
  return forLanes(instruction, (issuer) => {
    const bytes = sizeOf(issuer, size);
    const start = placeOf(issuer, from, source, bytes);
    const own = placeOf(issuer, to, "shared", bytes);
    const blocks = targetBlocks(issuer, own, multicast ? fifth : undefined);
    const targets = blocks.map((block) => inBlock(own, block));
    const barriers = completionBarriers(issuer, barrier, blocks, multicast);
    const issue = new Issue(issuer, "async");
    issue.record(start, bytes, "read");
    for (const target of targets)
      issue.record(target, bytes, reduction === undefined ? "write" : "atomic");
    const move = (): void => {
      const carried = new CarriedBytes(bytes);
      carried.take(0, start.views, start.offset, bytes);
      for (const target of targets) deliver(carried, target, reduction);
    };
    completeAtBarriers(issue, move, barriers, bytes);
  });
}

/** Calls `put` for each stretch of bytes that a mask of 16, a bit for each, has written. */
function forEachWritten(
  mask: number,
  bytes: number,
  put: (start: number, length: number) => void,
): void {
  if (mask === allBytes) {
    put(0, bytes);
    return;
  }
  for (let at = 0; at < bytes; at++) {
    if (((mask >>> (at % unit)) & 1) === 0) continue;
    const start = at;
    while (at + 1 < bytes && ((mask >>> ((at + 1) % unit)) & 1) === 1) at++;
    put(start, at + 1 - start);
  }
}

/** From shared to global memory, in a group: `[dst], [src], size {, policy} {, mask}`. */
export function bulkStore(
  instruction: CollectiveInstruction,
  reduction: BulkReduction | undefined,
): Collective | undefined {
  const [to, from, size] = instruction.operands;
  if (to === undefined || from === undefined || size === undefined) return undefined;
  const masked = instruction.modifiers.includes("cp_mask")
    ? instruction.operands.at(-1)
    : undefined;
  return forLanes(instruction, (issuer) => {
    const bytes = sizeOf(issuer, size);
    const mask = masked === undefined ? allBytes : masked.word(issuer.warp, issuer.lane) & allBytes;
    const start = placeOf(issuer, from, "shared", bytes);
    const end = placeOf(issuer, to, "global", bytes);
    const issue = new Issue(issuer, "async");
    issue.record(start, bytes, "read");
    forEachWritten(mask, bytes, (at, length) => {
      const place = { ...end, offset: end.offset + at };
      issue.record(place, length, reduction === undefined ? "write" : "atomic");
    });
    const carried = new CarriedBytes(bytes);
    completeInGroup(
      issue,
      () => {
        checkWritten(issuer.machine, issuer.warp, instruction, start, bytes);
        carried.take(0, start.views, start.offset, bytes);
      },
      () => {
        if (masked === undefined) deliver(carried, end, reduction);
        else
          forEachWritten(mask, bytes, (at, length) => {
            carried.put(at, end.views, end.offset + at, length);
          });
      },
    );
  });
}

/** `[src], size`: reads nothing that a program could tell. */
export function bulkPrefetch(instruction: CollectiveInstruction): Collective | undefined {
  const [from, size] = instruction.operands;
  if (from === undefined || size === undefined) return undefined;
  return forLanes(instruction, (issuer) => {
    placeOf(issuer, from, "global", sizeOf(issuer, size));
  });
}

const bitTypes: { readonly [type: string]: ReductionType } = { b32: "u32", b64: "u64" };
const types: readonly string[] = ["u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64"];

/** The reduction that modifiers name; undefined where it is not defined. */
export function bulkReduction(
  operation: ReductionOperation | undefined,
  typeName: string | undefined,
): BulkReduction | undefined {
  if (operation === undefined || typeName === undefined) return undefined;
  const type = types.includes(typeName) ? (typeName as ReductionType) : bitTypes[typeName];
  return type !== undefined && acceptsReduction(operation, type) ? { operation, type } : undefined;
}
