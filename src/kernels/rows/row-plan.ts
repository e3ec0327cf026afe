/** Plans an operation on rows for the sizes of a launch: leading axes are collapsed, then a schedule is chosen. */
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedLaunch } from "../../device/operation.ts";
import { dtypes } from "../../formats/dtype.ts";
import { tensor } from "../../lang/index.ts";
import type { TensorSpec, KernelDefinition } from "../../lang/index.ts";
import { fill } from "../elementwise/cast.ts";
import { collapsedAxes } from "../support/collapse.ts";
import { composed } from "../support/compose.ts";
import { laidOut } from "../support/sizes.ts";
import { StridedForm, formText } from "../support/strided.ts";
import { mailboxName } from "../support/mailbox.ts";
import type { StridedAxis } from "../support/strided.ts";
import type { Target } from "../../targets/target.ts";
import {
  chooseRows,
  chooseGridCooperativeRowKernel,
  chooseQuantizedRows,
  earlyRows,
} from "./choose-rows.ts";
import { rowKernel, scaleOutput } from "./row-kernel.ts";
import type { RowKernelConfiguration, RowConfiguration } from "./row-kernel.ts";
import type { RowOp } from "./row-op.ts";
import { statisticsMailboxShape } from "./row-statistics.ts";
import {
  chooseRegisterPipeline,
  choosePipelinedRows,
  chooseGridCooperativeRows,
} from "./choose-pipelined-rows.ts";
import type { PipelinedRowsConfiguration } from "./choose-pipelined-rows.ts";
import { planPipelinedRows } from "./tma-pipelined-rows.ts";
import { choosePersistentRows, noSums, planPersistentRows } from "./persistent-rows.ts";
import type { PersistentRowsConfiguration } from "./persistent-rows.ts";
import { planGridCooperativeRows } from "./grid-cooperative-rows.ts";

/** An operation on rows with its arrays by name, and the axis along which rows lie. */
export interface RowProblem {
  readonly op: RowOp;
  readonly specs: { readonly [name: string]: TensorSpec };
  /** The arrays as the user declared them, if that is with another shape. */
  readonly declared?: { readonly [name: string]: TensorSpec };
  /** An array with an element for every element. */
  readonly of: TensorSpec;
  readonly axis: number;
  /** Refuses rows of an unsupported length. */
  readonly requireLength?: (columns: number) => void;
}

/** The operation of a function of the library that was given a specification. */
export function rowOperation(problem: RowProblem, given: unknown): Operation {
  const { op, specs, declared = specs } = problem;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap(({ name, role: own }) => {
        const spec = declared[name];
        return own === role && spec !== undefined ? [[name, spec]] : [];
      }),
    );
  const kernels = new Map<string, KernelDefinition>();
  return libraryOperation(
    {
      name: op.name,
      inputs: {
        ...named("input"),
        ...(op.quantization?.record.hasGlobalScale === true && {
          globalScale: tensor(dtypes.f32, [1]),
        }),
      },
      outputs: { ...named("output"), ...scaleOutput(op, problem.of.shape) },
      plan: (dimensions, target) => {
        problem.requireLength?.(laidOut(problem.of, dimensions).shape[problem.axis] ?? 1);
        return planRows(problem, kernels, dimensions, target);
      },
    },
    given,
  );
}

/** The leading axes, collapsed, then that of the rows. */
export function rowAxes(
  { op, specs, of, axis }: RowProblem,
  dimensions: { readonly [name: string]: number },
): readonly StridedAxis[] {
  const { shape } = laidOut(of, dimensions);
  const strides = op.arrays.map(({ name, per }) => {
    const spec = specs[name];
    if (spec === undefined) throw new Error("every array has a specification");
    const own = laidOut(spec, dimensions).strides;
    if (per === "element")
      return {
        leads: own.filter((_, position) => position !== axis),
        column: own[axis] ?? 1,
      };
    if (per === "row") return { leads: own, column: 0 };
    return { leads: shape.slice(1).map(() => 0), column: own[0] ?? 1 };
  });
  const leadShape = shape.filter((_, position) => position !== axis);
  const leads = collapsedAxes(
    leadShape,
    strides.map((each) => each.leads),
  );
  return [...leads, { extent: shape[axis] ?? 1, strides: strides.map((each) => each.column) }];
}

/** Columns beyond which blocks are persistent: with several per-column inputs, and for few rows, one for each cluster. */
const [withColumns, sharedColumns] = [4096, 65_536];

/**
 * A persistent schedule, where it is faster: per-column inputs are then not read again for every row. Many long rows are TMA-pipelined;
 * few are held by clusters, one each.
 */
