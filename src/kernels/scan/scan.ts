/**
 * `scan`: running sums, products and extremes along an axis of any length.
 *
 *   many rows     one launch: a block goes through its rows, one read and one write
 *   few, long     three launches: totals of parts, what comes before each part, then the parts themselves
 *
 * Elements are combined in an order that only sizes decide, so results repeat bit for bit.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch } from "../../device/operation.ts";
import { array, dim } from "../../lang/index.ts";
import type { ArraySpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
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
import { beforeKernel, scanKernel } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule, ScanStage } from "./scan-kernel.ts";

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
      );
      const column = {
        extent: given.shape[axis] ?? 1,
        strides: strides.map((own) => own[axis] ?? 1),
      };
      return planScan(rule, [...leads, column], kernels, target);
    },
  }) as unknown as ScanOperation<X, Out>;
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
const blocksPerProcessor = 8;

export function chooseScan(
  { input, out }: Pick<ScanRule, "input" | "out">,
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
  const blocks = Math.ceil(count / rows);
  const pieces = Math.ceil(extent / columns);
  const wanted = Math.floor((blocksPerProcessor * processors) / Math.max(1, blocks));
  const isSplit = blocks < processors && pieces >= 8;
  return { rows, columns, parts: isSplit ? Math.max(1, Math.min(wanted, pieces >> 1)) : 1 };
}

function planScan(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<ScanConfiguration> {
  const configuration = chooseScan(rule, axes, target);
  const { parts } = configuration;
  if (axes.some(({ extent }) => extent === 0))
    return { configuration, source: "heuristic", launches: [] };
  const leads = axes.slice(0, -1);
  const count = leads.reduce((product, { extent }) => product * extent, 1);
  const leadShape = leads.map(({ extent }) => extent);
  const known = (text: string, make: () => KernelDefinition): KernelDefinition => {
    const found = kernels.get(text) ?? make();
    kernels.set(text, found);
    return found;
  };
  const form = new StridedForm(axes);
  const launch = (stage: ScanStage, given: PlannedLaunch["arguments"]): PlannedLaunch => {
    const text = JSON.stringify([stage, configuration]) + formText(form.axes);
    const kernel = known(text, () => scanKernel(stage, rule, form, configuration));
    const declared = new Set(kernel.kernel.dimensions.map(({ name }) => name));
    const dimensions = Object.entries(form.dimensions()).filter(([name]) => declared.has(name));
    return { kernel, arguments: given, dimensions: Object.fromEntries(dimensions) };
  };
  const [x, out] = (["x", "out"] as const).map((argument) => ({ argument, flat: true as const }));
  if (x === undefined || out === undefined) throw new Error("a scan has two arrays");
  if (parts === 1)
    return {
      configuration,
      source: "heuristic",
      launches: () => [launch("scan", { x, out })],
    };
  const launches = (): readonly PlannedLaunch[] => [
    launch("totals", {
      x,
      totals: { argument: "totals", shape: [...leadShape, parts] },
    }),
    {
      kernel: known(JSON.stringify(["before", parts]), () => beforeKernel(rule, parts)),
      arguments: { totals: { argument: "totals" }, before: { argument: "before" } },
    },
    launch("scan", {
      x,
      before: { argument: "before", shape: [...leadShape, parts + 1] },
      out,
    }),
  ];
  const scratch = (columns: number) => ({ dtype: rule.state, shape: [count, columns] });
  return {
    configuration,
    source: "heuristic",
    scratch: { totals: scratch(parts), before: scratch(parts + 1) },
    launches,
  };
}
