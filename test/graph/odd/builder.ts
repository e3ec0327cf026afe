/**
 * A program that is written and computed at once: each op adds its line, and its result is known from the operands' elements.
 */
import type { Random } from "../../../src/support/random.ts";
import { codeOf, floatOf, isFloat, rangeOf, settled } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";

export interface Value {
  readonly name: string;
  readonly element: string;
  readonly shape: readonly number[];
  readonly data: readonly Scalar[];
}

export const size = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);
export const typeOf = (element: string, shape: readonly number[]): string =>
  `tensor<${[...shape, element].join("x")}>`;
export const typed = ({ element, shape }: Value): string => typeOf(element, shape);
export const list = (numbers: readonly number[]): string =>
  numbers.length === 0 ? "array<i64>" : `array<i64: ${numbers.join(", ")}>`;

/** Values with more elements are not computed with any more: what follows would grow without bounds. */
const mostElements = 4096;

/** All places of a shape in row-major order. */
export function places(shape: readonly number[]): readonly (readonly number[])[] {
  return Array.from({ length: size(shape) }, (_, flat) => placeOf(shape, flat));
}

export function placeOf(shape: readonly number[], flat: number): readonly number[] {
  const place: number[] = [];
  for (let axis = shape.length - 1, rest = flat; axis >= 0; axis--) {
    const extent = shape[axis] as number;
    place.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return place;
}

export function flatOf(shape: readonly number[], place: readonly number[]): number {
  return place.reduce((flat, at, axis) => flat * (shape[axis] as number) + at, 0);
}

export const at = (value: Value, place: readonly number[]): Scalar =>
  value.data[flatOf(value.shape, place)] as Scalar;

export class Builder {
  readonly random: Random;
  readonly parameters: Value[] = [];
  readonly values: Value[] = [];
  readonly lines: string[] = [];
  /** Functions that the program calls, beside its own. */
  readonly functions: string[] = [];
  #next = 0;

  constructor(random: Random) {
    this.random = random;
  }

  below(limit: number): number {
    return this.random.below(limit);
  }

  between(low: number, high: number): number {
    return low + this.random.below(high - low + 1);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.random.below(items.length)] as T;
  }

  chance(one: number): boolean {
    return this.random.below(one) === 0;
  }

  /** A permutation of 0 … count - 1. */
  order(count: number): number[] {
    const items = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
      const j = this.below(i + 1);
      [items[i], items[j]] = [items[j] as number, items[i] as number];
    }
    return items;
  }

  /** Some of 0 … count - 1, in rising order. */
  some(count: number): number[] {
    return Array.from({ length: count }, (_, i) => i).filter(() => this.chance(2));
  }

  fresh(): string {
    return `%v${this.#next++}`;
  }

  shape(rank = this.below(4)): number[] {
    return Array.from({ length: rank }, () => (this.chance(12) ? 0 : this.between(1, 5)));
  }

  scalar(element: string): Scalar {
    if (element === "i1") return BigInt(this.below(2));
    if (isFloat(element)) {
      const { largest, mantissa, exponent } = floatOf(element);
      const tiny = 2 ** (2 - 2 ** (exponent - 1) - mantissa);
      const special = [0, -0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, NaN, Infinity, -Infinity];
      const found = this.chance(3)
        ? this.pick([...special, largest, -largest, tiny, -tiny, 3 * tiny])
        : this.chance(2)
          ? this.between(-8, 8) / 4
          : (this.random.uniform() - 0.5) * 2 ** this.between(-6, 9);
      return settled(element, found);
    }
    const [low, high] = rangeOf(element);
    if (this.chance(4))
      return this.pick([low, high, low + 1n, high - 1n, 0n, 1n, settled(element, -1n)]);
    if (this.chance(2)) return settled(element, BigInt(this.between(-9, 9)));
    return settled(element, (BigInt(this.random.bits()) << 32n) | BigInt(this.random.bits()));
  }

  /** A parameter of a type, of any elements or of those that `draw` gives. */
  parameter(
    element: string,
    shape: readonly number[],
    draw: () => Scalar = () => this.scalar(element),
  ): Value {
    const value = {
      name: `%p${this.parameters.length}`,
      element,
      shape,
      data: Array.from({ length: size(shape) }, draw),
    };
    this.parameters.push(value);
    return value;
  }

  /** A value of a type: one that is there, or a parameter. */
  value(element: string, shape: readonly number[]): Value {
    const fit = this.values.filter(
      (each) => each.element === element && each.shape.join() === shape.join(),
    );
    return fit.length > 0 && !this.chance(4) ? this.pick(fit) : this.parameter(element, shape);
  }

  /** Any value there is; a parameter of one of the element types where there is none. */
  any(elements: readonly string[], accept: (value: Value) => boolean = () => true): Value {
    const fit = this.values.filter(
      (each) => elements.includes(each.element) && size(each.shape) <= mostElements && accept(each),
    );
    if (fit.length > 0 && !this.chance(4)) return this.pick(fit);
    for (;;) {
      const shape = this.shape();
      const element = this.pick(elements);
      if (accept({ name: "", element, shape, data: [] })) return this.parameter(element, shape);
    }
  }

  /** An op of one result, whose elements are known. */
  result(
    element: string,
    shape: readonly number[],
    data: readonly Scalar[],
    line: (name: string, type: string) => string,
  ): Value {
    const value = { name: this.fresh(), element, shape, data };
    if (data.length !== size(shape)) throw new Error(`${data.length} elements of ${typed(value)}`);
    this.lines.push(line(value.name, typed(value)));
    this.values.push(value);
    return value;
  }

  /** The generic form of an op of one result. */
  op(
    kind: string,
    operands: readonly Value[],
    attributes: string,
    result: { element: string; shape: readonly number[]; data: readonly Scalar[] },
    regions = "",
  ): Value {
    return this.result(result.element, result.shape, result.data, (name, type) =>
      genericLine(name, kind, operands, attributes, regions, type),
    );
  }

  constant(element: string, shape: readonly number[], data: readonly Scalar[]): Value {
    return this.result(
      element,
      shape,
      data,
      (name, type) =>
        `${name} = stablehlo.constant dense<${denseText(element, shape, data)}> : ${type}`,
    );
  }

  text(results: readonly Value[]): string {
    const types = results.map(typed).join(", ");
    const main = [
      `func.func @main(${this.parameters.map((each) => `${each.name}: ${typed(each)}`).join(", ")}) -> (${types}) {`,
      ...this.lines.map((line) => `  ${line}`),
      `  return ${results.map(({ name }) => name).join(", ")} : ${types}`,
      "}",
    ].join("\n");
    return this.functions.length === 0
      ? main
      : `module {\n${[...this.functions, main].join("\n")}\n}`;
  }
}

