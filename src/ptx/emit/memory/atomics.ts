/**
 * Atomic updates, relaxed and for the whole GPU unless they say otherwise (`memory-order.ts`). Each element is updated by one lane; where the old values
 * are wanted, lanes that hold copies get them from that lane: within a warp by a shuffle, across warps
 * through shared memory. Where nobody wants them, `red` does without.
 *
 *   | function      | formats                    | instruction                                    |
 *   |---------------|----------------------------|------------------------------------------------|
 *   | add           | integers, f32, f64         | add.u32, add.u64, add.f32, add.f64             |
 *   | add           | f16, bf16                  | add.noftz.f16; bf16 from sm_90 on, else a loop |
 *   | add           | f32, f16, bf16, unwanted   | add.v4.f32, add.noftz.v4.f16x2: 16 bytes a lane |
 *   | min, max      | integers                   | min.s32 and the like                           |
 *   | min, max      | floats                     | a loop of cas.b16, cas.b32, cas.b64            |
 *   | and, or, xor  | integers                   | and.b32, and.b64                               |
 *   | exchange      | 32 and 64 bits             | exch.b32, exch.b64                             |
 *   | add, or, xor  | integers, of 0, global     | ld.relaxed.gpu: nothing changes                |
 *
 * In global memory add.f32 takes subnormal numbers for zero, as the hardware does.
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import type { atomicFunctions } from "../../../ir/ops/memory.ts";
import type { Operand, Register } from "../../module.ts";
import { vector } from "../../operands.ts";
import { warpBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { emitBinary } from "../elementwise/functions.ts";
import { onlyAccess } from "./access.ts";
import type { PlannedAccess } from "./access.ts";
import { accessElements } from "./element-accesses.ts";
import { meetBefore, orderOf } from "./memory-order.ts";
import type { EmittedOrder } from "./memory-order.ts";
import { underGuard, writeWords } from "./stores.ts";
import { spreadOperand } from "./tiles.ts";
import type { Access, Unit } from "./units.ts";

type AtomicFunction = (typeof atomicFunctions)[number];
/** How one element is updated: an instruction with its operands, or a loop. */
type Update =
  | { readonly kind: "native"; readonly opcode: string; readonly reduces: boolean }
  | { readonly kind: "loop"; readonly fn: "add" | "min" | "max" };

function updateOf({ target }: EmitContext, fn: AtomicFunction, dtype: DType): Update {
  const native = (opcode: string, reduces = true): Update => ({ kind: "native", opcode, reduces });
  const { bits, kind, name } = dtype;
  if (fn === "exchange") return native(`exch.b${bits}`, false);
  if (fn === "and" || fn === "or" || fn === "xor") return native(`${fn}.b${bits}`);
  if (kind !== "float") return native(`${fn}.${integerType(fn, dtype)}`);
  const halves = name === "f16" || (name === "bf16" && target.features.includes("tma"));
  if (fn === "add" && (bits >= 32 || halves))
    return native(bits >= 32 ? `add.${name}` : `add.noftz.${name}`);
  return { kind: "loop", fn };
}

/** Sums wrap alike in both kinds of integers. */
function integerType(fn: AtomicFunction, { bits, kind }: DType): string {
  return `${fn !== "add" && kind === "signed" ? "s" : "u"}${bits}`;
}

export function atomic(op: Op<"atomic">, context: EmitContext): void {
  const { value } = op.operands;
  const { dtype } = context.ref(op.operands.ref);
  const access = onlyAccess(context, op);
  if (access.several) {
    addWords(op, context, access);
    return;
  }
  const update = updateOf(context, op.attributes.fn, dtype);
  const order = orderOf(op);
  const changesNothing = isIdle(op, context) && access.space === "global" && order.opcode === "";
  accessElements(op, context, access, [value], (unit, [operand], old) => {
    if (operand === undefined) throw new Error("an atomic without its value");
    if (changesNothing && old !== undefined) emitLook(context, unit, dtype, old);
    else if (update.kind === "loop")
      updateLoop(context, access, unit, { dtype, operand, old }, update.fn, order);
    else emitUpdate(context, access, unit, update, [operand], old, order);
  });
}

/** Whether the update is known to leave every element as it is: who polls by it only looks, which others need not wait for. */
function isIdle({ operands, attributes }: Op<"atomic">, { windows }: EmitContext): boolean {
  if (!["add", "or", "xor"].includes(attributes.fn)) return false;
  const fact = windows.facts.ofAny(operands.value);
  return fact !== undefined && fact.least === 0n && fact.greatest === 0n;
}