function choosePersistent(
  op: RowOp,
  axes: readonly StridedAxis[],
  target: Target,
  { blocks, pieces }: RowKernelConfiguration,
): PersistentRowsConfiguration | PipelinedRowsConfiguration | undefined {
  const [lead, column] = axes.map(({ extent }) => extent);
  const perColumn = op.arrays.filter(({ per }) => per === "column").length;
  if (perColumn > 1 && (column ?? 1) > withColumns) {
    const held = chooseRegisterPipeline(op, axes, target);
    if (held !== undefined) return held;
  }
  const streamed = choosePersistentRows(op, noSums, axes, target);
  const isFaster =
    streamed !== undefined &&
    (streamed.blocks === 1
      ? perColumn > 1 && (column ?? 1) > withColumns
      : (column ?? 1) > sharedColumns && (lead ?? 1) <= streamed.workers);
  if (isFaster) return streamed;
  return blocks > 1 || pieces > 1 ? choosePipelinedRows(op, axes, target) : undefined;
}

function isResultOfRows({ role, per }: RowOp["arrays"][number]): boolean {
  return role === "output" && per === "row";
}

/** The launches of an operation on rows; of use to operations that have others besides. */
export function planRows(
  problem: RowProblem,
  kernels: Map<string, KernelDefinition>,
  dimensions: { readonly [name: string]: number },
  target: Target,
): Planned<RowConfiguration> {
  const { op } = problem;
  const axes = rowAxes(problem, dimensions);
  if (op.quantization !== undefined) {
    const chosen = chooseQuantizedRows(op, op.quantization.record, axes, target);
    return planBasic(op, axes, earlyRows(op, chosen) ?? chosen, kernels);
  }
  const fewRows = chooseGridCooperativeRowKernel(op, axes, target);
  if (fewRows !== undefined)
    return planGridCooperativeRowKernel(op, axes, fewRows, kernels, target);
  const manyRows = chooseGridCooperativeRows(op, axes, target);
  if (manyRows !== undefined) return planGridCooperativeRows(op, axes, manyRows, kernels, target);
  const chosen = chooseRows(op, axes, target);
  const early = earlyRows(op, chosen);
  const configuration = early ?? chosen;
  const faster = early === undefined ? choosePersistent(op, axes, target, chosen) : undefined;
  if (faster !== undefined)
    return "stages" in faster
      ? planPipelinedRows(op, axes, faster, kernels)
      : planPersistentRows(op, noSums, axes, faster, kernels);
  return planBasic(op, axes, configuration, kernels);
}

/** One launch of the basic kernel. */
function planBasic(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: RowKernelConfiguration,
  kernels: Map<string, KernelDefinition>,
): Planned<RowKernelConfiguration> {
  // Rows without columns still have statistics.
  const isEmpty = axes.some(
    ({ extent }, axis) =>
      extent === 0 && (axis < axes.length - 1 || !op.arrays.some(isResultOfRows)),
  );
  if (isEmpty) return { configuration, source: "heuristic", launches: [] };
  const launches = (): readonly PlannedLaunch[] => [rowLaunch(op, axes, configuration, kernels)];
  return { configuration, source: "heuristic", launches };
}

function rowLaunch(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: RowKernelConfiguration,
  kernels: Map<string, KernelDefinition>,
): PlannedLaunch {
  const { rows, columns, blocks, pieces, gridCooperative, early, wide } = configuration;
  const isExact = pieces === 1 && axes.at(-1)?.extent === blocks * columns;
  const form = new StridedForm(axes, isExact ? [axes.length - 1] : []);
  const text = JSON.stringify([
    rows,
    columns,
    blocks,
    pieces === 1,
    isExact,
    gridCooperative,
    early,
    wide,
  ]);
  const known = kernels.get(text + formText(axes)) ?? rowKernel(op, form, configuration);
  kernels.set(text + formText(axes), known);
  const scales = scaleOutput(
    op,
    axes.map(({ extent }) => extent),
  );
  const flat = op.arrays.map(({ name }) => [name, { argument: name, flat: true }] as const);
  return {
    kernel: known,
    arguments: {
      ...Object.fromEntries(flat),
      ...Object.fromEntries(
        Object.entries(scales).map(([name, { shape }]) => [
          name,
          { argument: name, shape: shape.map(Number) },
        ]),
      ),
      ...(op.quantization?.record.hasGlobalScale === true && {
        globalScale: { argument: "globalScale" },
      }),
      ...(gridCooperative !== undefined && { [mailboxName]: { argument: mailboxName } }),
    },
    dimensions: form.dimensions(),
  };
}

/** Clears the mailbox, then launches blocks that exchange statistics through it. */
export function planGridCooperativeRowKernel(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: RowKernelConfiguration,
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<RowKernelConfiguration> {
  const leads = axes.slice(0, -1).map(({ extent }) => extent);
  const shape = statisticsMailboxShape(op, leads, configuration.blocks) as readonly number[];
  const cleared = {
    operation: fill({ out: tensor(dtypes.u64, shape), value: 0 }) as unknown as Operation,
    dimensions: {},
    arrays: { out: mailboxName },
  };
  const { launches, scratch } = composed(
    [cleared, () => [rowLaunch(op, axes, configuration, kernels)]],
    target,
  );
  return {
    configuration,
    source: "heuristic",
    launches,
    scratch: { ...scratch, [mailboxName]: { dtype: dtypes.u64, shape } },
  };
}
