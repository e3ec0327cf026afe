/** Plans a scan for the sizes of a launch: other axes are collapsed into as few as possible, then a schedule is chosen. */
import { dtypes } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch } from "../../device/operation.ts";
import type { Size } from "../../ir/size.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import { fill } from "../elementwise/cast.ts";
import { collapsedAxes } from "../support/collapse.ts";
import { composed } from "../support/compose.ts";
import type { Step } from "../support/compose.ts";
import { refused, requireSettings } from "../support/arguments.ts";
import {
  alignment,
  broadcastStrides,
  laidOut,
  threadsPerBlock,
  powerOfTwoFrom,
  widestAccess,
  registersPerThread,
} from "../support/sizes.ts";
import { StridedForm, formText } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import { scanKernel } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import {
  choosePipeline,
  isPossiblePipeline,
  isPipelinable,
  pipelinedDimensions,
  pipelinedScanKernel,
  pipelineWarps,
} from "./tma-pipelined-scan.ts";
import {
  cooperativeBlocks,
  cooperativeColumns,
  gridCooperativeScanKernel,
  cooperativeWarps,
  lookahead,
} from "./grid-cooperative-scan.ts";
import { mailboxName } from "../support/mailbox.ts";
import { aggregatesMailboxShape } from "./block-aggregates.ts";

export interface ScanProblem {
  readonly name: string;
  readonly rule: ScanRule;
  /** The arrays of the rule by name; inputs broadcast to the shape. */
  readonly specs: { readonly [name: string]: TensorSpec };
  readonly shape: readonly Size[];
  readonly axis: number;
  /** Overrides the choice of the planner. */
  readonly configuration?: ScanConfiguration;
}

export function scanning(problem: ScanProblem, location: Location): Operation {
  const { name, rule, specs, configuration } = problem;
  const kernels = new Map<string, KernelDefinition>();
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      rule.arrays.flatMap(({ name: own, role: is }) => {
        const spec = specs[own];
        return is === role && spec !== undefined ? [[own, spec]] : [];
      }),
    );
  return operation({
    name,
    inputs: named("input"),
    outputs: named("output"),
    plan: (dimensions, target) => {
      const axes = scanAxes(problem, dimensions);
      if (configuration !== undefined)
        requirePossible(problem, configuration, axes, target, location);
      return {
        ...planScan(rule, axes, configuration ?? chooseScan(rule, axes, target), kernels, target),
        source: configuration === undefined ? "heuristic" : "given",
      };
    },
  });
}

/** The other axes, collapsed, then that of the scan. */
function scanAxes(
  { rule, specs, shape, axis }: ScanProblem,
  dimensions: { readonly [name: string]: number },
): readonly StridedAxis[] {
  const extents = laidOut({ shape, strides: undefined }, dimensions).shape;
  const strides = rule.arrays.map(({ name, role }) => {
    const spec = specs[name];
    if (role === "input" || spec === undefined) return broadcastStrides(spec, extents, dimensions);
    return laidOut(spec, dimensions).strides;
  });
  const leads = collapsedAxes(
    extents.filter((_, each) => each !== axis),
    strides.map((own) => own.filter((_, each) => each !== axis)),
    // Steps along a single row would only hide how its elements are aligned.
  ).map((lead) => (lead.extent === 1 ? { ...lead, strides: strides.map(() => 0) } : lead));
  return [...leads, { extent: extents[axis] ?? 1, strides: strides.map((own) => own[axis] ?? 1) }];
}

/** Blocks that share a row wait for each other: all of them have to be resident at once. */
function requirePossible(
  { name, rule }: ScanProblem,
  configuration: ScanConfiguration,
  axes: readonly StridedAxis[],
  target: Target,
  location: Location,
): void {
  const { processors } = target;
  const settings = ["rows", "columns", "workers", "pipeline"] as const;
  requireSettings(name, configuration, settings, location);
  const { rows, columns, workers, pipeline } = configuration;
  if (pipeline !== undefined)
    requireSettings(`the pipeline of ${name}`, pipeline, ["stages", "lookahead"], location);
  const blocks = axes.slice(0, -1).reduce((product, { extent }) => product * extent, workers);
  const most = cooperativeBlocks * processors;
  const isPower = (number: number): boolean =>
    Number.isSafeInteger(number) && number >= 1 && powerOfTwoFrom(number) === number;
  const warps = pipeline === undefined ? cooperativeWarps : pipelineWarps;
  const words = Math.max(...Object.values(rule.state).map(({ dtype }) => dtype.bits / 32), 1);
  // Blocks cannot have more rows than the arrays; those of more warps have fewer registers a thread.
  const isHeld =
    rows <= powerOfTwoFrom(axes.at(-2)?.extent ?? 1) &&
    rows * columns * words < registersPerThread * threadsPerBlock;
  const isKnown = isPower(rows) && isPower(columns) && Number.isSafeInteger(workers) && isHeld;
  const isShared = rows === 1 && columns >= 32 * warps && blocks <= most;
  const isPipelined =
    pipeline === undefined ||
    (workers > 1 &&
      isPipelinable(rule, axes, target) &&
      isPossiblePipeline(rule, columns, pipeline, target));
  if (isKnown && isPipelined && (workers === 1 || (workers > 1 && isShared))) return;
  throw refused(
    "TW9904",
    `${name} has no such configuration`,
    `powers of two for rows, of no more than there are, and for columns, of which registers hold a piece; with several workers 1 row, ${32 * warps} columns or more, and at most ${most} blocks in all; a pipeline of at least 2 stages more than its lookahead that fits in shared memory, of pieces of 32 KiB at most, for rows that TMA can copy`,
    JSON.stringify(configuration),
    location,
  );
}

