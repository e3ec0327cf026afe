/**
 * Four elements of a tile in vectors, and how they lie in memory.
 *
 * | formats                  | lanes                                | in memory                     |
 * |--------------------------|--------------------------------------|-------------------------------|
 * | f32, tf32                | one f32x4                            | four bytes                    |
 * | i32, u32 and narrower    | one i32x4, extended as the format is | four, two or one              |
 * | floats below 32 bits     | one i32x4 of their bits              | two or one                    |
 * | bool                     | one i32x4, −1 where true             | one: 0 or 1                   |
 * | f64; i64, u64            | two f64x2; two i64x2                 | eight                         |
 *
 * This is also how tiles lie in the scratch memory of a worker, an element a slot; only arrays pack 4-bit formats two to a byte.
 * A scalar is a local: i32, i64, f32 or f64, and 0 or 1 of bool.
 */
import type { DType } from "../../formats/dtype.ts";
import { constant, i32, lane, load, loadLane, op, shuffleLanes, splat } from "../loops/builder.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { ValueType } from "../wasm/opcode.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";

export type LaneKind = "f32" | "i32" | "f64" | "i64";

/** Elements of one step of a loop over a tile. */
export const laneCount = 4;

export interface Lanes {
  readonly dtype: DType;
  /** One vector, or two of 64-bit formats; each may be read again and again. */
  readonly parts: readonly Expression[];
  /** What all lanes hold, where they are known to hold the same. */
  readonly scalar?: Expression;
}

const laneKinds: { readonly [name: string]: LaneKind } = {
  f32: "f32",
  tf32: "f32",
  f64: "f64",
  i64: "i64",
  u64: "i64",
};

export function laneKind({ name }: DType): LaneKind {
  return laneKinds[name] ?? "i32";
}

/** The type of a scalar's local. */
export function scalarLocal(dtype: DType): ValueType {
  return laneKind(dtype);
}

/** Bytes of an element in scratch memory. */
export function slotBytes({ bits }: DType): number {
  return bits === 4 ? 1 : bits / 8;
}

/** log2 of the bytes of an element. */
export function slotShift(dtype: DType): number {
  return Math.log2(slotBytes(dtype));
}

export function keepLanes(
  b: FunctionBuilder,
  dtype: DType,
  ...parts: readonly Expression[]
): Lanes {
  return { dtype, parts: parts.map((part) => b.keep(part, "v")) };
}

/** The one vector of a format of at most 32 bits. */
export function vectorOf({ parts, dtype }: Lanes): Expression {
  const [part] = parts;
  if (part === undefined || parts.length !== 1) throw new Error(`${dtype.name} is two vectors`);
  return part;
}

/** The two vectors of a format of 64 bits. */
export function halvesOf({ parts, dtype }: Lanes): readonly [Expression, Expression] {
  const [low, high] = parts;
  if (low === undefined || high === undefined) throw new Error(`${dtype.name} is one vector`);
  return [low, high];
}

const isSigned = ({ kind }: DType): boolean => kind === "signed";

/** Four neighbours from an address. */
export function loadLanes(
  b: FunctionBuilder,
  dtype: DType,
  address: Expression,
  offset = 0,
): Lanes {
  const bytes = slotBytes(dtype);
  if (bytes === 8)
    return keepLanes(
      b,
      dtype,
      load("v128.load", address, offset),
      load("v128.load", address, offset + 16),
    );
  if (bytes === 4) return keepLanes(b, dtype, load("v128.load", address, offset));
  if (bytes === 2)
    return keepLanes(
      b,
      dtype,
      load(isSigned(dtype) ? "v128.load16x4_s" : "v128.load16x4_u", address, offset),
    );
  const sign = isSigned(dtype) ? "s" : "u";
  const words = op(`i16x8.extend_low_i8x16_${sign}`, load("v128.load32_zero", address, offset));
  const wide = op(`i32x4.extend_low_i16x8_${sign}`, words);
  return keepLanes(
    b,
    dtype,
    dtype.kind === "bool" ? op("i32x4.ne", wide, splat("i32x4", 0)) : wide,
  );
}

/** The bytes of narrow lanes in the lowest bytes of a vector. */
function narrowed(dtype: DType, vector: Expression): Expression {
  const bits = dtype.kind === "bool" ? op("v128.and", vector, splat("i32x4", 1)) : vector;
  const signed = isSigned(dtype);
  if (slotBytes(dtype) === 2) {
    const zero = splat("i32x4", 0);
    return op(signed ? "i16x8.narrow_i32x4_s" : "i16x8.narrow_i32x4_u", bits, zero);
  }
  const words = op("i16x8.narrow_i32x4_s", bits, splat("i32x4", 0));
  return op(signed ? "i8x16.narrow_i16x8_s" : "i8x16.narrow_i16x8_u", words, splat("i32x4", 0));
}

/** Stores four neighbours. */
export function storeLanes(
  b: FunctionBuilder,
  address: Expression,
  lanes: Lanes,
  offset = 0,
): void {
  const { dtype, parts } = lanes;
  const bytes = slotBytes(dtype);
  if (bytes >= 4)
    parts.forEach((part, half) => b.store("v128.store", address, part, offset + 16 * half));
  else
    b.storeLane(
      bytes === 2 ? "v128.store64_lane" : "v128.store32_lane",
      0,
      address,
      narrowed(dtype, vectorOf(lanes)),
      offset,
    );
}

