/**
 * The launches of a reduction. Kept and reduced axes are collapsed separately. Where the kept ones give too few blocks for the
 * processors, the longest reduced axis is split, and a second launch merges the partial states in order:
 *
 *   sum of f32[2^27]      launch 1   x      ──▶ states f32[1056]
 *                         launch 2   states ──▶ out
 */
import type { Planned, PlannedArgument, PlannedLaunch } from "../../device/operation.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import type { Target } from "../../targets/target.ts";
import { threadsPerBlock, powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import { StridedForm, formText } from "../support/strided.ts";
import type { StridedAxis } from "../support/strided.ts";
import { reduceKernel } from "./reduce-kernel.ts";
import type { ReduceArray, ReduceConfiguration, ReduceForm } from "./reduce-kernel.ts";
import { ofStates, stateName, unfinished } from "./reducer.ts";
import type { Reducer } from "./reducer.ts";

/**
 * Bytes that a thread has in flight: of columns more, since fewer blocks are given them, where registers hold the states of so many
 * elements.
 */
const [bytesOfRows, bytesOfColumns, wordsOfStates] = [64, 128, 64] as const;
/** Columns of a window where they are kept. */
const keptColumns = 256;
/**
 * Blocks that a processor is given, so that enough of them wait for memory at once; fewer where each part hands over a state for
 * every column.
 */
const [blocksPerProcessor, blocksOfColumns] = [8, 4] as const;

/** Bytes of inputs that no cache holds until they are read again. What is read of them is dropped first: memory moves 0.6 % more. */
const beyondCache = 2 ** 27;

export interface ReduceAxis extends StridedAxis {
  readonly reduced: boolean;
}

export interface ReduceProblem {
  readonly name: string;
  readonly arrays: readonly ReduceArray[];
  readonly reducer: Reducer;
}

export function planReduction(
  { name, arrays, reducer }: ReduceProblem,
  given: readonly ReduceAxis[],
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<ReduceConfiguration> {
  const axes = withoutElements(arrays, given);
  const configuration = chooseReduction({ arrays, reducer }, axes, target);
  const { parts } = configuration;
  if (axes.some(({ extent, reduced }) => extent === 0 && !reduced))
    return { configuration, source: "heuristic", launches: [] };
  const inputs = arrays.filter(({ role }) => role === "input");
  const outputs = arrays.filter(({ role }) => role === "output");
  const named = (list: readonly ReduceArray[]) =>
    Object.fromEntries(list.map((each) => [each.name, flat(each.name)]));
  if (parts === 1)
    return {
      configuration,
      source: "heuristic",
      launches: () => [
        launchOf(name, arrays, reducer, axes, configuration, kernels, named(arrays)),
      ],
    };
  const states = Object.entries(reducer.state).map(([own, { dtype }]) => ({ name: own, dtype }));
  const kept = axes.filter(({ reduced }) => !reduced);
  const count = kept.reduce((product, { extent }) => product * extent, 1);
  const launches = (): readonly PlannedLaunch[] => {
    const partial = states.map((each) => ({ ...each, role: "output" as const }));
    const first = axes.map((axis) => ({
      ...axis,
      strides: [...axis.strides.slice(0, inputs.length), ...states.map(() => 0)],
    }));
    const again = states.map(({ name: own, dtype }) => ({
      name: stateName(own),
      dtype,
      role: "input" as const,
    }));
    const second = mergingAxes(axes, inputs.length, states.length, parts, count);
    const byState = Object.fromEntries(again.map((each) => [each.name, flat(each.name)]));
    const whole = Object.fromEntries(
      states.map((each) => [
        each.name,
        {
          argument: stateName(each.name),
          shape: [parts, ...(kept.length === 0 ? [1] : kept.map(({ extent }) => extent))],
        },
      ]),
    );
    return [
      launchOf(name, [...inputs, ...partial], unfinished(reducer), first, configuration, kernels, {
        ...named(inputs),
        ...whole,
      }),
      launchOf(
        `${name}_merge`,
        [...again, ...outputs],
        ofStates(reducer),
        second,
        {
          ...chooseReduction({ arrays: [...again, ...outputs], reducer }, second, target),
          parts: 1,
        },
        kernels,
        { ...byState, ...named(outputs) },
      ),
    ];
  };
  const scratch = Object.fromEntries(
    states.map(({ name: own, dtype }) => [stateName(own), { dtype, shape: [parts, count] }]),
  );
  return { configuration, source: "heuristic", scratch, launches };
}

/**
 * One axis for all that are reduced where these have no elements: strides of an array without elements are zeros, as if it were
 * repeated along the axis.
 */
function withoutElements(
  arrays: readonly ReduceArray[],
  axes: readonly ReduceAxis[],
): readonly ReduceAxis[] {
  if (!axes.some(({ extent, reduced }) => reduced && extent === 0)) return axes;
  const strides = arrays.map(({ role }) => (role === "input" ? 1 : 0));
  return [...axes.filter(({ reduced }) => !reduced), { extent: 0, reduced: true, strides }];
}

function flat(argument: string): PlannedArgument {
  return { argument, flat: true };
}

/** The axes of the launch that merges parts: the parts, and what is kept. */
function mergingAxes(
  axes: readonly ReduceAxis[],
  inputs: number,
  states: number,
  parts: number,
  count: number,
): readonly ReduceAxis[] {
  const kept = axes.filter(({ reduced }) => !reduced);
  const outputs = (strides: readonly number[]): readonly number[] => strides.slice(inputs);
  const repeated = (stride: number): readonly number[] =>
    Array.from({ length: states }, () => stride);
  let step = count;
  const others = kept.map(({ extent, strides }): ReduceAxis => {
    step /= extent;
    return { extent, reduced: false, strides: [...repeated(step), ...outputs(strides)] };
  });
  const none = outputs(axes[0]?.strides ?? []).map(() => 0);
  return [{ extent: parts, reduced: true, strides: [...repeated(count), ...none] }, ...others];
}

function launchOf(
  name: string,
  arrays: readonly ReduceArray[],
  reducer: Reducer,
  axes: readonly ReduceAxis[],
  configuration: ReduceConfiguration,
  kernels: Map<string, KernelDefinition>,
  given: { readonly [parameter: string]: PlannedArgument },
): PlannedLaunch {
  const form = new StridedForm(axes);
  const reduced = axes.map((axis) => axis.reduced);
  const exact = axes.map(({ extent }, axis) => extent % (configuration.window[axis] ?? 1) === 0);
  const shape: ReduceForm = { form, reduced, exact, configuration };
  const text = JSON.stringify([name, configuration, reduced, exact]) + formText(axes);
  const kernel = kernels.get(text) ?? reduceKernel(name, arrays, reducer, shape);
  kernels.set(text, kernel);
  const declared = new Set(kernel.kernel.dimensions.map((dimension) => dimension.name));
  const dimensions = Object.fromEntries(
    Object.entries(form.dimensions()).filter(([own]) => declared.has(own)),
  );
  return { kernel, arguments: given, dimensions };
}

export function chooseReduction(
  { arrays, reducer }: Pick<ReduceProblem, "arrays" | "reducer">,
  axes: readonly ReduceAxis[],
  { processors }: Target,
): ReduceConfiguration {
  const bytes = arrays.filter(({ role }) => role === "input").map(({ dtype }) => dtype.bits / 8);
  const last = axes.length - 1;
  const isReduced = axes[last]?.reduced === true;
  const words = (bytesOfColumns / Math.max(...bytes)) * (rngBitGenerator(reducer) / 32);
  const inFlight = isReduced || words > wordsOfStates ? bytesOfRows : bytesOfColumns;
  const each = Math.max(widestAccess / Math.min(...bytes), inFlight / Math.max(...bytes), 1);
  const span = each * threadsPerBlock;
  const width = powerOfTwoFrom(axes[last]?.extent ?? 1);
  const columns = Math.min(isReduced ? span : keptColumns, width);
  const other = axes.findLastIndex(({ reduced }) => reduced !== isReduced);
  const rows = Math.min(span / columns, powerOfTwoFrom(axes[other]?.extent ?? 1));
  const window = axes.map((_, axis) => (axis === last ? columns : axis === other ? rows : 1));
  const steps = axes.map(({ extent }, axis) => Math.ceil(extent / (window[axis] ?? 1)));
  const blocks = axes.reduce(
    (product, { reduced }, axis) => product * (reduced ? 1 : (steps[axis] ?? 1)),
    1,
  );
  const along = steps.map((count, axis) => (axes[axis]?.reduced === true ? count : 0));
  const splitAxis = along.indexOf(Math.max(...along));
  const resident = isReduced ? blocksPerProcessor : blocksOfColumns;
  const wanted = Math.floor((resident * processors) / Math.max(1, blocks));
  const parts = Math.max(1, Math.min(wanted, Math.floor((along[splitAxis] ?? 1) / 2)));
  // A split costs a launch: what few blocks do quickly is left to them.
  const isSplit = blocks < 2 * processors && parts > 1 && (along[splitAxis] ?? 1) >= 8;
  const read = bytes.reduce((sum, own) => sum + own, 0);
  const isBeyond = axes.reduce((product, { extent }) => product * extent, read) >= beyondCache;
  const fixed = { window, parts: isSplit ? parts : 1, splitAxis };
  return isBeyond ? { ...fixed, evict: "first" } : fixed;
}

/** Bits of the state of an element. */
function rngBitGenerator({ state }: Pick<Reducer, "state">): number {
  return Object.values(state).reduce((sum, { dtype }) => sum + dtype.bits, 0);
}
