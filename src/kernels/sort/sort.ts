/**
 * `sort` and `argsort`: elements in order along an axis, with arrays that go along.
 *
 *   rows up to 4,096     one launch: each by one block, in its registers
 *   longer rows          the totals of digits, and a pass for each 8 bits: 4 for keys of 32, each reads and writes once
 *
 * Both keep the order of equal elements. Arrays that lie otherwise than by rows along the axis are brought there and back; payloads are
 * fetched once, at the end, by the places that keys came from.
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
import { AxisRows } from "./axis-rows.ts";
import { requireKeys } from "./order-key.ts";
import { countDigitsKernel, passesOf, stateShape, tileKeys } from "./radix-kernels.ts";
import type { RadixConfiguration, RadixForm } from "./radix-kernels.ts";
import { radixPassKernel } from "./radix-pass.ts";
import { mostKeys } from "./decoupled-look-back.ts";
import { chooseShortRows, mostInBlock, sortRowsKernel } from "./block-sort.ts";
import { takeAlongKernel, takeAlongLaunch } from "./take-along.ts";

interface OrderSpec<X extends DTypeName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** The last unless told. */
  readonly axis?: number;
  /** Greatest first. */
  readonly descending?: boolean;
  /** Instead of what the model would choose: sorted by digits, in tiles of this size. */
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
    { of: "sort", spec, writesKeys: true, writesPlaces: indices, payloads },
    location,
  ) as unknown as SortOperation<X, P, I>;
}

/** Where the elements of an axis are in order: `x` taken by them is `sort`'s result. */
export function argsort<X extends DTypeName>(spec: ArgsortSpec<X>): ArgsortOperation<X> {
  const location = captureLocation();
  requireFields("argsort", spec, fields, location);
  return ordering(
    { of: "argsort", spec, writesKeys: false, writesPlaces: true, payloads: {} },
    location,
  ) as unknown as ArgsortOperation<X>;
}

interface Ordering {
  readonly of: string;
  readonly spec: OrderSpec<DTypeName>;
  readonly writesKeys: boolean;
  readonly writesPlaces: boolean;
  readonly payloads: TensorSpecs;
}

function ordering(
  { of, spec, writesKeys, writesPlaces, payloads }: Ordering,
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
    writesPlaces: writesPlaces || Object.keys(payloads).length > 0,
    returnsPlaces: writesPlaces,
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
      ...(writesPlaces && { indices: tensor(dtypes.i32, x.shape) }),
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

/** Refuses payloads that cannot go along, and two that would give the same result, as `a` and `A` do. */
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

/** Refuses what cannot follow the elements of x: another shape, other strides, parts of bytes. */
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
    `${name} of ${of} cannot go along`,
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
  /** Whether places are found, and whether they are a result. */
  readonly writesPlaces: boolean;
  readonly returnsPlaces: boolean;
  readonly payloads: TensorSpecs;
  readonly location: Location;
  readonly kernels: Map<string, KernelDefinition>;
}

/** The names of the arrays that rows are sorted from and into, all [rows, length]. */
interface RowNames {
  readonly x: string;
  readonly out: string;
  readonly places: string;
}

function planOrder(order: Order, dimensions: { readonly [name: string]: number }, target: Target) {
  const { x, axis, writesKeys, writesPlaces, returnsPlaces } = order;
  const along = new AxisRows(x, axis, dimensions);
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
  const places = returnsPlaces ? "indices" : "places of keys";
  const names: RowNames = isDirect
    ? { x: "x", out: "out", places }
    : { x: "rows of x", out: "rows of out", places: "rows of places" };
  const scratch: { [name: string]: ScratchArray } = {};
  const scratched = (name: string, dtype: DType): void => {
    scratch[name] = { dtype, shape: [rows, length] };
  };
  if (writesPlaces && !returnsPlaces) scratched(places, dtypes.i32);
  const steps: Step[] = [];
  if (!isDirect) {
    scratched(names.x, x.dtype);
    steps.push(along.forth("x", names.x));
  }
  const radix = "warps" in configuration;
  const sorted = radix
    ? radixSteps(order, configuration, names, rows, length, target)
    : shortSteps(order, configuration, names, rows, length);
  steps.push(...sorted.steps);
  Object.assign(scratch, sorted.scratch);
  const returned = (from: string, to: string, dtype: DType): void => {
    if (isDirect) return;
    scratched(from, dtype);
    steps.push(along.back(from, to, dtype, length));
  };
  if (writesKeys) returned(names.out, "out", x.dtype);
  if (writesPlaces) returned(names.places, places, dtypes.i32);
  for (const [name, { dtype }] of Object.entries(order.payloads))
    steps.push(() => [
      takeAlongLaunch({
        kernel: known(order, `take ${dtype.name}`, () => takeAlongKernel(dtype)),
        x: name,
        places,
        out: sortedName(name),
        shapes: { outer, length, kept: length, inner },
      }),
    ]);
  const { launches, scratch: more } = composed(steps, target);
  return { configuration, source, launches, scratch: { ...scratch, ...more } };
}

