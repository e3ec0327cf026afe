/**
 * Testing a kernel against what it means. One call runs the kernel of a function that `fromKernel` made beside its meaning, on
 * inputs that are given or random, and compares every element with the meaning in float64:
 *
 *   bound = factor · (what rounding every op of the meaning to its format can do, in first order, and one rounding of the result)
 *
 * Derivatives: cotangents of a backward function are held against those of the meaning, within bounds that are found likewise, and
 * those of the meaning against differences of its values in float64.
 */
import { arrayParameters, bindDimensions, outputShape } from "../device/binding.ts";
import type { Operation } from "../device/operation.ts";
import type { NDArray } from "../arrays/array.ts";
import { NDArray as ArrayOf } from "../arrays/array.ts";
import { kernelFunctionOf } from "../arrays/kernels.ts";
import type { KernelFunction } from "../arrays/kernels.ts";
import { recordFunction } from "../arrays/trace-function.ts";
import { vjp } from "../arrays/transforms.ts";
import { flatten, rebuild } from "../arrays/tree.ts";
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { fromNumbers, isHostArray } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { arrayOfTensor, numbersOf, tensor, tensorOfArray } from "../graph/evaluate/index.ts";
import type { Tensor } from "../graph/evaluate/index.ts";
import { elementOfDType, isFloatElement } from "../graph/ops/elements.ts";
import { graphRegion, graphValue, moduleOf } from "../graph/ops/node.ts";
import type { GraphRegion } from "../graph/ops/node.ts";
import { sizeOf, tensorType } from "../graph/ops/types.ts";
import { compilePlan } from "../graph/plan/compile.ts";
import { Program } from "../graph/plan/program.ts";
import { differentiablePlaces, vjp as vjpOf } from "../graph/transform/jvp.ts";
import { open } from "../runtime/open.ts";
import { deviceNames, oneOf, requireRules, seedRule, truthRule } from "../runtime/open-options.ts";
import type { DeviceName } from "../runtime/open-options.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { optionText, requireKnownOptions } from "../support/options.ts";
import { Random } from "../support/random.ts";
import { defaultTarget } from "../targets/target.ts";
import { compareWithReference } from "./compare.ts";
import type { Comparison } from "./compare.ts";
import { roundoffOf, wide, withBounds } from "./rounding-bounds.ts";

/** Options of `checkMeaning`. */
export interface MeaningOptions {
  /** An array for each input of the kernel; random ones unless given. */
  readonly inputs?: readonly HostArray[] | undefined;
  /** The kernel's dimensions, for random inputs; 100 each, rounded up to the promised multiple, unless given. */
  readonly dimensions?: { readonly [name: string]: number } | undefined;
  /** Of the random numbers; 1 unless given. */
  readonly seed?: number | undefined;
  /** What runs the kernel; the simulator unless given. */
  readonly device?: DeviceName | undefined;
  /** The format that the kernel computes in where it is coarser than its arrays': `"tf32"`. */
  readonly computes?: DTypeName | undefined;
  /** How many times the bound of first order is allowed; 4 unless given, for kernels that compute the same in another way. */
  readonly factor?: number | undefined;
  /** Whether derivatives are checked, too; true unless given. */
  readonly derivatives?: boolean | undefined;
}

/** How far the kernel was from its meaning, by the names of its outputs, and of the inputs that have derivatives. */
export interface MeaningReport {
  /** How far each output is off, by name. */
  readonly outputs: { readonly [name: string]: Comparison };
  /** How far each gradient is off, by name. */
  readonly cotangents: { readonly [name: string]: Comparison };
}

const what = "checkMeaning";
const positive = (value: unknown): boolean => typeof value === "number" && value > 0;
const rules = {
  seed: seedRule,
  device: oneOf(deviceNames),
  computes: oneOf(Object.keys(dtypes)),
  factor: ["a number above 0", positive] as const,
  derivatives: truthRule,
};

