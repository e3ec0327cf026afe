/** Where random programs get their values from: constants, and whatever earlier ops have left in sight. */
import {
  bf16,
  bool,
  f16,
  f32,
  f64,
  i32,
  i64,
  i8,
  isFloat,
  isWide,
  u32,
  u8,
} from "../../src/formats/dtype.ts";
import { conversionChoices } from "../../src/formats/conversion-rules.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { Builder } from "../../src/ir/builder.ts";
import type { InferContext } from "../../src/ir/infer/index.ts";
import type { Value } from "../../src/ir/node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../../src/ir/ops.ts";
import type { Literal } from "../../src/ir/schema.ts";
import { dataShape, dataType, sameType } from "../../src/ir/types.ts";
import type { DataType } from "../../src/ir/types.ts";
import { locationAt, unknownLocation } from "../../src/support/location.ts";
import type { Location } from "../../src/support/location.ts";
import type { Random } from "../../src/support/random.ts";

export const formats: readonly DType[] = [
  f32,
  f32,
  i32,
  i32,
  f16,
  bf16,
  f64,
  i8,
  u8,
  u32,
  i64,
  bool,
];
export const shapes: readonly (readonly number[])[] = [[], [], [8], [4, 8], [4, 8], [8, 4], [1, 8]];

export type DataValue = Value<DataType>;

export class RandomValues {
  protected readonly random: Random;
  protected readonly builder: Builder;
  /** Numbers in sight. */
  protected pool: DataValue[] = [];
  #line = 0;

  constructor(random: Random, context: InferContext) {
    this.random = random;
    this.builder = new Builder(context);
  }

  protected chance(probability: number): boolean {
    return this.random.uniform() < probability;
  }

  /** Mostly one of the latest, so that chains grow. */
  protected pickFrom(values: readonly DataValue[]): DataValue {
    const recent = this.chance(0.6) ? values.slice(-6) : values;
    return this.random.pick(recent);
  }

  protected find(test: (value: DataValue) => boolean): DataValue | undefined {
    const found = this.pool.filter(test);
    return found.length === 0 ? undefined : this.pickFrom(found);
  }

  protected partner(value: DataValue): DataValue {
    return this.chance(0.4) ? this.constantOf(value.type) : this.ofType(value.type);
  }

  protected ofType(type: DataType): DataValue {
    return this.find((value) => sameType(value.type, type)) ?? this.constantOf(type);
  }

  protected type(): DataType {
    return dataType(this.random.pick(formats), this.random.pick(shapes));
  }

  protected constantOf(type: DataType): DataValue {
    return this.constant(type.dtype, dataShape(type), this.#literal(type.dtype));
  }

  protected constant(dtype: DType, shape: readonly number[], value: Literal): DataValue {
    return this.number("constant", {}, { value, dtype, shape });
  }

  #literal(dtype: DType): Literal {
    const { bits, kind } = dtype;
    if (kind === "bool") return this.chance(0.5);
    if (isFloat(dtype))
      return this.random.pick([
        0,
        -0,
        1,
        -1,
        2,
        0.5,
        NaN,
        Infinity,
        -Infinity,
        this.random.normal() * 10,
      ]);
    const least = kind === "signed" ? -(1n << BigInt(bits - 1)) : 0n;
    const greatest = least + (1n << BigInt(bits)) - 1n;
    const small = BigInt(this.random.below(7));
    const value = this.random.pick([
      0n,
      1n,
      small,
      small,
      kind === "signed" ? -1n : greatest,
      least,
      greatest,
    ]);
    return isWide(dtype) ? value : Number(value);
  }

  protected cast(source: DataValue, dtype: DType): DataValue {
    const { overflows, roundings } = conversionChoices(source.type.dtype, dtype);
    const some = <T>(choices: readonly T[]): T | undefined =>
      choices.length > 0 && this.chance(0.3) ? this.random.pick(choices) : undefined;
    const [overflow, rounding] = [some(overflows), some(roundings)];
    const chosen = { ...(overflow && { overflow }), ...(rounding && { rounding }) };
    return this.number("cast", { source }, { dtype, ...chosen });
  }

  /** The number repeated to the shape, where its own shape allows it. */
  protected spread(source: DataValue, shape: readonly number[]): DataValue {
    const from = dataShape(source.type);
    if (from.length === 0 && shape.length === 0) return source;
    const offset = shape.length - from.length;
    const axes = from.map((_, axis) => axis + offset);
    const fits =
      offset >= 0 && from.every((extent, axis) => extent === 1 || extent === shape[axis + offset]);
    if (!fits) return this.constantOf(dataType(source.type.dtype, shape));
    return this.number("broadcast", { source }, { shape, axes });
  }

  protected remember(...values: readonly DataValue[]): void {
    this.pool.push(...values);
  }

  protected location(): Location {
    this.#line++;
    return this.chance(0.1)
      ? unknownLocation
      : locationAt("random.ts", this.#line, 1 + this.random.below(80));
  }

  protected add<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
  ): readonly Value[] {
    for (const part of [operands, attributes])
      for (const item of Object.values<unknown>(part)) if (Array.isArray(item)) Object.freeze(item);
    return this.builder.add(kind, operands, attributes, regions, this.location());
  }

  protected one<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
  ): Value {
    const [result] = this.add(kind, operands, attributes, {} as OpRegions<K>);
    if (result === undefined) throw new Error(`${kind} has no result`);
    return result;
  }

  /** Adds an op whose result is a number. */
  protected number<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
  ): DataValue {
    return this.one(kind, operands, attributes) as DataValue;
  }

  /** Adds an op and keeps its result in sight. */
  protected give<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
  ): void {
    this.remember(this.number(kind, operands, attributes));
  }
}