function emitLook({ code }: EmitContext, unit: Unit, { bits }: DType, old: Register): void {
  underGuard(code, unit.guard, () => {
    code.emit(`ld.relaxed.gpu.global.b${bits}`, [old, unit.address]);
  });
}

export function compareExchange(op: Op<"atomic_compare_exchange">, context: EmitContext): void {
  const { value, expected } = op.operands;
  const { bits } = context.ref(op.operands.ref).dtype;
  const update = { opcode: `cas.b${bits}`, reduces: false } as const;
  const access = onlyAccess(context, op);
  const order = orderOf(op);
  accessElements(op, context, access, [expected, value], (unit, operands, old) => {
    emitUpdate(context, access, unit, update, operands, old, order);
  });
}

/** Adds runs of neighbours: up to 16 bytes in global memory, pairs of 16 bits in shared. */
function addWords(op: Op<"atomic">, context: EmitContext, access: PlannedAccess): void {
  const { code } = context;
  const order = orderOf(op);
  const { dtype, words } = spreadOperand(context, op.operands.value);
  meetBefore(context, order);
  writeWords(code, access, access.format, words, ({ registers, address: place, guard }, chunks) => {
    const lone = dtype.bits === 16 && registers.length === 1;
    const sources = lone ? chunks.map((chunk) => code.make("b16", "cvt.u16.u32", chunk)) : chunks;
    const opcode = `red${order.opcode}.${access.space}.${sumOf(dtype, registers.length)}`;
    underGuard(code, guard, () => {
      code.emit(opcode, [place, vector(sources)]);
    });
  });
}

/** add.f32, add.v4.f32, add.noftz.f16, add.noftz.f16x2, add.noftz.v4.f16x2. */
function sumOf({ name, bits }: DType, count: number): string {
  const packed = bits === 16 && count > 1;
  const words = packed ? count / 2 : count;
  const type = packed ? `${name}x2` : name;
  return `add${bits === 16 ? ".noftz" : ""}${words > 1 ? `.v${words}` : ""}.${type}`;
}

function emitUpdate(
  { code }: EmitContext,
  { space }: Access,
  { address: place, guard }: Unit,
  { opcode, reduces }: { readonly opcode: string; readonly reduces: boolean },
  operands: readonly Operand[],
  old: Register | undefined,
  order: EmittedOrder,
): void {
  // A reduction without a result acquires nothing.
  const alone = old === undefined && reduces && !order.acquires;
  underGuard(code, guard, () => {
    if (alone) code.emit(`red${order.opcode}.${space}.${opcode}`, [place, ...operands]);
    else {
      const type = opcode.endsWith("64") ? "b64" : opcode.endsWith("16") ? "b16" : "b32";
      const target = old ?? code.register(type);
      code.emit(`atom${order.opcode}.${space}.${opcode}`, [target, place, ...operands]);
    }
  });
}

interface LoopOperands {
  readonly dtype: DType;
  readonly operand: Register;
  readonly old: Register | undefined;
}

/** Tries until nobody came between; lanes leave as they succeed. */
function updateLoop(
  context: EmitContext,
  { space }: Access,
  { address: place, guard }: Unit,
  { dtype, operand, old }: LoopOperands,
  fn: "add" | "min" | "max",
  order: EmittedOrder,
): void {
  const { code } = context;
  const [again, end] = [code.label("again"), code.label("updated")];
  if (guard !== undefined) code.jumpIf(guard, end, { negated: true, uniform: false });
  const type = dtype.bits === 64 ? "b64" : dtype.bits === 32 ? "b32" : "b16";
  const scope = order.scope ?? (space === "global" ? "gpu" : "cta");
  const seen = code.make(type, `ld.relaxed.${scope}.${space}.${type}`, place);
  code.place(again);
  const next = emitBinary(context, fn, dtype, seen, operand);
  const found = code.make(type, `atom${order.opcode}.${space}.cas.${type}`, place, seen, next);
  const failed = code.make("pred", `setp.ne.${type}`, found, seen);
  code.emit(`mov.${type}`, [seen, found]);
  code.jumpIf(failed, again, { uniform: false });
  if (old !== undefined) code.emit(`mov.${type}`, [old, seen]);
  code.place(end);
  warpBarrier(context, "the lanes left the loop apart");
}
