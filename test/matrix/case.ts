/**
 * Cases of the matrix: one small kernel each, run on a device and compared with the simulator. Between them
 * they cover every op kind with every format it takes, in several layouts and shapes with tails.
 *
 *   exact      the same bits as the simulator, NaN for NaN
 *   ulp        so many units in the last place from the simulator's result, as the function's bound says
 *   reference  within a bound of a float64 reference that follows from the order of the arithmetic
 */
import { openSimulator } from "./simulator.ts";
import { isFloat } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { floatFormats } from "../../src/formats/floats.ts";
import { hostArray, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { arrayParameters, bindDimensions, outputShape } from "../../src/device/binding.ts";
import type { DeviceArray } from "../../src/device/device-array.ts";
import type { Device } from "../../src/device/device.ts";
import type { KernelDefinition } from "../../src/lang/index.ts";
import type { Reference } from "../../src/testing/compare.ts";

export type Arrays = { readonly [name: string]: HostArray };

export type Tolerance =
  | { readonly kind: "exact" }
  | { readonly kind: "ulp"; readonly ulp: number }
  | { readonly kind: "reference"; readonly of: (name: string, index: number) => Reference };

export interface Prepared {
  readonly definition: KernelDefinition;
  readonly inputs: Arrays;
  readonly tolerance: Tolerance;
  /** On the CPU, where it is not that. */
  readonly toleranceOnCpu?: Tolerance;
}

export interface MatrixCase {
  readonly name: string;
  prepare(): Prepared;
}

export const exact: Tolerance = { kind: "exact" };

/** A case whose results are the simulator's, bit for bit. */
export function exactCase(name: string, inputs: Arrays, make: () => KernelDefinition): MatrixCase {
  return { name, prepare: () => ({ definition: make(), inputs, tolerance: exact }) };
}

export interface Outcome {
  readonly name: string;
  /** Undefined where the device agrees. */
  readonly problem: string | undefined;
}

/** Whether a case was refused because it asks for wgmma by its name, or for clusters larger than the target has. */
export function asksForMore(problem: string, target: string): boolean {
  return (
    (problem.startsWith("TW6105:") &&
      problem.includes(`needs wgmma, which ${target} does not have`)) ||
    (problem.startsWith("TW3017:") && problem.includes(`larger clusters than ${target} can place`))
  );
}

/** Runs a case on the device and on the simulator. */
export function runCase(device: Device, one: MatrixCase): Promise<Outcome> {
  const isCpu = device.name === "cpu";
  return runCaseBy((definition, inputs) => runOn(device, definition, inputs), one, isCpu);
}

/** Runs a case by whatever computes a kernel's results, and on the simulator. */
export async function runCaseBy(
  run: (definition: KernelDefinition, inputs: Arrays) => Promise<Arrays>,
  one: MatrixCase,
  isCpu = false,
): Promise<Outcome> {
  try {
    const { definition, inputs, tolerance: usual, toleranceOnCpu } = one.prepare();
    const tolerance = (isCpu ? toleranceOnCpu : undefined) ?? usual;
    const expected = await onSimulator(definition, inputs);
    const found = await run(definition, inputs);
    return { name: one.name, problem: compareAll(found, expected, tolerance) };
  } catch (error) {
    return { name: one.name, problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Runs the kernel on outputs that hold a pattern, so that what is not written shows. */
export async function runOn(
  device: Device,
  definition: KernelDefinition,
  inputs: Arrays,
): Promise<Arrays> {
  const { kernel } = definition;
  const dimensions = bindDimensions(kernel, new Map(Object.entries(inputs)), {}, device.target);
  const given: { [name: string]: DeviceArray } = {};
  try {
    for (const parameter of arrayParameters(kernel)) {
      const { name, type } = parameter;
      const input = inputs[name];
      const shape = outputShape(parameter, dimensions);
      given[name] = await device.upload(input ?? poisoned(type.dtype, shape));
    }
    device.launch(definition, given);
    await device.synchronize();
    const results: { [name: string]: HostArray } = {};
    for (const { name, role } of kernel.parameters) {
      const array = given[name];
      if (role !== "input" && array !== undefined) results[name] = await device.download(array);
    }
    return results;
  } finally {
    for (const array of Object.values(given)) array.dispose();
  }
}

export function poisoned(dtype: DType, shape: readonly number[]): HostArray {
  const array = hostArray(dtype, shape);
  new Uint8Array(array.data.buffer, array.data.byteOffset, array.data.byteLength).fill(0xa5);
  return array;
}

async function onSimulator(definition: KernelDefinition, inputs: Arrays): Promise<Arrays> {
  const device = await openSimulator();
  try {
    return await runOn(device, definition, inputs);
  } finally {
    device.dispose();
  }
}

function compareAll(found: Arrays, expected: Arrays, tolerance: Tolerance): string | undefined {
  for (const [name, array] of Object.entries(expected)) {
    const own = found[name];
    if (own === undefined) return `${name} is missing`;
    const problem = compareArrays(name, own, array, tolerance);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function compareArrays(
  name: string,
  found: HostArray,
  expected: HostArray,
  tolerance: Tolerance,
): string | undefined {
  if (tolerance.kind === "exact" && sameBytes(found, expected)) return undefined;
  const [numbers, wanted] = [valuesOf(found), valuesOf(expected)];
  const wrong: string[] = [];
  let count = 0;
  wanted.forEach((value, index) => {
    const own = numbers[index] ?? NaN;
    if (agrees(own, value, found.dtype, tolerance, name, index)) return;
    count += 1;
    if (wrong.length < 4) wrong.push(`[${index}] ${own}, expected ${value}`);
  });
  return count === 0 ? undefined : `${name}: ${count} of ${wanted.length}: ${wrong.join("; ")}`;
}

function sameBytes(left: HostArray, right: HostArray): boolean {
  const bytes = ({ data }: HostArray): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const [a, b] = [bytes(left), bytes(right)];
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

/** 64-bit integers as such, everything else as numbers. */
function valuesOf(array: HostArray): readonly (number | bigint)[] {
  const { data } = array;
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) return [...data];
  return [...toNumbers(array)];
}

function agrees(
  found: number | bigint,
  expected: number | bigint,
  dtype: DType,
  tolerance: Tolerance,
  name: string,
  index: number,
): boolean {
  if (Object.is(found, expected)) return true;
  if (typeof found === "bigint" || typeof expected === "bigint") return false;
  if (tolerance.kind === "exact") return false;
  if (tolerance.kind === "ulp")
    return Math.abs(found - expected) <= tolerance.ulp * ulpOf(dtype, expected);
  const { value, bound } = tolerance.of(name, index);
  return Object.is(found, value) || Math.abs(found - value) <= bound;
}

/** The distance of neighbouring numbers of the format at a value. */
export function ulpOf(dtype: DType, value: number): number {
  if (!isFloat(dtype)) return 1;
  const { mantissaBits, bias } = floatFormats[dtype.name];
  if (!Number.isFinite(value)) return 0;
  const magnitude = Math.abs(value);
  const exponent = magnitude === 0 ? 1 - bias : Math.floor(Math.log2(magnitude));
  return 2 ** (Math.max(exponent, 1 - bias) - mantissaBits);
}
