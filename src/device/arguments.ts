/** Sorting a launch's arguments into arrays and scalars, each checked against its parameter. */
import { dtypes } from "../formats/dtype.ts";
import type { DType, HostValue } from "../formats/dtype.ts";
import { checkedArray, fromNested, isHostArray } from "../formats/hostarray.ts";
import type { GivenArray, HostArray, NestedList } from "../formats/hostarray.ts";
import type { KernelInterface, KernelParameter } from "../ir/node.ts";
import { refuseForeign } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Target } from "../targets/target.ts";
import { withoutLists } from "./argument-lists.ts";
import { arrayParameters, bindDimensions, checkArray, checkGrid } from "./binding.ts";
import type { ArrayDescription } from "./binding.ts";
import { DeviceArray } from "./device-array.ts";

/** What a launch takes for one parameter. */
export type ArgumentValue = DeviceArray | HostValue;

export interface CollectedArguments {
  readonly arrays: ReadonlyMap<string, DeviceArray>;
  readonly scalars: ReadonlyMap<string, HostValue>;
  readonly dimensions: ReadonlyMap<string, number>;
}

export function collectArguments(
  kernel: KernelInterface,
  given: { readonly [name: string]: ArgumentValue | readonly ArgumentValue[] },
  explicitDimensions: { readonly [name: string]: number },
  target: Target,
): CollectedArguments {
  const args = withoutLists(kernel, given);
  requireNames(kernel, kernel.parameters, args);
  const arrays = new Map<string, DeviceArray>();
  const scalars = new Map<string, HostValue>();
  for (const parameter of kernel.parameters) {
    const value = args[parameter.name];
    if (parameter.role === "scalar")
      scalars.set(parameter.name, requireScalar(kernel, parameter, value));
    else arrays.set(parameter.name, requireArray(kernel, parameter, value));
  }
  const dimensions = bindDimensions(kernel, arrays, explicitDimensions, target);
  for (const parameter of arrayParameters(kernel)) {
    const array = arrays.get(parameter.name);
    if (array !== undefined) checkArray(kernel, parameter, array, dimensions);
  }
  requireSeparateOutputs(kernel, arrays);
  checkGrid(kernel, dimensions);
  return { arrays, scalars, dimensions };
}

/** What `run` takes for one parameter. */
export type InputValue = GivenArray | NestedList | ArgumentValue;

/** What `run` is given: arrays of the host, checked, and everything else as it is. */
export interface CollectedInputs {
  readonly hostArrays: ReadonlyMap<string, HostArray>;
  readonly others: ReadonlyMap<string, ArgumentValue>;
  readonly dimensions: ReadonlyMap<string, number>;
}

/** The kernel's inputs and in-out arrays, each found to fit its parameter before anything is uploaded. */
export function collectInputs(
  kernel: KernelInterface,
  given: { readonly [name: string]: InputValue | readonly InputValue[] },
  explicitDimensions: { readonly [name: string]: number },
  target: Target,
): CollectedInputs {
  const inputs = withoutLists(kernel, given);
  const parameters = kernel.parameters.filter(({ role }) => role !== "output");
  requireNames(kernel, parameters, inputs);
  const hostArrays = new Map<string, HostArray>();
  const others = new Map<string, ArgumentValue>();
  for (const parameter of parameters) {
    const value = inputs[parameter.name];
    const ofHost = hostInput(kernel, parameter, value);
    if (ofHost !== undefined) hostArrays.set(parameter.name, ofHost);
    else if (parameter.role === "scalar")
      others.set(parameter.name, requireScalar(kernel, parameter, value));
    else others.set(parameter.name, requireArray(kernel, parameter, value));
  }
  const arrays = new Map<string, ArrayDescription>(hostArrays);
  for (const [name, value] of others) if (value instanceof DeviceArray) arrays.set(name, value);
  const dimensions = bindDimensions(kernel, arrays, explicitDimensions, target);
  for (const parameter of arrayParameters(kernel)) {
    const array = arrays.get(parameter.name);
    if (array !== undefined) checkArray(kernel, parameter, array, dimensions);
  }
  return { hostArrays, others, dimensions };
}

/** An array of the host; undefined where something else is given, or a scalar is wanted. */
function hostInput(
  kernel: KernelInterface,
  { name, value: { type } }: KernelParameter,
  value: unknown,
): HostArray | undefined {
  if (type.kind !== "ref") return undefined;
  try {
    if (isHostArray(value)) return checkedArray(value);
    return Array.isArray(value) ? fromNested(type.dtype, value as NestedList) : undefined;
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    const message = `it is given as argument ${name} of kernel ${kernel.name}`;
    throw error.withNotes([{ message, location: kernel.location }]);
  }
}