/** Elements of a piece in the registers of a thread. */
const elementsPerThread = 16;
/** Rows of a block where rows are contiguous across, not along. */
const crossingRows = 64;

function chooseScan(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  target: Target,
): ScanConfiguration {
  const { arrays, state } = rule;
  const { processors } = target;
  const [lead, column] = [axes.at(-2), axes.at(-1)];
  const extent = column?.extent ?? 1;
  const count = axes.slice(0, -1).reduce((product, axis) => product * axis.extent, 1);
  const isCrossing = lead?.strides[0] === 1 && column?.strides[0] !== 1;
  const least = (8 * widestAccess) / Math.min(...arrays.map(({ dtype }) => dtype.bits));
  const parts = powerOfTwoFrom(Object.keys(state).length);
  const span = threadsPerBlock * Math.max(least, elementsPerThread / parts);
  const most = powerOfTwoFrom(lead?.extent ?? 1);
  const columns = Math.min(isCrossing ? span / crossingRows : span, powerOfTwoFrom(extent));
  let rows = Math.min(isCrossing ? crossingRows : span / columns, most);
  while (!isCrossing && rows > 1 && count / rows < 2 * processors) rows /= 2;
  const shared = choosePipeline(rule, axes, target) ?? { columns: cooperativeColumns({ state }) };
  const workers = Math.min(
    Math.floor((cooperativeBlocks * processors) / Math.max(1, count)),
    Math.ceil(extent / shared.columns),
  );
  return workers > 1 ? { rows: 1, workers, ...shared } : { rows, columns, workers: 1 };
}

/** The kernel of a configuration, what it depends on, and values for its dimensions. */
interface ScanForm {
  readonly text: string;
  readonly kernel: () => KernelDefinition;
  readonly dimensions: { readonly [name: string]: number };
  /** Waves beyond the last whose aggregates are published. */
  readonly beyond: number;
}

function formOf(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  configuration: ScanConfiguration,
): ScanForm {
  const { pipeline, workers } = configuration;
  if (pipeline !== undefined) {
    const pipelined = { rule, axes, configuration: { ...configuration, pipeline } };
    const [lead] = axes;
    const strides = lead?.extent === 1 ? [] : lead?.strides.map(alignment);
    return {
      text: JSON.stringify([configuration, strides]),
      kernel: () => pipelinedScanKernel(pipelined),
      dimensions: pipelinedDimensions(pipelined),
      beyond: 0,
    };
  }
  const form = new StridedForm(axes);
  const make = workers > 1 ? gridCooperativeScanKernel : scanKernel;
  return {
    text: JSON.stringify(configuration) + formText(form.axes),
    kernel: () => make(rule, form, configuration),
    dimensions: form.dimensions(),
    beyond: lookahead,
  };
}

function planScan(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  configuration: ScanConfiguration,
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<ScanConfiguration> {
  if (axes.some(({ extent }) => extent === 0))
    return { configuration, source: "heuristic", launches: [] };
  const form = formOf(rule, axes, configuration);
  const isShared = configuration.workers > 1;
  const launches = (): readonly PlannedLaunch[] => {
    const kernel = kernels.get(form.text) ?? form.kernel();
    kernels.set(form.text, kernel);
    const declared = new Set(kernel.kernel.dimensions.map(({ name }) => name));
    const dimensions = Object.entries(form.dimensions).filter(([name]) => declared.has(name));
    const arrays = rule.arrays.map(
      ({ name }) => [name, { argument: name, flat: true as const }] as const,
    );
    return [
      {
        kernel,
        arguments: {
          ...Object.fromEntries(arrays),
          ...(isShared && { [mailboxName]: { argument: mailboxName } }),
        },
        dimensions: Object.fromEntries(dimensions),
      },
    ];
  };
  if (!isShared) return { configuration, source: "heuristic", launches };
  const mailbox = aggregatesMailboxShape(
    rule,
    axes.map(({ extent }) => extent),
    configuration,
    form.beyond,
  ) as readonly number[];
  const cleared: Step = {
    operation: fill({ out: tensor(dtypes.u64, mailbox), value: 0 }) as unknown as Operation,
    dimensions: {},
    arrays: { out: mailboxName },
  };
  const steps = composed([cleared, launches], target);
  return {
    ...{ configuration, source: "heuristic", launches: steps.launches },
    scratch: { ...steps.scratch, [mailboxName]: { dtype: dtypes.u64, shape: mailbox } },
  };
}
