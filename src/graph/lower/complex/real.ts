/** Real values in formulas: `x.mul(x).add(y.mul(y)).sqrt()` appends the ops that it names. */
import type { Choice, RealNumber } from "../../ops/complex-functions.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphValue } from "../../ops/node.ts";
import { binary, compare, convert, like, select, typeOfValue } from "../../transform/arithmetic.ts";
import { tensorType } from "../../ops/types.ts";

type UnaryKind =
  | "stablehlo.abs"
  | "stablehlo.cbrt"
  | "stablehlo.cosine"
  | "stablehlo.exponential"
  | "stablehlo.exponential_minus_one"
  | "stablehlo.is_finite"
  | "stablehlo.log"
  | "stablehlo.log_plus_one"
  | "stablehlo.negate"
  | "stablehlo.sign"
  | "stablehlo.sine"
  | "stablehlo.sqrt"
  | "stablehlo.tan"
  | "chlo.asinh"
  | "chlo.cosh"
  | "chlo.sinh";

type Direction = "EQ" | "NE" | "GE" | "GT" | "LE" | "LT";
type Operand = Real | number;

/** Where something holds. */
export class Condition implements Choice<Real> {
  readonly builder: GraphBuilder;
  readonly value: GraphValue;

  constructor(builder: GraphBuilder, value: GraphValue) {
    this.builder = builder;
    this.value = value;
  }

  and(other: Condition): Condition {
    return new Condition(
      this.builder,
      binary(this.builder, "stablehlo.and", this.value, other.value),
    );
  }

  or(other: Condition): Condition {
    return new Condition(
      this.builder,
      binary(this.builder, "stablehlo.or", this.value, other.value),
    );
  }

  not(): Condition {
    return new Condition(
      this.builder,
      this.builder.one("stablehlo.not", { operand: this.value }, {}),
    );
  }

  /** One value where it holds, another where not; one of them is no plain number. */
  pick(yes: Operand, no: Operand): Real {
    const shaped = typeof yes === "number" ? no : yes;
    if (typeof shaped === "number") throw new Error("a choice is between values");
    const { value } = shaped;
    const side = (each: Operand): GraphValue =>
      typeof each === "number" ? like(this.builder, value, each) : each.value;
    return new Real(this.builder, select(this.builder, this.value, side(yes), side(no)));
  }
}

export class Real implements RealNumber<Real> {
  readonly builder: GraphBuilder;
  readonly value: GraphValue;

  constructor(builder: GraphBuilder, value: GraphValue) {
    this.builder = builder;
    this.value = value;
  }

  #other(other: Operand): GraphValue {
    return typeof other === "number" ? like(this.builder, this.value, other) : other.value;
  }

  /** A constant of the same shape. */
  fill(number: number): Real {
    return new Real(this.builder, like(this.builder, this.value, number));
  }

  #unary(kind: UnaryKind): Real {
    return new Real(this.builder, this.builder.one(kind, { operand: this.value }, {}));
  }

  add(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.add", this.value, this.#other(other)),
    );
  }

  sub(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.subtract", this.value, this.#other(other)),
    );
  }

  mul(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.multiply", this.value, this.#other(other)),
    );
  }

  div(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.divide", this.value, this.#other(other)),
    );
  }

  pow(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.power", this.value, this.#other(other)),
    );
  }

  max(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.maximum", this.value, this.#other(other)),
    );
  }

  min(other: Operand): Real {
    return new Real(
      this.builder,
      binary(this.builder, "stablehlo.minimum", this.value, this.#other(other)),
    );
  }

  /** The angle of the point whose height this is. */
  atan2(other: Operand): Real {
    const operands = { lhs: this.value, rhs: this.#other(other) };
    return new Real(this.builder, this.builder.one("stablehlo.atan2", operands, {}));
  }

  /** Scaled by the larger of the two. */
  hypot(other: Real): Real {
    const [x, y] = [this.abs(), other.abs()];
    const large = x.max(y);
    const ratio = x.min(y).div(large);
    const size = large.mul(ratio.mul(ratio).add(1).sqrt());
    const plain = large.is("EQ", 0).pick(0, size);
    return x.is("EQ", Infinity).or(y.is("EQ", Infinity)).pick(Infinity, plain);
  }

  nearby(): Real {
    return this;
  }

  abs = (): Real => this.#unary("stablehlo.abs");
  asinh = (): Real => this.#unary("chlo.asinh");
  cbrt = (): Real => this.#unary("stablehlo.cbrt");
  cos = (): Real => this.#unary("stablehlo.cosine");
  cosh = (): Real => this.#unary("chlo.cosh");
  exp = (): Real => this.#unary("stablehlo.exponential");
  expm1 = (): Real => this.#unary("stablehlo.exponential_minus_one");
  log = (): Real => this.#unary("stablehlo.log");
  log1p = (): Real => this.#unary("stablehlo.log_plus_one");
  neg = (): Real => this.#unary("stablehlo.negate");
  sign = (): Real => this.#unary("stablehlo.sign");
  sin = (): Real => this.#unary("stablehlo.sine");
  sinh = (): Real => this.#unary("chlo.sinh");
  sqrt = (): Real => this.#unary("stablehlo.sqrt");
  tan = (): Real => this.#unary("stablehlo.tan");

  isFinite(): Condition {
    return new Condition(this.builder, this.#unary("stablehlo.is_finite").value);
  }

  is(direction: Direction, other: Operand): Condition {
    return new Condition(
      this.builder,
      compare(this.builder, direction, this.value, this.#other(other)),
    );
  }

  /** Whether the sign bit is set, that of a zero too. */
  hasSign(): Condition {
    const wide = convert(this.builder, this.value, "f64");
    const { shape } = typeOfValue(wide);
    const bits = this.builder.one(
      "stablehlo.bitcast_convert",
      { operand: wide },
      {},
      { types: [tensorType("i64", shape)] },
    );
    return new Condition(
      this.builder,
      compare(this.builder, "LT", bits, like(this.builder, bits, 0)),
    );
  }

  /** The magnitude of this with the sign of another. */
  withSignOf(other: Real): Real {
    const size = this.abs();
    return other.hasSign().pick(size.neg(), size);
  }
}
