/**
 * Copies that no tensor map describes, made by the lanes themselves: `cp.async` where lanes have 4, 8 or
 * 16 bytes that lie side by side in both places, else loads and stores.
 *
 *   into shared memory, sm_80                      with an asynchronous proxy
 *     cp.async …                                     cp.async …, cp.async.wait_all
 *     cp.async.mbarrier.arrive   keeps the phase     fence.proxy.async
 *     arrive, one lane a warp    open until landed   arrive, one lane a warp
 *
 * Out of shared memory they are done at once, so that waiting for their group is a meeting of lanes.
 */
import type { Op } from "../../../ir/node.ts";
import { memoryLayouts } from "../../../layout/model/candidates.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { Operand } from "../../module.ts";
import { address, integer } from "../../operands.ts";
import { threadBarrier, warpBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { planAccess } from "../memory/access.ts";
import { loadWords } from "../memory/loads.ts";
import { storeWords } from "../memory/stores.ts";
import type { Access, Unit } from "../memory/units.ts";
import { barrierAddress, emitArrival } from "../synchronization.ts";
import type { BarrierPlace } from "../synchronization.ts";
import type { BarrierValue, GlobalValue, RefValue, ReshapedValue, SharedValue } from "../values.ts";

type GlobalSide = GlobalValue | ReshapedValue;

/** Both sides of a copy under one distribution over lanes. */
interface Sides {
  readonly global: Access;
  readonly shared: Access;
  readonly bits: SharedValue["dtype"]["bits"];
  readonly registers: number;
}

function distribute(context: EmitContext, far: GlobalSide, shared: SharedValue): Sides {
  const { shape, dtype } = shared;
  const layout = laneLayout(context, far, shared);
  const access = (window: RefValue): Access =>
    planAccess(context, { window, layout, shape, once: true });
  return {
    global: access(far),
    shared: access(shared),
    bits: dtype.bits,
    registers: registersPerLane(layout, shape),
  };
}

function laneLayout(
  { scope }: EmitContext,
  far: GlobalSide,
  { shape, dtype }: SharedValue,
): DistributedLayout {
  const contiguous =
    far.kind === "global"
      ? far.axes.findIndex(({ root }) => far.array[root]?.stride === 1)
      : shape.length - 1;
  const axis = contiguous < 0 ? shape.length - 1 : contiguous;
  const extent = { shape, bits: dtype.bits, warps: scope.warps };
  const [layout] = memoryLayouts(extent, axis).filter(({ kind }) => kind !== "splat");
  if (layout === undefined || layout.kind === "splat") throw new Error("no layout for a copy");
  return layout;
}

/** Units of both sides that move the same elements; undefined where they differ. */
function paired(
  { shared, bits }: Sides,
  units: readonly Unit[],
): readonly { readonly from: Unit; readonly to: Unit }[] | undefined {
  const targets = new Map(shared.units().map((unit) => [unit.registers.join(), unit]));
  const pairs = units.flatMap((from) => {
    const to = targets.get(from.registers.join());
    const bytes = (from.registers.length * bits) / 8;
    return to !== undefined && [4, 8, 16].includes(bytes) ? [{ from, to }] : [];
  });
  return pairs.length === units.length && pairs.length === targets.size ? pairs : undefined;
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

/** Loads and stores by lanes. */
function copyPlainly({ code }: EmitContext, sides: Sides, fill: Operand): void {
  const format = { bits: sides.bits, registers: sides.registers };
  storeWords(code, sides.shared, format, loadWords(code, sides.global, format, fill));
}

export function laneCopyIn(
  context: EmitContext,
  op: Op<"copy_async">,
  far: GlobalSide,
  shared: SharedValue,
): void {
  const { code, target } = context;
  const { barrier, index } = op.operands;
  if (barrier === undefined) throw new Error("a copy into shared memory has a barrier");
  const own = context.barrier(barrier);
  const place = barrierAddress(context, own, index);
  const sides = distribute(context, far, shared);
  const wanted = op.attributes.by === "cp.async";
  const units = sides.global.whole === undefined && wanted ? sides.global.units() : undefined;
  const pairs = units && paired(sides, units);
  const hasAsyncProxy = target.features.includes("tma");
  if (pairs === undefined) copyPlainly(context, sides, fillOperand(op, shared));
  else {
    for (const pair of pairs) copyPair(context, pair, sides.bits);
    if (hasAsyncProxy) code.emit("cp.async.wait_all", [], "landed before the proxies change");
    else code.emit("cp.async.mbarrier.arrive.shared.b64", [address(place.base, place.offset)]);
  }
  if (hasAsyncProxy) code.emit("fence.proxy.async.shared::cta", [], "wgmma may read what landed");
  arriveForCopy(context, own, place);
}

/** The fill value in every slot of a word. */
function fillOperand({ attributes }: Op<"copy_async">, { dtype }: SharedValue): Operand {
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

export function laneCopyOut(context: EmitContext, far: GlobalSide, shared: SharedValue): void {
  const { code } = context;
  const sides = distribute(context, far, shared);
  const format = { bits: sides.bits, registers: sides.registers };
  storeWords(code, sides.global, format, loadWords(code, sides.shared, format, integer(0)));
}
