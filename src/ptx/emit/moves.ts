/**
 * Values that keep their registers over a join: loop carries and results of branches. Each way to the
 * join moves its values into the registers of the join; the assembler merges what needs no move.
 */
import type { Value } from "../../ir/node.ts";
import { registersPerLane } from "../../layout/algebra/register-layout.ts";
import type { Register } from "../module.ts";
import type { EmitContext } from "./context.ts";
import type { InflightValue, ScalarValue, TileValue } from "./values.ts";
import { elementClass, slotsOf, wordClass } from "./values.ts";
import { layoutOf } from "../../layout/model/placed-types.ts";

/** What can be handed on by yields. */
export type HandedValue = ScalarValue | TileValue | InflightValue;

/** Fresh registers for a scalar or tile, where its type says that it lies. */
export function freshValue(context: EmitContext, value: Value): ScalarValue | TileValue {
  const { type } = value;
  if (type.kind === "scalar") {
    const register = context.code.register(elementClass(type.dtype));
    return { kind: "scalar", dtype: type.dtype, register };
  }
  if (type.kind !== "tile") throw new Error(`%${value.id} is no tile and no scalar`);
  const layout = layoutOf(value);
  const { dtype, shape } = type;
  const count = Math.ceil(registersPerLane(layout, shape) / slotsOf(dtype));
  const words = context.code.registers(wordClass(dtype), count);
  return { kind: "tile", dtype, shape, layout, words };
}

export function registersOf(value: HandedValue): readonly Register[] {
  return value.kind === "scalar" ? [value.register] : value.words;
}

/** The registers of all; accumulators have hundreds, each of which `flatMap` would define as a property. */
function allRegisters(values: readonly HandedValue[]): readonly Register[] {
  const registers: Register[] = [];
  for (const value of values) for (const register of registersOf(value)) registers.push(register);
  return registers;
}

/** Moves all sources into the targets as if at once. */
export function moveTogether(
  { code }: EmitContext,
  sources: readonly HandedValue[],
  targets: readonly HandedValue[],
): void {
  const from = allRegisters(sources);
  const to = allRegisters(targets);
  if (from.length !== to.length) throw new Error("a yield of other registers than its join has");
  const moves: { readonly source: Register; readonly target: Register }[] = [];
  const written = new Set<Register>();
  from.forEach((source, index) => {
    const target = to[index];
    if (target === undefined || target === source) return;
    moves.push({ source, target });
    written.add(target);
  });
  // A source that another move overwrites is saved first.
  const saved = new Map<Register, Register>();
  for (const { source } of moves)
    if (written.has(source) && !saved.has(source)) saved.set(source, copyRegister(code, source));
  for (const { source, target } of moves)
    code.emit(`mov.${target.type}`, [target, saved.get(source) ?? source]);
}

function copyRegister(code: EmitContext["code"], source: Register): Register {
  const { type } = source;
  if (type !== "pred" && type !== "b16" && type !== "b32" && type !== "b64")
    throw new Error(`a register of ${type}`);
  return code.make(type, `mov.${type}`, source);
}
