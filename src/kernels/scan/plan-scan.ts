/** A scan for the sizes of a launch: axes beside that of the scan become as few as they can, then a form is chosen. */
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
  lanes,
  powerOfTwoFrom,
  widestAccess,
  registersOfLane,
} from "../support/sizes.ts";
import { StridedForm, formText } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import { scanKernel } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import {
  chooseQueue,
  isPossibleQueue,
  isQueueable,
  queuedDimensions,
  queuedScanKernel,
  queuedWarps,
} from "./tma-pipelined-scan.ts";
import {
  sharedBlocks,
  sharedColumns,
  sharedScanKernel,
  sharedWarps,
  slack,
} from "./grid-cooperative-scan.ts";
import { toldName } from "../support/mailbox.ts";
import { toldShape } from "./block-aggregates.ts";

export interface ScanProblem {
  readonly name: string;
  readonly rule: ScanRule;
  /** The arrays of the rule by name; inputs broadcast to the shape. */
  readonly specs: { readonly [name: string]: TensorSpec };
  readonly shape: readonly Size[];
  readonly axis: number;
  /** Instead of what the model would choose. */
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
  }) as unknown as Operation;
}

/** What lies beside the scan, as few axes as there can be, then the scan's own. */
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

/** Blocks that share a row wait for each other, so that all of them have to run at once. */
function requirePossible(
  { name, rule }: ScanProblem,
  configuration: ScanConfiguration,
  axes: readonly StridedAxis[],
  target: Target,
  location: Location,
): void {
  const { processors } = target;
  const settings = ["rows", "columns", "workers", "queue"] as const;
  requireSettings(name, configuration, settings, location);
  const { rows, columns, workers, queue } = configuration;
  if (queue !== undefined)
    requireSettings(`the queue of ${name}`, queue, ["slots", "slack"], location);
  const blocks = axes.slice(0, -1).reduce((product, { extent }) => product * extent, workers);
  const most = sharedBlocks * processors;
  const isPower = (number: number): boolean =>
    Number.isSafeInteger(number) && number >= 1 && powerOfTwoFrom(number) === number;
  const warps = queue === undefined ? sharedWarps : queuedWarps;
  const words = Math.max(...Object.values(rule.state).map(({ dtype }) => dtype.bits / 32), 1);
  // Blocks of more rows than there are have no such rows in their arrays; those of more warps have fewer registers a lane.
  const isHeld =
    rows <= powerOfTwoFrom(axes.at(-2)?.extent ?? 1) &&
    rows * columns * words < registersOfLane * lanes;
  const isKnown = isPower(rows) && isPower(columns) && Number.isSafeInteger(workers) && isHeld;
  const isShared = rows === 1 && columns >= 32 * warps && blocks <= most;
  const isQueued =
    queue === undefined ||
    (workers > 1 &&
      isQueueable(rule, axes, target) &&
      isPossibleQueue(rule, columns, queue, target));
  if (isKnown && isQueued && (workers === 1 || (workers > 1 && isShared))) return;
  throw refused(
    "TW9904",
    `${name} has no such configuration`,
    `powers of two for rows, of no more than there are, and for columns, of which registers hold a piece; with several workers 1 row, ${32 * warps} columns or more, and at most ${most} blocks in all; a queue of 2 places more than its slack at least, for which there is room, of pieces of 32 KiB at most, for rows that the copy engine takes`,
    JSON.stringify(configuration),
    location,
  );
}

/** Elements of a piece that a lane has. */
const elementsPerLane = 16;
/** Rows of a block where neighbours in memory belong to different rows. */
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
  const span = lanes * Math.max(least, elementsPerLane / parts);
  const most = powerOfTwoFrom(lead?.extent ?? 1);
  const columns = Math.min(isCrossing ? span / crossingRows : span, powerOfTwoFrom(extent));
  let rows = Math.min(isCrossing ? crossingRows : span / columns, most);
  while (!isCrossing && rows > 1 && count / rows < 2 * processors) rows /= 2;
  const shared = chooseQueue(rule, axes, target) ?? { columns: sharedColumns({ state }) };
  const workers = Math.min(
    Math.floor((sharedBlocks * processors) / Math.max(1, count)),
    Math.ceil(extent / shared.columns),
  );
  return workers > 1 ? { rows: 1, workers, ...shared } : { rows, columns, workers: 1 };
}

/** The kernel of a configuration, what it depends on, and values for its dimensions. */
interface ScanForm {
  readonly text: string;
  readonly kernel: () => KernelDefinition;
  readonly dimensions: { readonly [name: string]: number };
  /** Waves that are told beyond the last. */
  readonly beyond: number;
}

function formOf(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  configuration: ScanConfiguration,
): ScanForm {
  const { queue, workers } = configuration;
  if (queue !== undefined) {
    const queued = { rule, axes, configuration: { ...configuration, queue } };
    const [lead] = axes;
    const strides = lead?.extent === 1 ? [] : lead?.strides.map(alignment);
    return {
      text: JSON.stringify([configuration, strides]),
      kernel: () => queuedScanKernel(queued),
      dimensions: queuedDimensions(queued),
      beyond: 0,
    };
  }
  const form = new StridedForm(axes);
  const make = workers > 1 ? sharedScanKernel : scanKernel;
  return {
    text: JSON.stringify(configuration) + formText(form.axes),
    kernel: () => make(rule, form, configuration),
    dimensions: form.dimensions(),
    beyond: slack,
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
          ...(isShared && { [toldName]: { argument: toldName } }),
        },
        dimensions: Object.fromEntries(dimensions),
      },
    ];
  };
  if (!isShared) return { configuration, source: "heuristic", launches };
  const told = toldShape(
    rule,
    axes.map(({ extent }) => extent),
    configuration,
    form.beyond,
  ) as readonly number[];
  const cleared: Step = {
    operation: fill({ out: tensor(dtypes.u64, told), value: 0 }) as unknown as Operation,
    dimensions: {},
    arrays: { out: toldName },
  };
  const steps = composed([cleared, launches], target);
  return {
    ...{ configuration, source: "heuristic", launches: steps.launches },
    scratch: { ...steps.scratch, [toldName]: { dtype: dtypes.u64, shape: told } },
  };
}
