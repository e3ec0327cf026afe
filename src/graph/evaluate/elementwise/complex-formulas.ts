/** Numbers as formulas of complex functions take them (`ops/complex-functions.ts`). */
import type { Choice, ComplexNumber, RealNumber } from "../../ops/complex-functions.ts";
import type { Complex } from "../scalars.ts";

type Operand = PlainNumber | number;

function numberOf(operand: Operand): number {
  return typeof operand === "number" ? operand : operand.value;
}

class PlainChoice implements Choice<PlainNumber> {
  readonly holds: boolean;

  constructor(holds: boolean) {
    this.holds = holds;
  }

  and = (other: PlainChoice): PlainChoice => new PlainChoice(this.holds && other.holds);
  or = (other: PlainChoice): PlainChoice => new PlainChoice(this.holds || other.holds);
  not = (): PlainChoice => new PlainChoice(!this.holds);
  pick = (yes: Operand, no: Operand): PlainNumber =>
    new PlainNumber(numberOf(this.holds ? yes : no));
}

const comparisons = {
  EQ: (x: number, y: number) => x === y,
  NE: (x: number, y: number) => x !== y,
  GE: (x: number, y: number) => x >= y,
  GT: (x: number, y: number) => x > y,
  LE: (x: number, y: number) => x <= y,
  LT: (x: number, y: number) => x < y,
} as const;

export class PlainNumber implements RealNumber<PlainNumber> {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }

  #with(compute: (x: number, y: number) => number, other: Operand): PlainNumber {
    return new PlainNumber(compute(this.value, numberOf(other)));
  }

  #of(compute: (x: number) => number): PlainNumber {
    return new PlainNumber(compute(this.value));
  }

  add(other: Operand): PlainNumber {
    return this.#with((x, y) => x + y, other);
  }

  sub(other: Operand): PlainNumber {
    return this.#with((x, y) => x - y, other);
  }

  mul(other: Operand): PlainNumber {
    return this.#with((x, y) => x * y, other);
  }

  div(other: Operand): PlainNumber {
    return this.#with((x, y) => x / y, other);
  }

  pow(other: Operand): PlainNumber {
    return this.#with(Math.pow, other);
  }

  max(other: Operand): PlainNumber {
    return this.#with(Math.max, other);
  }

  min(other: Operand): PlainNumber {
    return this.#with(Math.min, other);
  }

  atan2(other: Operand): PlainNumber {
    return this.#with(Math.atan2, other);
  }

  hypot(other: PlainNumber): PlainNumber {
    return this.#with(Math.hypot, other);
  }

  /** A power of two, by which nothing is rounded. */
  nearby(): PlainNumber {
    return this.#of((x) => 2 ** Math.max(-1000, Math.min(1000, Math.floor(Math.log2(x)))));
  }

  abs = (): PlainNumber => this.#of(Math.abs);
  asinh = (): PlainNumber => this.#of(Math.asinh);
  cbrt = (): PlainNumber => this.#of(Math.cbrt);
  cos = (): PlainNumber => this.#of(Math.cos);
  cosh = (): PlainNumber => this.#of(Math.cosh);
  exp = (): PlainNumber => this.#of(Math.exp);
  expm1 = (): PlainNumber => this.#of(Math.expm1);
  log = (): PlainNumber => this.#of(Math.log);
  log1p = (): PlainNumber => this.#of(Math.log1p);
  neg = (): PlainNumber => this.#of((x) => -x);
  sign = (): PlainNumber => this.#of(Math.sign);
  sin = (): PlainNumber => this.#of(Math.sin);
  sinh = (): PlainNumber => this.#of(Math.sinh);
  sqrt = (): PlainNumber => this.#of(Math.sqrt);
  tan = (): PlainNumber => this.#of(Math.tan);

  isFinite(): PlainChoice {
    return new PlainChoice(Number.isFinite(this.value));
  }

  is(direction: keyof typeof comparisons, other: Operand): PlainChoice {
    return new PlainChoice(comparisons[direction](this.value, numberOf(other)));
  }

  withSignOf({ value: sign }: PlainNumber): PlainNumber {
    const isNegative = sign < 0 || Object.is(sign, -0);
    return this.#of((x) => (isNegative ? -Math.abs(x) : Math.abs(x)));
  }

  fill(number: number): PlainNumber {
    return new PlainNumber(number);
  }
}

type Formula = ComplexNumber<PlainNumber>;

function opened({ re, im }: Complex): Formula {
  return { re: new PlainNumber(re), im: new PlainNumber(im) };
}

/** A formula of one complex number, on plain pairs. */
export function plain(formula: (z: Formula) => Formula): (z: Complex) => Complex {
  return (z) => {
    const { re, im } = formula(opened(z));
    return { re: re.value, im: im.value };
  };
}

/** A formula of two complex numbers, on plain pairs. */
export function plainPair(
  formula: (a: Formula, b: Formula) => Formula,
): (a: Complex, b: Complex) => Complex {
  return (a, b) => {
    const { re, im } = formula(opened(a), opened(b));
    return { re: re.value, im: im.value };
  };
}
