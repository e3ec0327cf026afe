/**
 * `sort` and `argsort`: stable sorts along an axis, with payloads.
 *
 *   rows up to 4,096     a block sort: one launch, in registers
 *   longer rows          a radix sort: digit histograms, then a pass for each 8 bits, each of which reads and writes once
 *
 * Both are stable. Arrays whose rows are not contiguous along the axis are permuted first, and results back. Payloads are gathered once, at
 * the end, by the indices of the keys.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, PlannedLaunch, ScratchArray } from "../../device/operation.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, TensorSpecs, Empty, KernelDefinition } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import { fill } from "../elementwise/cast.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import {
  givenArray,
  givenAxis,
  refused,
  requireFields,
  requireRows,
  requireShape,
  requiredArray,
  requireSettings,
} from "../support/arguments.ts";
import type { Fields, GivenArray } from "../support/arguments.ts";
import { alignment, powerOfTwoFrom } from "../support/sizes.ts";
import { PermutedRows } from "./permuted-rows.ts";
import { requireKeys } from "./sortable-keys.ts";
import { countDigitsKernel, passesOf, stateShape, tileKeys } from "./radix-kernels.ts";
import type { RadixConfiguration, RadixForm } from "./radix-kernels.ts";
import { radixPassKernel } from "./radix-pass.ts";
import { mostKeys } from "./decoupled-look-back.ts";
import { chooseBlockSort, mostInBlock, sortRowsKernel } from "./block-sort.ts";
import { takeAlongKernel, takeAlongLaunch } from "./take-along.ts";

interface OrderSpec<X extends DTypeName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** The last by default. */
  readonly axis?: number;
  /** Greatest first. */
  readonly descending?: boolean;
  /** Overrides the choice of the planner: a radix sort with tiles of this size. */
  readonly configuration?: RadixConfiguration;
}

/** What `sort` is made for. */
export interface SortSpec<
  X extends DTypeName,
  P extends TensorSpecs,
  I extends boolean,
> extends OrderSpec<X> {
  /** Whether `indices` says where each element was along the axis. */
  readonly indices?: I;
  /** Arrays of x's shape, by rows, whose elements move as those of x do: `weights` gives `sortedWeights`. */
  readonly payloads?: P;
}

/** What `argsort` is made for. */
export type ArgsortSpec<X extends DTypeName> = OrderSpec<X>;

/** Rows in the registers of a block, or by digits. */
export type SortConfiguration =
  | { readonly rows: number; readonly columns: number }
  | RadixConfiguration;

/** The payload `weights` leaves as `sortedWeights`. */
type SortedNames<P extends TensorSpecs> = {
  readonly [N in keyof P & string as `sorted${Capitalize<N>}`]: P[N];
};