function requireNames(
  kernel: KernelInterface,
  parameters: readonly KernelParameter[],
  args: { readonly [name: string]: unknown },
): void {
  const expected = parameters.map(({ name }) => name);
  const missing = expected.filter((name) => args[name] === undefined);
  const unknown = Object.keys(args).filter((name) => !expected.includes(name));
  if (missing.length === 0 && unknown.length === 0) return;
  const given = Object.keys(args).filter((name) => args[name] !== undefined);
  const problem =
    missing.length > 0
      ? `kernel ${kernel.name} misses ${missing.join(", ")}`
      : `kernel ${kernel.name} does not take ${unknown.join(", ")}`;
  throw new TilewrightError({
    code: "TW4002",
    message: problem,
    expected: expected.join(", ") || "nothing",
    found: given.join(", ") || "nothing",
    notes: [{ message: "the kernel is declared here", location: kernel.location }],
  });
}

function requireArray(
  kernel: KernelInterface,
  parameter: KernelParameter,
  value: unknown,
): DeviceArray {
  if (value instanceof DeviceArray) return requireAligned(kernel, parameter, value as DeviceArray);
  throw wrongKind(kernel, parameter, "an array", value);
}

/** Kernels move up to 16 bytes at once, and count on arrays that begin where that is possible. */
const arrayAlignment = 16;

function requireAligned(
  kernel: KernelInterface,
  { name }: KernelParameter,
  array: DeviceArray,
): DeviceArray {
  if (array.offset % arrayAlignment === 0) return array;
  throw new TilewrightError({
    code: "TW4026",
    message: `argument ${name} of kernel ${kernel.name} is a view that begins at byte ${array.offset}`,
    expected: `a multiple of ${arrayAlignment} bytes`,
    found: `${array.offset} bytes`,
  });
}

function requireScalar(
  kernel: KernelInterface,
  parameter: KernelParameter,
  value: unknown,
): HostValue {
  const { type } = parameter.value;
  if (type.kind !== "scalar") throw new Error(`${parameter.name} is declared scalar`);
  if (isValueOf(type.dtype, value)) return value;
  throw wrongKind(kernel, parameter, describeValues(type.dtype), value);
}

/** Whether a JavaScript value is one that the format's scalars are written as. */
function isValueOf(dtype: DType, value: unknown): value is HostValue {
  if (dtype.kind === "bool") return typeof value === "boolean";
  if (dtype.kind === "float") return typeof value === "number";
  const [lowest, highest] = integerRange(dtype);
  if (dtype === dtypes.i64 || dtype === dtypes.u64)
    return typeof value === "bigint" && value >= lowest && value <= highest;
  return (
    Number.isInteger(value) &&
    BigInt(value as number) >= lowest &&
    BigInt(value as number) <= highest
  );
}

function integerRange(dtype: DType): readonly [bigint, bigint] {
  const bits = BigInt(dtype.bits);
  return dtype.kind === "signed"
    ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n]
    : [0n, (1n << bits) - 1n];
}

function describeValues(dtype: DType): string {
  if (dtype.kind === "bool") return "a boolean";
  if (dtype.kind === "float") return `a number, for ${dtype.name}`;
  const [lowest, highest] = integerRange(dtype);
  const host = dtype.bits === 64 ? "a BigInt" : "a whole number";
  return `${host} from ${lowest} to ${highest}, for ${dtype.name}`;
}

function wrongKind(
  kernel: KernelInterface,
  parameter: KernelParameter,
  expected: string,
  value: unknown,
): TilewrightError {
  refuseForeign(`argument ${parameter.name} of kernel ${kernel.name}`, value);
  return new TilewrightError({
    code: "TW4013",
    message: `argument ${parameter.name} of kernel ${kernel.name} is not ${expected.split(",")[0] ?? expected}`,
    expected,
    found: isHostArray(value) ? "an array of the host" : describeValue(value),
    ...(isHostArray(value) && {
      remedy: "upload it first, with await device.upload(array); only run takes arrays of the host",
    }),
  });
}

function describeValue(value: unknown): string {
  if (typeof value === "string") return `the text ${JSON.stringify(value)}`;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return `${typeof value} ${value}`;
  if (ArrayBuffer.isView(value)) return "a typed array without a dtype and a shape";
  if (value === null) return "null";
  return Array.isArray(value) ? "a plain list" : `a value of type ${typeof value}`;
}

/** An output that is also another argument would be read and written unordered. */
function requireSeparateOutputs(
  kernel: KernelInterface,
  arrays: ReadonlyMap<string, DeviceArray>,
): void {
  for (const { name, role } of kernel.parameters) {
    if (role !== "output" && role !== "inout") continue;
    const own = arrays.get(name);
    const twin = [...arrays].find(([other, array]) => other !== name && own?.overlaps(array));
    if (twin === undefined) continue;
    throw new TilewrightError({
      code: "TW4014",
      message: `kernel ${kernel.name} is given one array for ${name} and for ${twin[0]}`,
      expected: "two arrays",
      found: twin[1] === own ? "the same array twice" : "two views of one array that overlap",
    });
  }
}
