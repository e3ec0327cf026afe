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
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import { clusterSize } from "../grid.ts";
import { insideIndices } from "../memory/bounds-traps.ts";
import { cachePolicy } from "../memory/cache-policy.ts";
import { barrierAddress, emitArrival, releaseOf } from "../synchronization.ts";
import type { BarrierPlace } from "../synchronization.ts";

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

/** The ranks of a cluster that a multicast reaches, as a mask for rank 0 along its axes, and the shift. */
function multicastMask(context: EmitContext, axes: readonly string[]): Register {
  const { code, kernel, numbers } = context;
  const size = clusterSize(kernel.grid);
  const rank = indexRemainder(code, numbers.block, size);
  // The lowest rank of the group: the own one without its part along the axes.
  let lowest: Register = code.constant("b32", 0);
  let mask = 0;
  for (const other of ranksOf(kernel.grid, axes)) mask |= 1 << other;
  let inner = 1;
  for (const axis of kernel.grid.toReversed()) {
    if (axis.cluster > 1 && !axes.includes(axis.name)) {
      const high = indexQuotient(code, rank, inner);
      const own = indexRemainder(code, high, axis.cluster);
      lowest = code.make("b32", "mad.lo.u32", own, integer(inner), lowest);
    }
    inner *= axis.cluster;
  }
  return code.make("b32", "shl.b32", code.constant("b32", mask), lowest);
}

/** Ranks, relative to the group's lowest, that differ along the axes alone. */
function ranksOf(grid: EmitContext["kernel"]["grid"], axes: readonly string[]): readonly number[] {
  let ranks: readonly number[] = [0];
  let inner = 1;
  for (const axis of grid.toReversed()) {
    if (axes.includes(axis.name)) {
      const step = inner;
      ranks = Array.from({ length: axis.cluster }, (_, index) => index).flatMap((index) =>
        ranks.map((rank) => rank + index * step),
      );
    }
    inner *= axis.cluster;
  }
  return ranks;
}

export function engineCopyIn(
  context: EmitContext,
  op: Op<"copy_async">,
  plan: () => EngineCopy,
): void {
  const { code, numbers, scope } = context;
  const { barrier } = op.operands;
  if (barrier === undefined) throw new Error("a copy into shared memory has a barrier");
  const own = context.barrier(barrier);
  const planned = plan();
  const place = barrierAddress(context, own, insideIndices(context, op)[0]);
  const group =
    op.attributes.multicast.length > 0
      ? multicastMask(context, op.attributes.multicast)
      : undefined;
  const one = scope.warps === 1 ? electLane(context) : numbers.elected;
  const policy = cachePolicy(context, op);
  const opcode = `cp.async.bulk.${planned.form}shared::cluster.global.mbarrier::complete_tx::bytes`;
  const operands = planned.pieces.map(({ global, shared, size }) => [
    shared,
    global,
    ...size,
    address(place.base, place.offset),
  ]);
  if (group === undefined) {
    code.guarded(one, () => {
      expectBytes(context, place, own.scale, planned.bytes);
      for (const box of operands)
        code.emit(`${opcode}${policy.suffix}`, [...box, ...policy.operands]);
    });
    return;
  }
  const skip = code.label("copied");
  code.jumpIf(one, skip, { negated: true, uniform: false });
  const { parts } = op.attributes;
  if (parts === undefined)
    expectEverywhere(op, context, place, { scale: own.scale, bytes: planned.bytes, group });
  // Each block copies a part, and expects all of them.
  else expectBytes(context, place, own.scale, planned.bytes * parts);
  const mask = code.make("b16", "cvt.u16.u32", group);
  for (const box of operands)
    code.emit(`${opcode}.multicast::cluster${policy.suffix}`, [...box, mask, ...policy.operands]);
  code.place(skip);
}

/**
 * pred: whether the lane is the one that starts a warp's copies. Of an elected lane the assembler knows that there is no other, and issues a copy as one
 * instruction; of lane 0 it does not, and makes a loop of twenty over all lanes that might be asked.
 */
function electLane({ code }: EmitContext): Register {
  const elected = code.register("pred");
  code.emit("elect.sync", [pair(discard, elected), integer(-1)]);
  return elected;
}

/** Tells the barrier how many bytes will land, and arrives once for the copy. */
function expectBytes(
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