/** One check of one function. */
interface Check extends KernelFunction {
  readonly call: (...args: readonly NDArray[]) => unknown;
  readonly location: Location;
  readonly inputs: readonly HostArray[];
  readonly inputNames: readonly string[];
  readonly device: DeviceName;
  readonly random: Random;
  readonly roundoff: number;
  readonly factor: number;
}

/** Runs the kernel beside its meaning; throws TW5101 where they differ, TW5103 where a derivative is none. */
export async function checkMeaning<A extends readonly NDArray[], R>(
  f: (...args: A) => R,
  options: MeaningOptions = {},
): Promise<MeaningReport> {
  const location = captureLocation();
  const made = typeof f === "function" ? kernelFunctionOf(f) : undefined;
  if (made === undefined) throw notFromKernel(f, location);
  const known = ["inputs", "dimensions", ...Object.keys(rules)];
  requireKnownOptions(what, options, known, "TW4015", location);
  requireRules(what, rules, options, location);
  const { seed = 1, device = "simulator", computes, factor = 4, derivatives = true } = options;
  const random = new Random(seed);
  const coarse = computes === "tf32" ? 2 ** -11 : roundoffIn(computes);
  const check: Check = {
    ...made,
    call: f as unknown as Check["call"],
    location,
    inputs: inputsOf(made.operation, options, random, location),
    inputNames: Object.keys(made.operation.inputs),
    device,
    random,
    roundoff: coarse,
    factor,
  };
  try {
    const outputs = await checkOutputs(check);
    const cotangents = derivatives ? await checkDerivatives(check) : {};
    return { outputs, cotangents };
  } catch (error) {
    throw error instanceof TilewrightError && error.position === undefined
      ? error.located(location)
      : error;
  }
}

function roundoffIn(name: DTypeName | undefined): number {
  const element = name === undefined ? undefined : elementOfDType(dtypes[name]);
  return element === undefined ? 0 : roundoffOf(element);
}

function notFromKernel(given: unknown, location: Location): TilewrightError {
  return new TilewrightError({
    code: "TW4023",
    message: `argument 1 of ${what} is no function that fromKernel made`,
    location,
    expected: "what fromKernel(kernel, meaning) returns",
    found: optionText(given),
    remedy: "hand over the function itself, neither jitted nor wrapped in another",
  });
}

const defaultExtent = 100;

function inputsOf(
  { inputs: declared, kernel }: Operation,
  { inputs, dimensions = {} }: MeaningOptions,
  random: Random,
  location: Location,
): readonly HostArray[] {
  const names = Object.keys(declared);
  if (inputs !== undefined) {
    if (Array.isArray(inputs) && inputs.length === names.length && inputs.every(isHostArray))
      return inputs;
    throw new TilewrightError({
      code: "TW4023",
      message: `the inputs of ${what} are not an array of the host for each input of ${kernel.name}`,
      location,
      expected: `a list of ${names.length}: ${names.join(", ")}`,
      found: optionText(inputs),
      remedy: "give arrays such as fromNumbers(f32, [4], [1, 2, 3, 4])",
    });
  }
  const sizes = Object.fromEntries(
    kernel.dimensions
      .filter(({ name }) => name !== "processors")
      .map(({ name, multipleOf }) => [name, Math.ceil(defaultExtent / multipleOf) * multipleOf]),
  );
  const values = bindDimensions(kernel, new Map(), { ...sizes, ...dimensions }, defaultTarget);
  const arrays = new Map(arrayParameters(kernel).map((each) => [each.name, each]));
  return names.map((name) => {
    const parameter = arrays.get(name);
    if (parameter === undefined) throw new Error("fromKernel takes arrays alone");
    return randomArray(parameter.type.dtype.name, outputShape(parameter, values), random);
  });
}

function randomArray(dtype: DTypeName, shape: readonly number[], random: Random): HostArray {
  const { kind } = dtypes[dtype];
  const next = (): number => {
    if (kind === "float") return random.normal();
    if (kind === "bool") return random.below(2);
    return kind === "signed" ? random.below(16) - 8 : random.below(16);
  };
  return fromNumbers(dtypes[dtype], shape, Float64Array.from({ length: sizeOf(shape) }, next));
}