const scalarLoads: {
  readonly [bytes: number]: readonly [signed: OpcodeName, unsigned: OpcodeName];
} = {
  1: ["i32.load8_s", "i32.load8_u"],
  2: ["i32.load16_s", "i32.load16_u"],
  4: ["i32.load", "i32.load"],
};

/** One element as a scalar. */
export function loadScalar(dtype: DType, address: Expression, offset = 0): Expression {
  const kind = laneKind(dtype);
  if (kind !== "i32") return load(`${kind}.load`, address, offset);
  const [signed, unsigned] = scalarLoads[slotBytes(dtype)] ?? ["i32.load", "i32.load"];
  const value = load(isSigned(dtype) ? signed : unsigned, address, offset);
  return dtype.kind === "bool" ? op("i32.ne", value, i32.of(0)) : value;
}

const narrowStores: { readonly [bytes: number]: OpcodeName } = {
  1: "i32.store8",
  2: "i32.store16",
  4: "i32.store",
};

export function storeScalar(
  b: FunctionBuilder,
  dtype: DType,
  address: Expression,
  value: Expression,
  offset = 0,
): void {
  const kind = laneKind(dtype);
  const name =
    kind === "i32" ? (narrowStores[slotBytes(dtype)] ?? "i32.store") : (`${kind}.store` as const);
  b.store(name, address, value, offset);
}

/** Lanes of four elements at addresses of their own. */
export function gatherLanes(
  b: FunctionBuilder,
  dtype: DType,
  addresses: readonly Expression[],
): Lanes {
  const bytes = slotBytes(dtype);
  if (bytes === 8)
    return keepLanes(
      b,
      dtype,
      ...[0, 2].map((first) =>
        addresses
          .slice(first, first + 2)
          .reduce<Expression>(
            (vector, address, index) => loadLane("v128.load64_lane", index, address, vector),
            splat("i64x2", 0),
          ),
      ),
    );
  if (bytes === 4)
    return keepLanes(
      b,
      dtype,
      addresses.reduce<Expression>(
        (vector, address, index) => loadLane("v128.load32_lane", index, address, vector),
        splat("i32x4", 0),
      ),
    );
  return lanesOfScalars(
    b,
    dtype,
    addresses.map((address) => loadScalar(dtype, address)),
  );
}

const shapes = { f32: "f32x4", i32: "i32x4", f64: "f64x2", i64: "i64x2" } as const;

/** Lanes made of four scalars. */
export function lanesOfScalars(
  b: FunctionBuilder,
  dtype: DType,
  scalars: readonly Expression[],
): Lanes {
  const kind = laneKind(dtype);
  const shape = shapes[kind];
  const per = kind === "f64" || kind === "i64" ? 2 : 4;
  const vectors: Expression[] = [];
  for (let first = 0; first < laneCount; first += per) {
    const [head, ...rest] = scalars.slice(first, first + per);
    if (head === undefined) throw new Error("lanes of fewer than four scalars");
    vectors.push(
      rest.reduce<Expression>(
        (vector, scalar, index) => lane(`${shape}.replace_lane`, index + 1, vector, scalar),
        op(`${shape}.splat`, head),
      ),
    );
  }
  return keepLanes(
    b,
    dtype,
    ...vectors.map((vector) => (dtype.kind === "bool" ? op("i32x4.neg", vector) : vector)),
  );
}

/** A scalar in all lanes. */
export function splatLanes(b: FunctionBuilder, dtype: DType, scalar: Expression): Lanes {
  const shape = shapes[laneKind(dtype)];
  const vector = b.keep(op(`${shape}.splat`, scalar), "all");
  const part = dtype.kind === "bool" ? b.keep(op("i32x4.neg", vector)) : vector;
  return { dtype, parts: slotBytes(dtype) === 8 ? [part, part] : [part], scalar };
}

/** One lane as a scalar. */
export function laneScalar(lanes: Lanes, index: number): Expression {
  const { dtype, parts } = lanes;
  const kind = laneKind(dtype);
  const per = laneCount / parts.length;
  const vector = parts[Math.floor(index / per)];
  if (vector === undefined) throw new Error(`no lane ${index}`);
  const value = lane(`${shapes[kind]}.extract_lane`, index % per, vector);
  return dtype.kind === "bool" ? op("i32.and", value, i32.of(1)) : value;
}

/** A constant in all lanes, from an element of memory. */
export function constantScalar(dtype: DType, element: number | bigint): Expression {
  return constant(laneKind(dtype), element);
}

/** The mask of 32-bit lanes as two of 64-bit lanes. */
export function widenMask(b: FunctionBuilder, mask: Expression): readonly [Expression, Expression] {
  return [
    b.keep(op("i64x2.extend_low_i32x4_s", mask)),
    b.keep(op("i64x2.extend_high_i32x4_s", mask)),
  ];
}

/** The low words of four 64-bit lanes, such as masks. */
export function lowWords(low: Expression, high: Expression): Expression {
  return shuffleLanes(low, high, [0, 2, 4, 6]);
}

/** `ifTrue` where the mask is set, lane by lane. */
export function selectLanes(
  b: FunctionBuilder,
  mask: Expression,
  ifTrue: Lanes,
  ifFalse: Lanes,
): Lanes {
  const masks = ifTrue.parts.length === 1 ? [mask] : widenMask(b, mask);
  return keepLanes(
    b,
    ifTrue.dtype,
    ...ifTrue.parts.map((part, half) => {
      const other = ifFalse.parts[half];
      const chosen = masks[half];
      if (other === undefined || chosen === undefined) throw new Error("lanes of other formats");
      return op("v128.bitselect", part, other, chosen);
    }),
  );
}
