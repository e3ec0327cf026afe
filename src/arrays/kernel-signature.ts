/**
 * Whether a kernel and what it means go together: as many arrays, of the same formats and shapes. What differs would be found
 * by a device, or by none; so it is looked at when the meaning is recorded, wherever it then runs.
 *
 *   kernel    x: f32[n]        ──▶ y: f32[n], total: f32[]
 *   meaning   x: f32[4]        ──▶ [f32[4], f32[]], or { total: f32[], y: f32[4] }
 */
import { arrayParameters, bindDimensions, checkArray, checkGrid } from "../device/binding.ts";
import type { ArrayDescription, ArrayParameter } from "../device/binding.ts";
import type { Operation } from "../device/operation.ts";
import type { DType } from "../formats/dtype.ts";
import { storageOf } from "../graph/lower/storage.ts";
import { elements } from "../graph/ops/elements.ts";
import type { GraphValue } from "../graph/ops/node.ts";
import { typeText } from "../graph/ops/types.ts";
import { evaluateSize, shapeText } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import { NDArray, typeOfArray } from "./array.ts";
import { chosenTarget } from "./device.ts";

interface Refusal {
  readonly message: string;
  readonly expected: string;
  readonly found: string;
  readonly remedy: string;
}

/** A kernel that does not go with its meaning, or is none that programs can call. */
export function refused({ name, kernel }: Operation, refusal: Refusal): TilewrightError {
  return new TilewrightError({
    code: "TW9318",
    ...refusal,
    message: `${name}: ${refusal.message}`,
    notes: [{ message: "the kernel is declared here", location: kernel.location }],
  });
}

/** Fails unless a kernel takes and makes arrays alone. */
export function requireArraysAlone(operation: Operation): void {
  const { kernel, inputs, inouts, outputs } = operation;
  const arrays = new Set(arrayParameters(kernel).map((each) => each.name));
  const other = Object.keys(inputs).find((each) => !arrays.has(each));
  if (other !== undefined)
    throw refused(operation, {
      message: "an input is no array",
      expected: "inputs that are arrays",
      found: `the scalar ${other}`,
      remedy: `declare ${other} as an array of one element, ${other}: tensor(…, [1])`,
    });
  const [updated] = Object.keys(inouts);
  if (updated !== undefined)
    throw refused(operation, {
      message: "an array is updated in place",
      expected: "inputs and outputs",
      found: `inout ${updated}`,
      remedy: `read ${updated} as an input and write an output: arrays of programs do not change`,
    });
  if (Object.keys(outputs).length === 0)
    throw refused(operation, {
      message: "it has no result",
      expected: "a kernel with outputs",
      found: "none",
      remedy: "declare what it writes in outputs",
    });
}

function parametersOf(
  { kernel }: Operation,
  specs: { readonly [name: string]: unknown },
): readonly ArrayParameter[] {
  const arrays = new Map(arrayParameters(kernel).map((each) => [each.name, each]));
  return Object.keys(specs).flatMap((name) => arrays.get(name) ?? []);
}

function declaredText(parameters: readonly ArrayParameter[]): string {
  return parameters
    .map(({ name, type }) => `${name}: ${type.dtype.name}${shapeText(type.shape)}`)
    .join(", ");
}

function countText(count: number): string {
  return `${count} ${count === 1 ? "array" : "arrays"}`;
}

/** The arguments, one for each input of the kernel. */
export function requireArguments(
  operation: Operation,
  args: readonly unknown[],
): readonly NDArray[] {
  const inputs = parametersOf(operation, operation.inputs);
  const found = args.filter((each) => each instanceof NDArray);
  if (found.length === inputs.length && args.length === inputs.length) return found;
  throw refused(operation, {
    message: `it is called with other arguments than the kernel has inputs`,
    expected: `${countText(inputs.length)}: ${declaredText(inputs)}`,
    found: `${args.length}: ${args.map(argumentText).join(", ") || "nothing"}`,
    remedy: "give an array for each input, in the order in which the kernel declares them",
  });
}

function argumentText(value: unknown): string {
  return value instanceof NDArray ? typeText(value.value.type) : optionText(value);
}

/** What meanings are recorded once for: the types of the arguments and, where shapes depend on it, the device's size. */
export function signatureKey({ kernel }: Operation, inputs: readonly GraphValue[]): string {
  const ofDevice = kernel.dimensions.some(({ name }) => name === "processors");
  const types = inputs.map(({ type }) => typeText(type)).join();
  return ofDevice ? `${types} ${chosenTarget().processors}` : types;
}

/** Where the kernel's outputs are among the arrays of a result, and the other way round. */
export interface ResultPlaces {
  /** For each output, its place among the result's arrays in the order of `flatten`. */
  readonly ofOutputs: readonly number[];
  /** For each of the result's arrays, the place of its output. */
  readonly ofLeaves: readonly number[];
}

/** Values in another order. */
export function inOrder<T>(values: readonly T[], places: readonly number[]): readonly T[] {
  return places.map((place) => values[place] as T);
}

