/**
 * Kernels of other compilers with what they must compute: inputs, the shape of the launch, and a check
 * against references of their own. Whatever runs them, an emulator or a device, works from this.
 */
import { expect } from "vitest";
import type { TensorMap } from "../../src/emulator/tensor-map.ts";

export type NumberArray =
  | Uint8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array;
export type Data = NumberArray | BigInt64Array | BigUint64Array;

export type Argument =
  /** An array that the kernel reads; what it holds afterwards is handed to the check as well. */
  | { readonly kind: "input"; readonly name: string; readonly data: Data }
  /** An array whose contents are undefined before; `data` gives its type and length. */
  | { readonly kind: "output"; readonly name: string; readonly data: Data }
  | { readonly kind: "scalar"; readonly value: number }
  /** An f32 by value. */
  | { readonly kind: "single"; readonly value: number }
  /** An array of the addresses of arrays. */
  | { readonly kind: "addresses"; readonly name: string; readonly arrays: readonly Argument[] }
  /** A tensor map of an array of its own. */
  | { readonly kind: "map"; readonly data: Data; readonly map: Omit<TensorMap, "address"> };

export interface Results {
  numbers(name: string): NumberArray;
  bigints(name: string): BigInt64Array | BigUint64Array;
}

export interface ForeignCase {
  /** Of the fixture, in test/fixtures/ptx. */
  readonly file: string;
  readonly entry: string;
  readonly blocks: readonly [number, number, number];
  readonly threads: readonly [number, number, number];
  readonly cluster?: number | undefined;
  /** Dynamic shared memory. */
  readonly sharedBytes?: number | undefined;
  readonly arguments: readonly Argument[];
  check(results: Results): void;
}

export function input(name: string, data: Data): Argument {
  return { kind: "input", name, data };
}

export function output(name: string, data: Data): Argument {
  return { kind: "output", name, data };
}

/** A 32-bit integer. */
export function scalar(value: number): Argument {
  return { kind: "scalar", value };
}

export function made<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => make(index));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** An element that a reference knows to be there. */
export function at(values: ArrayLike<number>, index: number): number {
  const value = values[index];
  if (value === undefined) throw new RangeError(`no element ${index} of ${values.length}`);
  return value;
}

/** Every element within its own tolerance of the reference; the first that is not is named. */
export function expectClose(
  found: ArrayLike<number>,
  expected: readonly number[],
  tolerance: (index: number) => number,
): void {
  expect(found.length).toBe(expected.length);
  const wrong = expected.findIndex((value, index) => {
    const other = at(found, index);
    return !(Object.is(value, other) || Math.abs(value - other) <= tolerance(index));
  });
  if (wrong < 0) return;
  expect.fail(
    `element ${wrong} is ${found[wrong]}, not ${expected[wrong]} within ${tolerance(wrong)}`,
  );
}

/** The distance from an f32 to the next one. */
export function singleUlp(value: number): number {
  return 2 ** (Math.max(-126, exponent(value)) - 23);
}

/** The distance from an f64 to the next one. */
export function doubleUlp(value: number): number {
  return 2 ** (Math.max(-1022, exponent(value)) - 52);
}

function exponent(value: number): number {
  if (value === 0) return -1022;
  const guess = Math.floor(Math.log2(Math.abs(value)));
  if (2 ** guess > Math.abs(value)) return guess - 1;
  return 2 ** (guess + 1) <= Math.abs(value) ? guess + 1 : guess;
}
