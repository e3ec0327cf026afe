/**
 * Copies that no tensor map describes, made by the threads themselves instead of TMA: `cp.async` where a thread has 4, 8 or
 * 16 bytes that are contiguous in both places, else loads and stores.
 *
 *   into shared memory, sm_80                      with an asynchronous proxy
 *     cp.async …                                     cp.async …, cp.async.wait_all
 *     cp.async.mbarrier.arrive   keeps the phase     fence.proxy.async
 *     arrive, one thread a warp  open until landed   arrive, one thread a warp
 *
 * Out of shared memory they are done at once, so that waiting for their group is a barrier of the program thread.
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { refOf } from "../../../ir/traverse.ts";
import type { Operand } from "../../module.ts";
import { address, integer } from "../../operands.ts";
import { threadBarrier, warpBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { accessesBy } from "../memory/access.ts";
import type { PlannedAccess } from "../memory/access.ts";
import { loadWords } from "../memory/loads.ts";
import { storeWords } from "../memory/stores.ts";
import type { Unit } from "../memory/units.ts";
import { emitCast } from "../elementwise/casts.ts";
import { insideIndices } from "../memory/bounds-traps.ts";
import { barrierAddress, emitArrival } from "../synchronization.ts";
import type { BarrierPlace } from "../synchronization.ts";
import type { BarrierValue } from "../values.ts";

/** Both sides of a copy under one distribution over lanes. */
interface Sides {
  readonly global: PlannedAccess;
  readonly shared: PlannedAccess;
}

function sidesOf(context: EmitContext, op: Op<"copy_async">): Sides {
  const [global, shared] = accessesBy(context, op);
  if (global === undefined || shared === undefined) throw new Error("a copy has two sides");
  return { global, shared };
}

/** Units of both sides, which move the same elements. */
function paired({ global, shared }: Sides): readonly { readonly from: Unit; readonly to: Unit }[] {
  const units = global.units();
  const targets = new Map(shared.units().map((unit) => [unit.registers.join(), unit]));
  if (targets.size !== units.length) throw new Error("a copy whose sides move different elements");
  return units.map((from) => {
    const to = targets.get(from.registers.join());
    if (to === undefined) throw new Error("a copy whose sides move different elements");
    return { from, to };
  });
}

function copyPair(
  { code }: EmitContext,
  { from, to }: { readonly from: Unit; readonly to: Unit },
  bits: number,
): void {
  const bytes = (from.registers.length * bits) / 8;
  const cache = bytes === 16 ? "cg" : "ca";
  const source: Operand[] =
    from.guard === undefined || from.guard === to.guard
      ? []
      : [code.make("b32", "selp.b32", integer(bytes), integer(0), from.guard)];
  const copy = (): void => {
    code.emit(`cp.async.${cache}.shared.global`, [
      to.address,
      from.address,
      integer(bytes),
      ...source,
    ]);
  };
  if (to.guard === undefined) copy();
  else code.guarded(to.guard, copy);
}

/** Loads and stores by lanes, which round f32 to tf32 on its way into shared memory where the op does. */
function copyPlainly(
  context: EmitContext,
  { operands }: Op<"copy_async">,
  [from, to]: readonly [PlannedAccess, PlannedAccess],
  fill: Operand,
): void {
  const { code } = context;
  const words = loadWords(code, from, from.format, { word: fill });
  const [given, wanted] = [refOf(operands.source).dtype, refOf(operands.destination).dtype];
  const stored =
    given === wanted ? words : words.map((word) => emitCast(context, given, wanted, word));
  storeWords(code, to, to.format, stored);
}

export function threadCopyIn(context: EmitContext, op: Op<"copy_async">): void {
  const { code, target } = context;
  const { barrier, destination } = op.operands;
  if (barrier === undefined) throw new Error("a copy into shared memory has a barrier");
  const own = context.barrier(barrier);
  const place = barrierAddress(context, own, insideIndices(context, op)[0]);
  const sides = sidesOf(context, op);
  const hasAsyncProxy = target.features.includes("tma");
  if (op.attributes.by === "plain")
    copyPlainly(
      context,
      op,
      [sides.global, sides.shared],
      fillOperand(op, refOf(destination).dtype),
    );
  else {
    for (const pair of paired(sides)) copyPair(context, pair, sides.shared.format.bits);
    if (hasAsyncProxy) code.emit("cp.async.wait_all", [], "landed before the proxies change");
    else code.emit("cp.async.mbarrier.arrive.shared.b64", [address(place.base, place.offset)]);
  }
  if (hasAsyncProxy) code.emit("fence.proxy.async.shared::cta", [], "wgmma may read what landed");
  arriveForCopy(context, own, place);
}

/** The fill value in every slot of a word. */
function fillOperand({ attributes }: Op<"copy_async">, dtype: DType): Operand {
  if (attributes.fill === "zero") return integer(0);
  return integer(nanWords[dtype.name] ?? 0);
}

/** NaN of each format, in every slot of its word. */
const nanWords: { readonly [name: string]: number | bigint } = {
  f64: 0x7ff8000000000000n,
  f32: 0x7fc00000,
  tf32: 0x7fc00000,
  f16: 0x7e007e00,
  bf16: 0x7fc07fc0,
  f8e4m3fn: 0x7f7f7f7f,
  f8e5m2: 0x7e7e7e7e,
  f8e8m0fnu: 0xffffffff,
};

/** One arrival of the language, once all lanes have done their part. */
function arriveForCopy(context: EmitContext, { scale }: BarrierValue, place: BarrierPlace): void {
  const { code, numbers, scope } = context;
  const byWarps = scale > 1 && scope.warps > 1;
  if (byWarps || scope.warps === 1) warpBarrier(context, "the warp has copied its part");
  else threadBarrier(context, "all lanes have copied their part");
  code.guarded(byWarps || scope.warps === 1 ? numbers.leader : numbers.elected, () => {
    emitArrival(context, place, byWarps ? 1 : scale);
  });
}

export function threadCopyOut(context: EmitContext, op: Op<"copy_async">): void {
  const { code, target } = context;
  const { global, shared } = sidesOf(context, op);
  copyPlainly(context, op, [shared, global], integer(0));
  // Whoever waits for the copy may let the engine fill the place again, as if the engine had read it.
  if (target.features.includes("tma"))
    code.emit("fence.proxy.async.shared::cta", [], "the engine may overwrite what was read");
}