/** Which array of a result is which output: a list has them in the kernel's order, a record by their names. */
export function resultPlaces(operation: Operation, result: unknown): ResultPlaces {
  const outputs = parametersOf(operation, operation.outputs);
  const names = outputs.map(({ name }) => name);
  const wrong = (message: string, found: string): TilewrightError =>
    refused(operation, {
      message,
      expected: `${declaredText(outputs)}: ${formText(names)}`,
      found,
      remedy: "return an array for each output of the kernel, in its order or by its name",
    });
  if (isNamed(result)) {
    const given = Object.keys(result).sort();
    if ([...names].sort().join() !== given.join())
      throw wrong("its meaning names other results than the kernel has outputs", given.join(", "));
    const other = given.find((name) => !(result[name] instanceof NDArray));
    if (other !== undefined)
      throw wrong(
        `its meaning gives no array for ${other}`,
        `${other}: ${argumentText(result[other])}`,
      );
    return {
      ofOutputs: names.map((name) => given.indexOf(name)),
      ofLeaves: given.map((name) => names.indexOf(name)),
    };
  }
  const leaves = listed(result);
  if (leaves.length !== names.length || !leaves.every((each) => each instanceof NDArray))
    throw wrong(
      "its meaning gives other results than the kernel has outputs",
      `${leaves.length}: ${leaves.map(argumentText).join(", ") || "nothing"}`,
    );
  const places = names.map((_, place) => place);
  return { ofOutputs: places, ofLeaves: places };
}

function formText(names: readonly string[]): string {
  const record = `{ ${names.join(", ")} }`;
  return names.length === 1
    ? `an array, [${names.join()}] or ${record}`
    : `[${names.join(", ")}] or ${record}`;
}

function isNamed(result: unknown): result is { readonly [name: string]: unknown } {
  return (
    typeof result === "object" &&
    result !== null &&
    !Array.isArray(result) &&
    !(result instanceof NDArray)
  );
}

/** What lists hold, one after another. */
function listed(result: unknown): readonly unknown[] {
  return Array.isArray(result) ? result.flatMap(listed) : [result];
}

/** Fails unless the kernel takes arrays of these types, and makes such results of them. */
export function requireAgreement(
  operation: Operation,
  inputs: readonly GraphValue[],
  results: readonly GraphValue[],
): void {
  const { kernel } = operation;
  const taken = parametersOf(operation, operation.inputs);
  const given = parametersOf(operation, operation.outputs);
  requireFormats(operation, "arguments", taken, inputs);
  requireFormats(operation, "results of its meaning", given, results);
  const arrays = descriptions(taken, inputs);
  const made = descriptions(given, results);
  const dimensions = dimensionsOf(operation, arrays, made);
  for (const parameter of taken)
    checkArray(kernel, parameter, arrays.get(parameter.name) as ArrayDescription, dimensions);
  for (const parameter of given) {
    const found = made.get(parameter.name) as ArrayDescription;
    requireShape(operation, parameter, found, dimensions);
    if (parameter.strides !== undefined) checkArray(kernel, parameter, found, dimensions);
  }
  checkGrid(kernel, dimensions);
}

/** The format of an array in programs, where it is the one that kernels have under this name. */
function formatOf(value: GraphValue): DType | undefined {
  const { element } = typeOfArray(value);
  const { dtype, kind } = elements[element];
  const stored = storageOf(element);
  // Integers of 2 and 4 bits lie one in a byte in programs, and packed in kernels.
  return kind === "float" || stored === dtype ? stored : undefined;
}

function requireFormats(
  operation: Operation,
  what: string,
  parameters: readonly ArrayParameter[],
  values: readonly GraphValue[],
): void {
  const other = parameters.find(({ type }, i) => formatOf(values[i] as GraphValue) !== type.dtype);
  if (other === undefined) return;
  throw refused(operation, {
    message: `${what} have other formats than the kernel's: ${other.name} is of ${other.type.dtype.name}`,
    expected: declaredText(parameters),
    found: values.map(({ type }) => typeText(type)).join(", "),
    remedy: `convert with astype, or declare ${other.name} of another format`,
  });
}

function descriptions(
  parameters: readonly ArrayParameter[],
  values: readonly GraphValue[],
): ReadonlyMap<string, ArrayDescription> {
  return new Map(
    parameters.map(({ name, type }, i) => [
      name,
      { dtype: type.dtype, shape: typeOfArray(values[i] as GraphValue).shape },
    ]),
  );
}

/** The dimensions that the arguments give; those that only outputs have are what the meaning makes of them. */
function dimensionsOf(
  operation: Operation,
  inputs: ReadonlyMap<string, ArrayDescription>,
  results: ReadonlyMap<string, ArrayDescription>,
): ReadonlyMap<string, number> {
  const { kernel } = operation;
  try {
    return bindDimensions(kernel, inputs, {}, chosenTarget());
  } catch (error) {
    if (!(error instanceof TilewrightError) || error.code !== "TW4008") throw error;
  }
  try {
    return bindDimensions(kernel, new Map([...inputs, ...results]), {}, chosenTarget());
  } catch (error) {
    if (!(error instanceof TilewrightError) || error.code === "TW4008") throw error;
    throw refused(operation, {
      message: "its meaning makes arrays of other shapes than the kernel",
      expected: `${declaredText(parametersOf(operation, operation.outputs))} (${error.summary}: ${error.expected})`,
      found: error.found,
      remedy: "make the meaning's results have the shapes of the kernel's outputs",
    });
  }
}

/** Fails unless a result of the meaning has the shape of the kernel's output. */
function requireShape(
  operation: Operation,
  { name, type }: ArrayParameter,
  { shape }: ArrayDescription,
  dimensions: ReadonlyMap<string, number>,
): void {
  const declared = type.shape.map((size) => evaluateSize(size, dimensions));
  if (declared.length === shape.length && declared.every((extent, axis) => extent === shape[axis]))
    return;
  const [generic, exact] = [shapeText(type.shape), shapeText(declared)];
  throw refused(operation, {
    message: `its meaning makes ${name} of another shape than the kernel`,
    expected: generic === exact ? exact : `${exact}, which is ${generic} here`,
    found: shapeText(shape),
    remedy: "make the meaning's result have the shape of the kernel's output",
  });
}
