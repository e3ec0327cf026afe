/**
 * Whether data read from a file is a launch plan. Files outlive the program that wrote them, and a plan that is
 * wrong in one number launches anything; so every field is looked at, and what does not fit is no plan at all.
 *
 *   { "lanes": 128, "cluster": 1, … }   a plan
 *   { "lanes": -5, … }                  none: the kernel is compiled again, or the manifest refused (TW4020)
 */
import { dtypes } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import type { GridAxis, ParameterRole } from "../ir/node.ts";
import type { SymbolicSize } from "../ir/size.ts";
import type { Position } from "../support/location.ts";
import type {
  BufferElements,
  BufferPlan,
  LaunchParameter,
  LaunchPlan,
  MessageSite,
  TensorMapPlan,
} from "./executable.ts";

type Check = (value: unknown) => boolean;

/** A check for every field of `T`. */
type Fields<T> = { readonly [F in keyof T]-?: Check };

function fieldsOf(value: unknown): { readonly [name: string]: unknown } | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as { readonly [name: string]: unknown })
    : undefined;
}

function record<T>(checks: Fields<T>): Check {
  return (value) => {
    const fields = fieldsOf(value);
    return (
      fields !== undefined &&
      Object.entries<Check>(checks).every(([name, check]) => check(fields[name]))
    );
  };
}

/** One of several records, told apart by `kind`. */
function tagged(checks: { readonly [kind: string]: Check }): Check {
  return (value) => {
    const kind = fieldsOf(value)?.["kind"];
    return (
      typeof kind === "string" && Object.hasOwn(checks, kind) && checks[kind]?.(value) === true
    );
  };
}

const list =
  (of: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(of);
const absentOr =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value));
const oneOf =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value);
const whole =
  (least: number, most: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;

const text: Check = (value) => typeof value === "string";
const truth: Check = (value) => typeof value === "boolean";
const dtype: Check = (value) => Object.values<DType>(dtypes).some((each) => each === value);
const count = whole(0, Number.MAX_SAFE_INTEGER);
const positive = whole(1, Number.MAX_SAFE_INTEGER);
const integer = whole(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

type OfKind<T, K> = Extract<T, { readonly kind: K }>;

const symbolicSizes: { readonly [K in SymbolicSize["kind"]]: Fields<OfKind<SymbolicSize, K>> } = {
  dimension: { kind: text, name: text, multipleOf: positive },
  ceildiv: { kind: text, of: (value) => symbolicSize(value), by: positive },
  floordiv: { kind: text, of: (value) => symbolicSize(value), by: positive },
  product: { kind: text, coefficient: integer, factors: list((value) => symbolicSize(value)) },
  sum: { kind: text, constant: integer, terms: list((value) => symbolicSize(value)) },
};

function byKind<T extends { readonly [kind: string]: Fields<object> }>(checks: T): Check {
  return tagged(
    Object.fromEntries(Object.entries(checks).map(([kind, fields]) => [kind, record(fields)])),
  );
}

const symbolicSize = byKind(symbolicSizes);
export const isSize = either(count, symbolicSize);

const tensorMap = record<TensorMapPlan>({
  array: text,
  dtype,
  extents: list(isSize),
  strides: list(isSize),
  box: list(whole(1, 256)),
  swizzle: oneOf(0, 32, 64, 128),
  fill: oneOf("zero", "nan"),
  use: oneOf("load", "store"),
});

const parameters: { readonly [K in LaunchParameter["kind"]]: Fields<OfKind<LaunchParameter, K>> } =
  {
    array: { kind: text, name: text },
    scalar: { kind: text, name: text, dtype },
    size: { kind: text, size: isSize, bits: oneOf(32, 64) },
    tensorMap: { kind: text, map: tensorMap },
    scratch: { kind: text, name: text, bytes: isSize, zeroed: oneOf(true, false, "once") },
    messages: { kind: text },
  };

const position = absentOr(record<Position>({ file: text, line: count, column: count }));

const message = record<MessageSite>({
  kind: oneOf("print", "assert", "step"),
  text,
  values: list(record<MessageSite["values"][number]>({ dtype, shape: list(positive) })),
  position,
});

const elements = record<BufferElements>({ dtype, shape: list(positive), layout: text });

const buffer = record<BufferPlan>({
  name: text,
  offset: count,
  bytes: count,
  holds: absentOr(either(oneOf("barriers"), elements)),
});

const isGrid = list(record<GridAxis>({ name: text, extent: isSize, cluster: positive }));

const plan = record<Omit<LaunchPlan, "target">>({
  name: text,
  entry: text,
  threadsPerBlock: whole(1, 1024),
  cluster: whole(1, 16),
  blocks: isSize,
  sharedBytes: whole(0, 2 ** 20),
  buffers: list(buffer),
  parameters: list(byKind(parameters)),
  messages: list(message),
  grid: isGrid,
  threads: list(text),
  dependentLaunch: either(truth, oneOf("in a plan")),
});

export function isLaunchPlan(value: unknown): value is Omit<LaunchPlan, "target"> {
  return plan(value);
}

const roles: { readonly [R in ParameterRole]: true } = {
  input: true,
  output: true,
  inout: true,
  scalar: true,
};

/** Whether data is what a manifest says of a kernel's parameters, dimensions and grid. */
export const isKernelData = record({
  name: text,
  position,
  grid: isGrid,
  dimensions: list(record(symbolicSizes.dimension)),
  parameters: list(
    record({
      name: text,
      role: oneOf(...Object.keys(roles)),
      dtype: oneOf(...Object.keys(dtypes)),
      shape: absentOr(list(isSize)),
      strides: absentOr(list(isSize)),
    }),
  ),
});