/** Arrays of the types of tensors, for recording. */
function argumentsLike(tensors: readonly Tensor[]): readonly NDArray[] {
  return tensors.map(({ element, shape }) => new ArrayOf(graphValue(tensorType(element, shape))));
}

function record(
  f: (...args: readonly NDArray[]) => unknown,
  tensors: readonly Tensor[],
): GraphRegion {
  const { graph, captures } = recordFunction(what, f, argumentsLike(tensors));
  if (captures.length > 0) throw new Error("fromKernel has refused captures");
  return graph;
}

async function runOn(
  name: DeviceName,
  graph: GraphRegion,
  inputs: readonly Tensor[],
): Promise<readonly Tensor[]> {
  const device = await open(name);
  try {
    const program = await Program.load(device, compilePlan(moduleOf(graph), "main"));
    try {
      return await program.run(inputs);
    } finally {
      program.dispose();
    }
  } finally {
    device.dispose();
  }
}

/** The results that a device gives against those of a graph in float64, within its bounds. */
async function compare(
  check: Check,
  names: readonly string[],
  graphs: { readonly ours: GraphRegion; readonly meant: GraphRegion },
  inputs: readonly Tensor[],
): Promise<{ readonly [name: string]: Comparison }> {
  const { device, roundoff, factor } = check;
  const found = await runOn(device, graphs.ours, inputs);
  const bounded = withBounds(graphs.meant, inputs, { roundoff, errors: true });
  return Object.fromEntries(
    found.map((result, i) => {
      const array = arrayOfTensor(result);
      const reference = bounded[i];
      if (array === undefined || reference === undefined) throw new Error("results are arrays");
      const last = Math.max(
        roundoffOf(result.element),
        isFloatElement(result.element) ? roundoff : 0,
      );
      const values = numbersOf(reference.value);
      const comparison = compareWithReference(
        array,
        (index) => {
          const value = values[index] ?? 0;
          const error = (reference.error?.[index] ?? 0) + last * Math.abs(value);
          return { value, bound: factor * error };
        },
        names[i] ?? "a result",
      );
      return [names[i] ?? "", comparison];
    }),
  );
}

async function checkOutputs(check: Check): Promise<{ readonly [name: string]: Comparison }> {
  const { call, meaning, inputs } = check;
  const tensors = inputs.map((each) => tensorOfArray(each));
  const graphs = { ours: record(call, tensors), meant: record(meaning, tensors) };
  const names = resultNames(check, tensors);
  return told(check, names, "output", (titles) => compare(check, titles, graphs, tensors));
}

/** The outputs' names in the order in which results are recorded. */
function resultNames({ call, operation }: Check, tensors: readonly Tensor[]): readonly string[] {
  const { result } = recordFunction(what, call, argumentsLike(tensors));
  const names = Object.keys(operation.outputs);
  const isRecord =
    typeof result === "object" &&
    result !== null &&
    !(result instanceof ArrayOf) &&
    !Array.isArray(result);
  return isRecord ? [...names].sort() : names;
}

/** Results are compared under titles that say what they are of, and reported under their names. */
async function told(
  { operation }: Check,
  names: readonly string[],
  kind: string,
  work: (titles: readonly string[]) => Promise<{ readonly [title: string]: Comparison }>,
): Promise<{ readonly [name: string]: Comparison }> {
  const titles = names.map((name) => `${kind} ${name} of ${operation.name}`);
  const found = await work(titles);
  return Object.fromEntries(names.map((name, i) => [name, found[titles[i] ?? ""] as Comparison]));
}