/** By digits where rows are longer than a block sorts. */
function chooseOrder(
  { x, writesPlaces }: Order,
  rows: number,
  length: number,
  { processors }: Target,
): SortConfiguration {
  // Keys alone leave room for larger tiles, of which fewer have to tell their counts.
  if (length > mostInBlock)
    return { warps: 8, items: x.dtype.bits === 64 ? 8 : writesPlaces ? 16 : 32 };
  return chooseShortRows(rows, length, processors);
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

function shortSteps(
  order: Order,
  { rows: each, columns }: { readonly rows: number; readonly columns: number },
  names: RowNames,
  rows: number,
  length: number,
): Steps {
  const { descending, writesKeys, writesPlaces, x } = order;
  const form = { dtype: x.dtype, descending, rows: each, columns, writesKeys, writesPlaces };
  const shape = [rows, length];
  const launch = (): readonly PlannedLaunch[] => [
    {
      kernel: known(order, JSON.stringify(["short", each, columns, alignment(length)]), () =>
        sortRowsKernel(form, length),
      ),
      arguments: {
        x: { argument: names.x, shape },
        ...(writesKeys && { out: { argument: names.out, shape } }),
        ...(writesPlaces && { to: { argument: names.places, shape } }),
      },
    },
  ];
  return { steps: [launch], scratch: {} };
}

/** What passes tell each other, by a name that no payload can have. */
const digitCounts = "counts of digits";

/** Blocks that count digits, for each processor. */
const countingBlocks = 4;

function radixSteps(
  order: Order,
  configuration: RadixConfiguration,
  names: RowNames,
  rows: number,
  length: number,
  target: Target,
): Steps {
  const { descending, writesKeys, writesPlaces, x } = order;
  const form: RadixForm = { dtype: x.dtype, descending, ...configuration };
  const state = stateShape(form, rows, length);
  const passes = passesOf(x.dtype);
  const shape = [rows, length];
  const tiles = Math.ceil(length / tileKeys(form));
  const parts = Math.max(
    1,
    Math.min(tiles, Math.ceil((countingBlocks * target.processors) / rows)),
  );
  const text = (kind: string): string => JSON.stringify([kind, configuration]);
  // Every second pass writes the result, the last one among them.
  const isResult = (pass: number): boolean => (passes - 1 - pass) % 2 === 0;
  const keysAfter = (pass: number): string =>
    pass < 0 ? names.x : !isResult(pass) ? "keys 0" : writesKeys ? names.out : "keys 1";
  const placesAfter = (pass: number): string => (isResult(pass) ? names.places : "places 0");
  const scratch: { [name: string]: ScratchArray } = {
    [digitCounts]: { dtype: dtypes.u32, shape: state },
  };
  const made = Array.from({ length: passes }, (_, pass) => pass);
  for (const pass of made) {
    const isWritten = writesKeys || pass < passes - 1;
    if (isWritten && keysAfter(pass) !== names.out)
      scratch[keysAfter(pass)] = { dtype: x.dtype, shape };
    if (writesPlaces && !isResult(pass)) scratch["places 0"] = { dtype: dtypes.i32, shape };
  }
  const count = (): readonly PlannedLaunch[] => [
    {
      kernel: known(order, text("count"), () => countDigitsKernel(form)),
      arguments: { x: { argument: names.x, shape }, state: { argument: digitCounts } },
      dimensions: { parts },
    },
  ];
  const pass = (number: number): PlannedLaunch => {
    const places = !writesPlaces ? "none" : number === 0 ? "first" : "read";
    const isWritten = writesKeys || number < passes - 1;
    return {
      kernel: known(order, text(`${places} ${isWritten}`), () =>
        radixPassKernel(form, { places, writesKeys: isWritten }),
      ),
      arguments: {
        x: { argument: keysAfter(number - 1), shape },
        pass: { scalar: number },
        state: { argument: digitCounts },
        ...(isWritten && { out: { argument: keysAfter(number), shape } }),
        ...(places === "read" && { from: { argument: placesAfter(number - 1), shape } }),
        ...(places !== "none" && { to: { argument: placesAfter(number), shape } }),
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
