/**
 * `scan`: running sums, products and extremes along an axis of any length.
 *
 *   many rows     one launch: a block goes through its rows, one read and one write
 *   few, long     one launch: blocks share a row, and tell each other their totals
 *
 * Either way an element is read once and written once. Elements are combined in an order that sizes and the number of
 * processors decide, so results repeat bit for bit.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch } from "../../device/operation.ts";
import { array, dim } from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import type { Target } from "../../targets/target.ts";
import { collapsed, combinations, stateFormat } from "../reduce/combinations.ts";
import type { Combination } from "../reduce/combinations.ts";
import { collapsedAxes } from "../support/collapse.ts";
import { givenArray, givenAxis, refused, requireFields } from "../support/given.ts";
import type { Fields, GivenArray } from "../support/given.ts";
import { laidOut, lanes, powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import { StridedForm, formText } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import { scanKernel } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import { sharedColumns, sharedScanKernel, sharedWarps } from "./shared-scan.ts";

export type ScanCombination = Extract<Combination, "sum" | "prod" | "min" | "max">;

export interface ScanSpec<X extends DTypeName, Out extends DTypeName> {
  /** A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** The last unless told. */
  readonly axis?: number;
  /** `"sum"` unless told. */
  readonly combine?: ScanCombination;
  /** Whether it runs from the last element to the first. */
  readonly reverse?: boolean;
  /** The format of the result; x's own unless told. */
  readonly out?: DType<Out>;
  /** Instead of what the model would choose. */
  readonly configuration?: ScanConfiguration;
}

export type ScanOperation<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: ArraySpec<X> },
  { readonly out: ArraySpec<Out> },
  Empty,
  ScanConfiguration
>;

const fields: Fields = {
  x: "array",
  axis: "number",
  combine: "choice",
  reverse: "flag",
  out: "format",
  configuration: "settings",
};

/** Every element combined with all before it. */
export function scan<X extends DTypeName, Out extends DTypeName = X>(
  spec: ScanSpec<X, Out>,
): ScanOperation<X, Out> {
  const location = captureLocation();
  requireFields("scan", spec, fields, location);
  const { combine = "sum", reverse = false } = spec;
  if (!["sum", "prod", "min", "max"].includes(combine))
    throw refused(
      "TW9904",
      "scan cannot combine like this",
      "sum, prod, min, max",
      optionText(combine),
      location,
    );
  const x = givenArray("x", "scan", spec.x, [dim("n")], location);
  const axis = givenAxis("scan", spec.axis ?? -1, x.shape.length, location);
  const state = stateFormat("scan", x.dtype, combine, location);
  const out = array(spec.out ?? x.dtype, x.shape);
  const rule = ruleOf(combine, reverse, x.dtype, state, out.dtype);
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "scan",
    inputs: { x },
    outputs: { out },
    plan: (dimensions, target) => {
      const given = laidOut(x, dimensions);
      const made = laidOut(out, dimensions);
      const strides = [given.strides, made.strides];
      const leads = collapsedAxes(
        given.shape.filter((_, each) => each !== axis),
        strides.map((own) => own.filter((_, each) => each !== axis)),
        // Steps along a single row would only hide how its elements are aligned.
      ).map((lead) => (lead.extent === 1 ? { ...lead, strides: [0, 0] } : lead));
      const column = {
        extent: given.shape[axis] ?? 1,
        strides: strides.map((own) => own[axis] ?? 1),
      };
      const axes = [...leads, column];
      const { configuration } = spec;
      if (configuration !== undefined) requirePossible(configuration, axes, target, location);
      return {
        ...planScan(rule, axes, configuration ?? chooseScan(rule, axes, target), kernels),
        source: configuration === undefined ? "heuristic" : "given",
      };
    },
  }) as unknown as ScanOperation<X, Out>;
}