async function checkDerivatives(check: Check): Promise<{ readonly [name: string]: Comparison }> {
  const { call, meaning, backward, inputs, inputNames, random } = check;
  const tensors = inputs.map((each) => tensorOfArray(each));
  const meant = record(meaning, tensors);
  const active = differentiablePlaces(meant.parameters);
  const places = differentiablePlaces(meant.results);
  if (active.length === 0 || places.length === 0) return {};
  const cotangents = places.map((i) => {
    const { type } = meant.results[i] ?? {};
    if (type?.kind !== "tensor") throw new Error("results are arrays");
    const dtype = arrayOfTensorType(type.element) as DTypeName;
    return tensorOfArray(randomArray(dtype, type.shape, random));
  });
  const gradient = vjpOf(meant, active);
  const slopes = graphRegion(
    gradient.parameters,
    gradient.ops,
    gradient.results.slice(meant.results.length),
  );
  const given = [...tensors, ...cotangents];
  checkSlopes(check, { meant, slopes, active, places }, tensors, cotangents);
  if (backward === undefined) return {};
  const ours = record((...all) => {
    const args = all.slice(0, tensors.length);
    const [result, pull] = vjp(call, ...args);
    const { leaves } = flatten(result);
    const own = leaves.map((leaf, i) => {
      const at = places.indexOf(i);
      return at < 0 ? leaf : all[tensors.length + at];
    });
    const found = pull(rebuild(result, own));
    return active.map((i) => found[i]);
  }, given);
  const names = active.map((i) => inputNames[i] ?? "");
  return told(check, names, "the cotangent of", (titles) =>
    compare(check, titles, { ours, meant: slopes }, given),
  );
}

function arrayOfTensorType(element: Tensor["element"]): string {
  const found = Object.values(dtypes).find((each) => elementOfDType(each) === element);
  if (found === undefined) throw new Error("kernels have these formats");
  return found.name;
}

interface Slopes {
  readonly meant: GraphRegion;
  readonly slopes: GraphRegion;
  readonly active: readonly number[];
  readonly places: readonly number[];
}

const step = 2 ** -12;

/** Holds the meaning's gradient against differences of its values, along one random direction for each input. */
function checkSlopes(
  { operation, inputNames, random, location }: Check,
  { meant, slopes, active, places }: Slopes,
  inputs: readonly Tensor[],
  cotangents: readonly Tensor[],
): void {
  const options = { roundoff: 0, errors: false };
  const weights = cotangents.map(numbersOf);
  const gradients = withBounds(slopes, [...inputs, ...cotangents], options);
  for (const [at, place] of active.entries()) {
    const point = wide(inputs[place] as Tensor);
    const numbers = numbersOf(point);
    const direction = numbers.map(() => random.normal());
    const along = (h: number): { readonly value: number; readonly size: number } => {
      const moved = tensor(
        "f64",
        point.shape,
        numbers.map((number, i) => number + h * (direction[i] ?? 0)),
      );
      const results = withBounds(
        meant,
        inputs.map((each, i) => (i === place ? moved : each)),
        options,
      );
      let [value, size] = [0, 0];
      for (const [k, i] of places.entries())
        for (const [j, number] of numbersOf((results[i] as { value: Tensor }).value).entries()) {
          const term = number * (weights[k]?.[j] ?? 0);
          value += term;
          size += Math.abs(term);
        }
      return { value, size };
    };
    const slope = (h: number): number => (along(h).value - along(-h).value) / (2 * h);
    const [coarse, fine] = [slope(step), slope(step / 2)];
    const { value: gradient } = gradients[at] as { value: Tensor };
    const found = numbersOf(gradient).reduce((sum, each, i) => sum + each * (direction[i] ?? 0), 0);
    // The differences' own error: of their steps, which two of them show, and of rounding in float64.
    const bound = 4 * Math.abs(coarse - fine) + (along(0).size * 2 ** -46) / step;
    if (Math.abs(found - fine) <= bound) continue;
    throw new TilewrightError({
      code: "TW5103",
      message: `the derivative of what ${operation.name} means is not its slope along ${inputNames[place] ?? ""}`,
      location,
      expected: `${fine} ± ${bound.toPrecision(2)}, from differences in float64`,
      found: String(found),
    });
  }
}
