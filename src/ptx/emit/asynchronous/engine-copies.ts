/**
 * Copies that TMA makes, of pieces that are boxes of a tensor map or runs of bytes:
 *
 *   into shared memory                              out of it
 *     arrive.expect_tx  bytes of all pieces          (lanes have met, their writes are committed)
 *     cp.async.bulk… [barrier]                       cp.async.bulk… .bulk_group
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { refOf } from "../../../ir/traverse.ts";
import type { Operand, Register } from "../../module.ts";
import { address, discard, integer, pair } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { insideIndices } from "../memory/bounds-traps.ts";
import { cachePolicy } from "../memory/cache-policy.ts";
import { barrierAddress, emitArrival, peerAddress, releaseOf } from "../synchronization.ts";
import type { BarrierPlace } from "../synchronization.ts";
import { multicastMask, pairLeader, reachesPair } from "./multicast-ranks.ts";

/** A copy taken apart. */
export interface EngineCopy {
  /** What the opcode says of the pieces: that they are boxes of so many axes, or nothing. */
  readonly form: `tensor.${number}d.` | "";
  /** Of all pieces. */
  readonly bytes: number;
  readonly pieces: readonly EnginePiece[];
}

export interface EnginePiece {
  readonly global: Operand;
  readonly shared: Operand;
  /** How many bytes it has, where the opcode asks for that. */
  readonly size: readonly Operand[];
}

export function engineCopyIn(
  context: EmitContext,
  op: Op<"copy_async">,
  plan: () => EngineCopy,
): void {
  const { code, numbers, scope } = context;
  const { barrier } = op.operands;
  if (barrier === undefined) throw new Error("a copy into shared memory has a barrier");
  const { multicast, pair = false } = op.attributes;
  const own = context.barrier(barrier);
  const planned = plan();
  const place = barrierAddress(context, own, insideIndices(context, op)[0]);
  const group = multicast.length > 0 ? multicastMask(context, multicast) : undefined;
  const leader = pair ? pairLeader(context) : undefined;
  const told =
    leader === undefined
      ? address(place.base, place.offset)
      : address(peerAddress(context, place, leader.rank));
  const one = scope.warps === 1 ? electLane(context) : numbers.elected;
  const policy = cachePolicy(context, op);
  const form = `${group === undefined ? "" : ".multicast::cluster"}${pair ? ".cta_group::2" : ""}`;
  const opcode = `cp.async.bulk.${planned.form}shared::cluster.global.mbarrier::complete_tx::bytes${form}${policy.suffix}`;
  const mask = group === undefined ? [] : [code.make("b16", "cvt.u16.u32", group)];
  const operands = planned.pieces.map(({ global, shared, size }) => [
    ...[shared, global, ...size],
    ...[told, ...mask, ...policy.operands],
  ]);
  const start = (): void => {
    for (const box of operands) code.emit(opcode, box);
  };
  const { scale } = own;
  if (group === undefined) {
    const isTold = leader && code.make("pred", "and.pred", one, leader.isOwn);
    if (isTold !== undefined)
      code.guarded(isTold, () => {
        expectBytes(context, place, scale, 2 * planned.bytes);
      });
    code.guarded(one, () => {
      if (isTold === undefined) expectBytes(context, place, scale, planned.bytes);
      start();
    });
    return;
  }
  const skip = code.label("copied");
  code.jumpIf(one, skip, { negated: true, uniform: false });
  expectMulticast(context, op, { place, group, scale, bytes: planned.bytes, leader });
  start();
  code.place(skip);
}

interface Expectation {
  readonly place: BarrierPlace;
  /** The ranks that the multicast reaches, as a mask. */
  readonly group: Register;
  readonly scale: number;
  /** Of what this block copies into one block. */
  readonly bytes: number;
  readonly leader: ReturnType<typeof pairLeader> | undefined;
}

/** Tells barriers what a multicast will bring: where each block copies a part its own, otherwise those of all that it reaches; of pairs those of the leaders. */
function expectMulticast(
  context: EmitContext,
  op: Op<"copy_async">,
  { place, group, scale, bytes, leader }: Expectation,
): void {
  const { code } = context;
  const { parts, multicast } = op.attributes;
  const landing = leader === undefined ? bytes : 2 * bytes;
  // One block copies for both of a pair, or each for those on its side.
  const isForBoth = leader !== undefined && reachesPair(context, multicast);
  const told = isForBoth ? code.make("b32", "and.b32", group, integer(0x5555)) : group;
  const expect = (): void => {
    if (parts === undefined)
      expectEverywhere(op, context, place, { scale, bytes: landing, group: told });
    else expectBytes(context, place, scale, landing * parts);
  };
  if (leader === undefined || (parts === undefined && isForBoth)) return expect();
  const skip = code.label("expected");
  code.jumpIf(leader.isOwn, skip, { negated: true, uniform: false });
  expect();
  code.place(skip);
}