function sortedName(name: string): string {
  return `sorted${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}

/** The operation that `sort` makes. */
export type SortOperation<
  X extends DTypeName,
  P extends TensorSpecs,
  I extends boolean,
> = Operation<
  { readonly x: TensorSpec<X> } & P,
  { readonly out: TensorSpec<X> } & (I extends true
    ? { readonly indices: TensorSpec<"i32"> }
    : Empty) &
    SortedNames<P>,
  Empty,
  SortConfiguration
>;

/** The operation that `argsort` makes. */
export type ArgsortOperation<X extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly indices: TensorSpec<"i32"> },
  Empty,
  SortConfiguration
>;

const fields: Fields = {
  x: "array",
  axis: "number",
  descending: "flag",
  configuration: "settings",
};

/** Elements in order along an axis; equal ones keep theirs, and NaN is greater than all numbers. */
export function sort<X extends DTypeName, P extends TensorSpecs = Empty, I extends boolean = false>(
  spec: SortSpec<X, P, I>,
): SortOperation<X, P, I> {
  const location = captureLocation();
  requireFields("sort", spec, { ...fields, indices: "flag", payloads: "named" }, location);
  const { indices = false, payloads = {} } = spec;
  return ordering(
    { of: "sort", spec, writesKeys: true, writesIndices: indices, payloads },
    location,
  ) as unknown as SortOperation<X, P, I>;
}

/** Where the elements of an axis are in order: `x` taken by them is `sort`'s result. */
export function argsort<X extends DTypeName>(spec: ArgsortSpec<X>): ArgsortOperation<X> {
  const location = captureLocation();
  requireFields("argsort", spec, fields, location);
  return ordering(
    { of: "argsort", spec, writesKeys: false, writesIndices: true, payloads: {} },
    location,
  ) as unknown as ArgsortOperation<X>;
}

interface Ordering {
  readonly of: string;
  readonly spec: OrderSpec<DTypeName>;
  readonly writesKeys: boolean;
  readonly writesIndices: boolean;
  readonly payloads: TensorSpecs;
}

function ordering(
  { of, spec, writesKeys, writesIndices, payloads }: Ordering,
  location: Location,
): Operation {
  const x = givenArray("x", of, spec.x, [dim("n")], location);
  const axis = givenAxis(of, spec.axis ?? -1, x.shape.length, location);
  const { descending = false, configuration } = spec;
  requireKeys("x", of, x, location);
  if (configuration !== undefined) requirePossible(of, configuration, location);
  requirePayloads(of, payloads, sortedName, x, location);
  const order: Order = {
    ...{ of, x, axis, descending, configuration, writesKeys, payloads, location },
    writesIndices: writesIndices || Object.keys(payloads).length > 0,
    returnsIndices: writesIndices,
    kernels: new Map(),
  };
  const moved = Object.entries(payloads).map(([name, { dtype }]) => [
    sortedName(name),
    tensor(dtype, x.shape),
  ]);
  return operation({
    name: of,
    inputs: { x, ...payloads },
    outputs: {
      ...(writesKeys && { out: tensor(x.dtype, x.shape) }),
      ...(writesIndices && { indices: tensor(dtypes.i32, x.shape) }),
      ...(Object.fromEntries(moved) as TensorSpecs),
    },
    plan: (dimensions, target) => planOrder(order, dimensions, target),
  }) as unknown as Operation;
}

function requirePossible(of: string, configuration: RadixConfiguration, location: Location): void {
  requireSettings(of, configuration, ["warps", "items"], location);
  const { warps, items } = configuration;
  const isPower = (number: number, most: number): boolean =>
    Number.isSafeInteger(number) &&
    number >= 1 &&
    number <= most &&
    powerOfTwoFrom(number) === number;
  if (isPower(warps, 16) && isPower(items, 32)) return;
  throw refused(
    "TW9904",
    `${of} has no such configuration`,
    "powers of two: warps up to 16, items up to 32",
    JSON.stringify(configuration),
    location,
  );
}

/** Refuses unsupported payloads, and two with the same name of the result, as `a` and `A` have. */
export function requirePayloads(
  of: string,
  payloads: TensorSpecs,
  resultName: (payload: string) => string,
  x: TensorSpec,
  location: Location,
): void {
  const given = new Map<string, string>();
  for (const name of Object.keys(payloads)) {
    requirePayload(name, of, payloads, x, location);
    const result = resultName(name);
    const other = given.get(result);
    if (other !== undefined)
      throw refused(
        "TW9902",
        `two payloads of ${of} give one result`,
        "payloads that differ in more than the case of their first letter",
        `${other} and ${name}, of which both give ${result}`,
        location,
      );
    given.set(result, name);
  }
}

/** Refuses a payload with another shape than x, with strides, or of less than a byte. */
function requirePayload(
  name: string,
  of: string,
  payloads: TensorSpecs,
  x: TensorSpec,
  location: Location,
): void {
  const payload = requiredArray(name, of, payloads[name], location);
  requireRows(name, of, payload, location);
  requireShape(name, of, payload, x.shape, location);
  if (name !== "x" && payload.dtype.bits >= 8) return;
  throw refused(
    "TW9902",
    `${name} of ${of} cannot be a payload`,
    "a name other than x, and elements of 8 bits or more",
    `${name}: ${payload.dtype.name}`,
    location,
  );
}

interface Order {
  readonly of: string;
  readonly x: TensorSpec;
  readonly axis: number;
  readonly descending: boolean;
  readonly configuration: RadixConfiguration | undefined;
  readonly writesKeys: boolean;
  /** Whether indices are found, and whether they are a result. */
  readonly writesIndices: boolean;
  readonly returnsIndices: boolean;
  readonly payloads: TensorSpecs;
  readonly location: Location;
  readonly kernels: Map<string, KernelDefinition>;
}

/** The names of the arrays that rows are sorted from and into, all [rows, length]. */
interface RowNames {
  readonly x: string;
  readonly out: string;
  readonly indices: string;
}

function planOrder(order: Order, dimensions: { readonly [name: string]: number }, target: Target) {
  const { x, axis, writesKeys, writesIndices, returnsIndices } = order;
  const along = new PermutedRows(x, axis, dimensions);
  const { outer, length, inner, rows, isDirect } = along;
  if (length > mostKeys)
    throw refused(
      "TW9902",
      `rows of ${order.of} are too long`,
      `${mostKeys} elements at most`,
      String(length),
      order.location,
    );
  const configuration = order.configuration ?? chooseOrder(order, rows, length, target);
  const source = order.configuration === undefined ? ("heuristic" as const) : ("given" as const);
  if (rows * length === 0) return { configuration, source, launches: [] };

  // Scratch has names that no payload of a user's can have.
  const indices = returnsIndices ? "indices" : "indices of keys";
  const names: RowNames = isDirect
    ? { x: "x", out: "out", indices }
    : { x: "rows of x", out: "rows of out", indices: "rows of indices" };
  const scratch: { [name: string]: ScratchArray } = {};
  const scratched = (name: string, dtype: DType): void => {
    scratch[name] = { dtype, shape: [rows, length] };
  };
  if (writesIndices && !returnsIndices) scratched(indices, dtypes.i32);
  const steps: Step[] = [];
  if (!isDirect) {
    scratched(names.x, x.dtype);
    steps.push(along.toRows("x", names.x));
  }
  const radix = "warps" in configuration;
  const sorted = radix
    ? radixSteps(order, configuration, names, rows, length, target)
    : blockSortSteps(order, configuration, names, rows, length);
  steps.push(...sorted.steps);
  Object.assign(scratch, sorted.scratch);
  const returned = (from: string, to: string, dtype: DType): void => {
    if (isDirect) return;
    scratched(from, dtype);
    steps.push(along.fromRows(from, to, dtype, length));
  };
  if (writesKeys) returned(names.out, "out", x.dtype);
  if (writesIndices) returned(names.indices, indices, dtypes.i32);
  for (const [name, { dtype }] of Object.entries(order.payloads))
    steps.push(() => [
      takeAlongLaunch({
        kernel: known(order, `take ${dtype.name}`, () => takeAlongKernel(dtype)),
        x: name,
        indices,
        out: sortedName(name),
        shapes: { outer, length, kept: length, inner },
      }),
    ]);
  const { launches, scratch: more } = composed(steps, target);
  return { configuration, source, launches, scratch: { ...scratch, ...more } };
}

/** Elements of a row that a block sorts on a CPU. */
const mostOnCpu = 1 << 22;

/** A radix sort for rows longer than a block sorts. */
function chooseOrder(
  { x, writesIndices }: Order,
  rows: number,
  length: number,
  { processors, caches }: Target,
): SortConfiguration {
  // On a CPU a block sorts what lies in memory: there are no registers to fit in, and warps would take turns.
  if (length > mostInBlock && caches !== undefined)
    return length <= mostOnCpu
      ? { rows: 1, columns: powerOfTwoFrom(length) }
      : { warps: 1, items: 32 };
  // Keys alone leave registers for larger tiles, which look back less.
  if (length > mostInBlock)
    return { warps: 8, items: x.dtype.bits === 64 ? 8 : writesIndices ? 16 : 32 };
  return chooseBlockSort(rows, length, processors);
}

function known({ kernels }: Order, text: string, make: () => KernelDefinition): KernelDefinition {
  const found = kernels.get(text) ?? make();
  kernels.set(text, found);
  return found;
}

interface Steps {
  readonly steps: readonly Step[];
  readonly scratch: { readonly [name: string]: ScratchArray };
}

function blockSortSteps(
  order: Order,
  { rows: each, columns }: { readonly rows: number; readonly columns: number },
  names: RowNames,
  rows: number,
  length: number,
): Steps {
  const { descending, writesKeys, writesIndices, x } = order;
  const form = { dtype: x.dtype, descending, rows: each, columns, writesKeys, writesIndices };
  const shape = [rows, length];
  const launch = (): readonly PlannedLaunch[] => [
    {
      kernel: known(order, JSON.stringify(["short", each, columns, alignment(length)]), () =>
        sortRowsKernel(form, length),
      ),
      arguments: {
        x: { argument: names.x, shape },
        ...(writesKeys && { out: { argument: names.out, shape } }),
        ...(writesIndices && { to: { argument: names.indices, shape } }),
      },
    },
  ];
  return { steps: [launch], scratch: {} };
}

/** The state that passes share, by a name that no payload can have. */
const digitCounts = "counts of digits";

/** Blocks of the histogram kernel, for each processor. */
const countingBlocks = 4;

function radixSteps(
  order: Order,
  configuration: RadixConfiguration,
  names: RowNames,
  rows: number,
  length: number,
  target: Target,
): Steps {
  const { descending, writesKeys, writesIndices, x } = order;
  const form: RadixForm = { dtype: x.dtype, descending, ...configuration };
  const state = stateShape(form, rows, length);
  const passes = passesOf(x.dtype);
  const shape = [rows, length];
  const tiles = Math.ceil(length / tileKeys(form));
  const splits = Math.max(
    1,
    Math.min(tiles, Math.ceil((countingBlocks * target.processors) / rows)),
  );
  const text = (kind: string): string => JSON.stringify([kind, configuration]);
  // Every second pass writes the result, the last one among them.
  const isResult = (pass: number): boolean => (passes - 1 - pass) % 2 === 0;
  const keysAfter = (pass: number): string =>
    pass < 0 ? names.x : !isResult(pass) ? "keys 0" : writesKeys ? names.out : "keys 1";
  const indicesAfter = (pass: number): string => (isResult(pass) ? names.indices : "indices 0");
  const scratch: { [name: string]: ScratchArray } = {
    [digitCounts]: { dtype: dtypes.u32, shape: state },
  };
  const made = Array.from({ length: passes }, (_, pass) => pass);
  for (const pass of made) {
    const isWritten = writesKeys || pass < passes - 1;
    if (isWritten && keysAfter(pass) !== names.out)
      scratch[keysAfter(pass)] = { dtype: x.dtype, shape };
    if (writesIndices && !isResult(pass)) scratch["indices 0"] = { dtype: dtypes.i32, shape };
  }
  const count = (): readonly PlannedLaunch[] => [
    {
      kernel: known(order, text("count"), () => countDigitsKernel(form)),
      arguments: { x: { argument: names.x, shape }, state: { argument: digitCounts } },
      dimensions: { parts: splits },
    },
  ];
  const pass = (number: number): PlannedLaunch => {
    const indices = !writesIndices ? "none" : number === 0 ? "first" : "read";
    const isWritten = writesKeys || number < passes - 1;
    return {
      kernel: known(order, text(`${indices} ${isWritten}`), () =>
        radixPassKernel(form, { indices, writesKeys: isWritten }),
      ),
      arguments: {
        x: { argument: keysAfter(number - 1), shape },
        pass: { scalar: number },
        state: { argument: digitCounts },
        ...(isWritten && { out: { argument: keysAfter(number), shape } }),
        ...(indices === "read" && { from: { argument: indicesAfter(number - 1), shape } }),
        ...(indices !== "none" && { to: { argument: indicesAfter(number), shape } }),
      },
    };
  };
  const cleared: Step = {
    operation: fill({ out: tensor(dtypes.u32, state), value: 0 }) as unknown as Operation,
    dimensions: {},
    arrays: { out: digitCounts },
  };
  return { steps: [cleared, count, () => made.map(pass)], scratch };
}