export function genericLine(
  name: string,
  kind: string,
  operands: readonly Value[],
  attributes: string,
  regions: string,
  type: string,
): string {
  return `${name} = "stablehlo.${kind}"(${operands.map((each) => each.name).join(", ")})${
    attributes === "" ? "" : ` <{${attributes}}>`
  }${regions === "" ? "" : ` (${regions})`} : (${operands.map(typed).join(", ")}) -> ${type}`;
}

function denseText(element: string, shape: readonly number[], data: readonly Scalar[]): string {
  if (data.length === 0) return "";
  const texts = data.map((each) => scalarText(element, each));
  const nest = (from: number, axis: number): string => {
    if (axis === shape.length) return texts[from] as string;
    const each = size(shape.slice(axis + 1));
    return `[${Array.from({ length: shape[axis] as number }, (_, i) => nest(from + i * each, axis + 1)).join(", ")}]`;
  };
  return new Set(texts).size === 1 ? (texts[0] as string) : nest(0, 0);
}

/** An element as literals have it. */
export function scalarText(element: string, value: Scalar): string {
  if (element === "i1") return value === 0n ? "false" : "true";
  if (typeof value === "bigint") return String(value);
  if (Number.isNaN(value) || !Number.isFinite(value)) return codeText(element, value);
  const text = Object.is(value, -0) ? "-0.0" : value.toExponential();
  return text.includes(".") ? text : text.replace("e", ".0e");
}

function codeText(element: string, value: number): string {
  const digits = { f64: 16, f32: 8, bf16: 4, f16: 4 }[element] ?? 2;
  return `0x${codeOf(element, value).toString(16).toUpperCase().padStart(digits, "0")}`;
}