/** Blocks that share a row wait for each other, so that all of them have to run at once. */
function requirePossible(
  configuration: ScanConfiguration,
  axes: readonly StridedAxis[],
  { processors }: Target,
  location: Location,
): void {
  const { rows, columns, workers } = configuration;
  const blocks = axes.slice(0, -1).reduce((product, { extent }) => product * extent, workers);
  const isPower = (number: number): boolean =>
    Number.isSafeInteger(number) && number >= 1 && powerOfTwoFrom(number) === number;
  const isKnown = isPower(rows) && isPower(columns) && Number.isSafeInteger(workers);
  const isShared = rows === 1 && columns >= 32 * sharedWarps && blocks <= processors;
  if (isKnown && (workers === 1 || (workers > 1 && isShared))) return;
  throw refused(
    "TW9904",
    "scan has no such configuration",
    `powers of two for rows and columns; with several workers 1 row, ${32 * sharedWarps} columns or more, and at most ${processors} blocks in all`,
    JSON.stringify(configuration),
    location,
  );
}

function ruleOf(
  combine: ScanCombination,
  reverse: boolean,
  input: DType,
  state: DType,
  out: DType,
): ScanRule {
  const { merge, identity } = combinations[combine];
  const running = {
    sum: (tile: Tile) => tile.cumsum(1, { reverse }),
    prod: (tile: Tile) => tile.cumprod(1, { reverse }),
    min: (tile: Tile) => tile.cummin(1, { reverse }),
    max: (tile: Tile) => tile.cummax(1, { reverse }),
  };
  return {
    ...{ input, state, out, reverse },
    identity: identity(state),
    merge: (left, right) => merge(left as Tile<"f32">, right as Tile<"f32">),
    total: (tile) => collapsed(tile as Tile<"f32">, combine, [1]),
    running: running[combine],
  };
}

/** Elements of a piece that a lane has. */
const elementsPerLane = 16;
/** Rows of a block where neighbours in memory belong to different rows. */
const crossingRows = 64;

export function chooseScan(
  { input, out, state }: Pick<ScanRule, "input" | "out" | "state">,
  axes: readonly StridedAxis[],
  { processors }: Target,
): ScanConfiguration {
  const [lead, column] = [axes.at(-2), axes.at(-1)];
  const extent = column?.extent ?? 1;
  const count = axes.slice(0, -1).reduce((product, axis) => product * axis.extent, 1);
  const isCrossing = lead?.strides[0] === 1 && column?.strides[0] !== 1;
  const least = (8 * widestAccess) / Math.min(input.bits, out.bits);
  const span = lanes * Math.max(least, elementsPerLane);
  const most = powerOfTwoFrom(lead?.extent ?? 1);
  const columns = Math.min(isCrossing ? span / crossingRows : span, powerOfTwoFrom(extent));
  let rows = Math.min(isCrossing ? crossingRows : span / columns, most);
  while (!isCrossing && rows > 1 && count / rows < 2 * processors) rows /= 2;
  const shared = sharedColumns({ state });
  const workers = Math.min(Math.floor(processors / Math.max(1, count)), Math.ceil(extent / shared));
  return workers > 1 ? { rows: 1, columns: shared, workers } : { rows, columns, workers: 1 };
}

function planScan(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  configuration: ScanConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<ScanConfiguration> {
  if (axes.some(({ extent }) => extent === 0))
    return { configuration, source: "heuristic", launches: [] };
  const form = new StridedForm(axes);
  const launch = (): PlannedLaunch => {
    const text = JSON.stringify(configuration) + formText(form.axes);
    const make = configuration.workers > 1 ? sharedScanKernel : scanKernel;
    const kernel = kernels.get(text) ?? make(rule, form, configuration);
    kernels.set(text, kernel);
    const declared = new Set(kernel.kernel.dimensions.map(({ name }) => name));
    const dimensions = Object.entries(form.dimensions()).filter(([name]) => declared.has(name));
    return {
      kernel,
      arguments: { x: { argument: "x", flat: true }, out: { argument: "out", flat: true } },
      dimensions: Object.fromEntries(dimensions),
    };
  };
  return { configuration, source: "heuristic", launches: () => [launch()] };
}