/**
 * pred: whether the lane is the one that starts a warp's copies. Of an elected lane the assembler knows that there is no other, and issues a copy as one
 * instruction; of lane 0 it does not, and makes a loop of twenty over all lanes that might be asked.
 */
export function electLane({ code }: EmitContext): Register {
  const elected = code.register("pred");
  code.emit("elect.sync", [pair(discard, elected), integer(-1)]);
  return elected;
}

/** Tells the barrier how many bytes will land, and arrives once for the copy. */
export function expectBytes(
  context: EmitContext,
  barrier: BarrierPlace,
  scale: number,
  bytes: number,
): void {
  const { code } = context;
  const place = address(barrier.base, barrier.offset);
  if (scale === 1) {
    code.emit("mbarrier.arrive.expect_tx.shared::cta.b64", [discard, place, integer(bytes)]);
    return;
  }
  code.emit("mbarrier.expect_tx.relaxed.cta.shared::cta.b64", [place, integer(bytes)]);
  emitArrival(context, barrier, scale);
}

/** The same on the barrier of every block that a multicast reaches. */
function expectEverywhere(
  op: Op<"copy_async">,
  context: EmitContext,
  { base, offset }: BarrierPlace,
  {
    scale,
    bytes,
    group,
  }: { readonly scale: number; readonly bytes: number; readonly group: Register },
): void {
  const { code } = context;
  const release = releaseOf(op);
  const own = code.make("b32", "add.u32", base, integer(offset));
  const left = code.make("b32", "mov.b32", group);
  const again = code.label("receiver");
  code.place(again);
  const reversed = code.make("b32", "brev.b32", left);
  const rank = code.make("b32", "clz.b32", reversed);
  const remote = code.make("b32", "mapa.shared::cluster.u32", own, rank);
  if (scale === 1)
    code.emit(`mbarrier.arrive.expect_tx${release}.shared::cluster.b64`, [
      discard,
      address(remote),
      integer(bytes),
    ]);
  else {
    code.emit("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64", [
      address(remote),
      integer(bytes),
    ]);
    code.emit(`mbarrier.arrive${release}.shared::cluster.b64`, [
      discard,
      address(remote),
      integer(scale),
    ]);
  }
  const lower = code.make("b32", "sub.u32", left, integer(1));
  code.emit("and.b32", [left, left, lower]);
  const more = code.make("pred", "setp.ne.u32", left, integer(0));
  code.jumpIf(more, again, { uniform: false });
}

type Reduction = Op<"copy_async">["attributes"]["reduction"];

/** What bulk copies combine, by the name of the format; bits where the operation knows nothing else. Tensor copies have it in their maps. */
function reductionType(reduction: Reduction, { name, bits, kind }: DType): string {
  if (reduction === "and" || reduction === "or" || reduction === "xor") return `.b${bits}`;
  if (kind === "float") return reduction === "add" && bits === 16 ? `.noftz.${name}` : `.${name}`;
  // The sum of signed numbers of 64 bits is that of unsigned ones.
  const isSigned = kind === "signed" && !(reduction === "add" && bits === 64);
  return `.${isSigned ? "s" : "u"}${bits}`;
}

function storeOpcode(
  { attributes: { reduction }, operands }: Op<"copy_async">,
  form: EngineCopy["form"],
  cacheHint: string,
): string {
  const way = `async.bulk.${form}global.shared::cta`;
  if (reduction === "none") return `cp.${way}.bulk_group${cacheHint}`;
  if (form !== "") return `cp.reduce.${way}.${reduction}.bulk_group${cacheHint}`;
  const type = reductionType(reduction, refOf(operands.source).dtype);
  return `cp.reduce.${way}.bulk_group${cacheHint}.${reduction}${type}`;
}

export function engineCopyOut(
  context: EmitContext,
  op: Op<"copy_async">,
  plan: () => EngineCopy,
): void {
  const { code, numbers, scope } = context;
  const planned = plan();
  const policy = cachePolicy(context, op);
  const opcode = storeOpcode(op, planned.form, policy.suffix);
  code.guarded(scope.warps === 1 ? numbers.leader : numbers.elected, () => {
    for (const { global, shared, size } of planned.pieces)
      code.emit(opcode, [global, shared, ...size, ...policy.operands]);
  });
}
