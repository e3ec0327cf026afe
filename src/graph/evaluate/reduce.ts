/**
 * Reductions. A reduction begins with the initial value and takes elements in row-major order; every step
 * is rounded to the region's type, as its ops say, but for long sums of f32, and sums and products of narrower floats. Where the specification leaves the order open this is
 * the one of StableHLO's interpreter, which its tests expect.
 *
 *   reduce          over all elements that differ only along the reduced axes
 *   reduce_window   over each window; padding and the holes of base dilation are initial values that take part
 *   select_and_scatter   each window selects an element; the source's element is combined there
 */
import type { AnyGraphOp, GraphRegion, TensorType } from "../ops/index.ts";
import { combinerKind } from "../ops/combiner.ts";
import { isNarrowFloat, sizeOf } from "../ops/index.ts";
import type { Window } from "../ops/windows.ts";
import { emptyTensor, splat } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Frame, Steps } from "./frame.ts";
import { regionFunction, scalarRegion } from "./region.ts";
import { isNumberElement, numbersOf, reader, writeNumbers, writer } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { indicesOf, placeOf, stridesOf, visitPlaces, visitRows } from "./strides.ts";
import type { Walk } from "./strides.ts";

export interface Reduction {
  readonly inputs: readonly Tensor[];
  readonly inits: readonly Tensor[];
  readonly body: GraphRegion;
  readonly types: readonly TensorType[];
  readonly frame: Frame;
  readonly op: AnyGraphOp;
}

/** Folds elements, one of each input, into the accumulators of a place. */
type Fold = (target: number, source: number | undefined) => void;

interface Accumulators {
  readonly fold: Fold;
  readonly finish: () => Steps<readonly Tensor[]>;
}

/** Sums of f32 of more elements than these are made in f64 and rounded once: step by step they would stray further than any compiler's. */
const longSum = 64;

/**
 * How a reduction that is rounded once combines numbers; undefined for all others. Narrower floats always are: in bf16 a sum of ones
 * would stand still at 256.
 */
function roundedOnce(
  { body, types }: Reduction,
  count: number,
): ((left: number, right: number) => number) | undefined {
  const [type, ...others] = types;
  if (type === undefined || others.length > 0) return undefined;
  const kind = combinerKind(body);
  const isNarrow = isNarrowFloat(type.element);
  if (kind === "stablehlo.add" && (isNarrow || (type.element === "f32" && count > longSum)))
    return (left, right) => left + right;
  return kind === "stablehlo.multiply" && isNarrow ? (left, right) => left * right : undefined;
}

/** Accumulators at every place of the results, of so many elements each; a fold from no place takes the initial values. */
function accumulators(reduction: Reduction, count: number): Accumulators {
  const { inputs, inits, body, types, frame, op } = reduction;
  const initial = inits.map((init) => reader(init)(0));
  const read = inputs.map(reader);
  const places = sizeOf(types[0]?.shape ?? []);
  const finish = (columns: readonly (readonly Scalar[])[]) =>
    function* (): Steps<readonly Tensor[]> {
      const results: Tensor[] = [];
      for (const [i, column] of columns.entries()) {
        const result = emptyTensor(types[i] as TensorType);
        const write = writer(result.element, result.data);
        for (let place = 0; place < column.length; place++) {
          write(place, column[place] as Scalar);
          if (place % pieceWork === pieceWork - 1) yield pause;
        }
        results.push(result);
      }
      return results;
    };
  const columns = initial.map((value) => new Array<Scalar>(places).fill(value));
  const [column, ...others] = columns;
  if (column !== undefined && others.length === 0) {
    const run =
      (roundedOnce(reduction, count) as ((left: Scalar, right: Scalar) => Scalar) | undefined) ??
      scalarRegion(body, frame, op);
    const [only] = read;
    const [start] = initial;
    const fold: Fold = (target, source) => {
      const value = source === undefined ? start : only?.(source);
      column[target] = run(column[target] as Scalar, value as Scalar);
    };
    return { fold, finish: finish(columns) };
  }
  const run = regionFunction(body, frame, op);
  const fold: Fold = (target, source) => {
    const old = columns.map((each) => each[target] as Scalar);
    const values = source === undefined ? initial : read.map((each) => each(source));
    for (const [i, value] of run(...old, ...values).entries())
      (columns[i] as Scalar[])[target] = value;
  };
  return { fold, finish: finish(columns) };
}

export function* reduce(
  reduction: Reduction,
  dimensions: readonly number[],
): Steps<readonly Tensor[]> {
  const { inputs, types } = reduction;
  const [{ shape } = { shape: [] as readonly number[] }] = inputs;
  const count = sizeOf(dimensions.map((axis) => shape[axis] ?? 1));
  const resultStrides = stridesOf(types[0]?.shape ?? []);
  let next = 0;
  const strides = shape.map((_, axis) =>
    dimensions.includes(axis) ? 0 : (resultStrides[next++] as number),
  );
  const results = { start: 0, strides };
  const elements = { start: 0, strides: stridesOf(shape) };
  const numbers = yield* reducedNumbers(reduction, count, results, elements);
  if (numbers !== undefined) return [numbers];
  const { fold, finish } = accumulators(reduction, count);
  yield* visitPlaces(shape, results, elements, fold, workOf(reduction));
  return yield* finish();
}

/** The reduction of one input of numbers, which needs no values of single elements; undefined for all others. */
function* reducedNumbers(
  reduction: Reduction,
  count: number,
  results: Walk,
  elements: Walk,
): Steps<Tensor | undefined> {
  const { body, frame, op } = reduction;
  const [input, ...otherInputs] = reduction.inputs;
  const [init] = reduction.inits;
  const [type] = reduction.types;
  if (input === undefined || init === undefined || type === undefined) return undefined;
  const isOfNumbers = [input, init, type].every(({ element }) => isNumberElement(element));
  if (otherInputs.length > 0 || !isOfNumbers) return undefined;
  const run = (roundedOnce(reduction, count) ?? scalarRegion(body, frame, op)) as (
    left: number,
    right: number,
  ) => number;
  const numbers = numbersOf(input);
  const sums = new Float64Array(sizeOf(type.shape)).fill(numbersOf(init)[0] as number);
  const row = (
    target: number,
    source: number,
    length: number,
    step: number,
    sourceStep: number,
  ): void => {
    if (step === 0) {
      let sum = sums[target] as number;
      for (let i = 0; i < length; i++) sum = run(sum, numbers[source + i * sourceStep] as number);
      sums[target] = sum;
      return;
    }
    for (let i = 0; i < length; i++) {
      const place = target + i * step;
      sums[place] = run(sums[place] as number, numbers[source + i * sourceStep] as number);
    }
  };
  yield* visitRows(input.shape, results, elements, row, workOf(reduction));
  const result = emptyTensor(type);
  writeNumbers(result, 0, sums);
  return result;
}

/** The place on the axis that element `tap` of window `position` covers; undefined for padding and holes. */
function coveredPlace(
  { stride, baseDilation, windowDilation, low }: Window,
  extent: number,
  position: number,
  tap: number,
): number | undefined {
  const dilated = position * stride + tap * windowDilation - low;
  if (dilated < 0 || dilated % baseDilation !== 0) return undefined;
  const place = dilated / baseDilation;
  return place < extent ? place : undefined;
}

/** Calls `visit` with the elements of each window in row-major order; undefined stands for padding. */
function* visitTaps(
  shape: readonly number[],
  windows: readonly Window[],
  positions: readonly number[],
  each: number,
  visit: (target: number, place: number | undefined) => void,
  done: (target: number) => void = () => undefined,
): Steps<void> {
  const strides = stridesOf(shape);
  const sizes = windows.map(({ size }) => size);
  let target = 0;
  let work = 0;
  for (const position of indicesOf(positions)) {
    for (const taps of indicesOf(sizes)) {
      let place: number | undefined = 0;
      for (let axis = 0; axis < windows.length && place !== undefined; axis++) {
        const covered = coveredPlace(
          windows[axis] as Window,
          shape[axis] as number,
          position[axis] as number,
          taps[axis] as number,
        );
        place = covered === undefined ? undefined : place + covered * (strides[axis] as number);
      }
      visit(target, place);
      work += each;
      if (work < pieceWork) continue;
      work = 0;
      yield pause;
    }
    done(target);
    target++;
  }
}

/** What one step of a reduction counts as: a region that is run op by op takes longer. */
function workOf({ body }: Reduction): number {
  return 2 + 2 * body.ops.length;
}

export function* reduceWindow(
  reduction: Reduction,
  windows: readonly Window[],
): Steps<readonly Tensor[]> {
  const { inputs, types } = reduction;
  const [{ shape } = { shape: [] }] = inputs;
  const axis = scannedAxis(windows, shape, types[0]?.shape ?? []);
  if (axis !== undefined && initIsNeutral(reduction)) return yield* scan(reduction, axis);
  const { fold, finish } = accumulators(reduction, sizeOf(windows.map(({ size }) => size)));
  const positions = types[0]?.shape ?? [];
  yield* visitTaps(shape, windows, positions, workOf(reduction), fold);
  return yield* finish();
}

/**
 * The axis along which windows are all that lies up to an element, as in a cumulative sum: each window
 * then is the one before with one element more, and the whole takes linear time. Steps are the same, in
 * the same order, since initial values folded into an initial value change nothing.
 */
function scannedAxis(
  windows: readonly Window[],
  shape: readonly number[],
  result: readonly number[],
): number | undefined {
  const axis = windows.findIndex(({ size }) => size > 1);
  if (axis < 0) return undefined;
  const isScan = windows.every(({ size, stride, baseDilation, low }, each) => {
    const isPlain = stride === 1 && baseDilation === 1 && result[each] === shape[each];
    return (
      isPlain && (each === axis ? low === size - 1 && size >= (shape[each] as number) : size === 1)
    );
  });
  return isScan && windows[axis]?.windowDilation === 1 ? axis : undefined;
}

function initIsNeutral({ inits, body, frame, op }: Reduction): boolean {
  const initial = inits.map((init) => reader(init)(0));
  return regionFunction(
    body,
    frame,
    op,
  )(...initial, ...initial).every((value, i) => Object.is(value, initial[i]));
}

function* scan(reduction: Reduction, axis: number): Steps<readonly Tensor[]> {
  const { inputs, inits, body, types, frame, op } = reduction;
  const [{ shape } = { shape: [] as readonly number[] }] = inputs;
  const wide = roundedOnce(reduction, shape[axis] ?? 0);
  const run: (...values: readonly Scalar[]) => readonly Scalar[] =
    wide === undefined
      ? regionFunction(body, frame, op)
      : (left, right) => [wide(left as number, right as number)];
  const results = types.map((type) => emptyTensor(type));
  const write = results.map(({ element, data }) => writer(element, data));
  const read = inputs.map(reader);
  const strides = stridesOf(shape);
  const step = strides[axis] as number;
  const rows = shape.map((extent, each) => (each === axis ? Math.min(1, extent) : extent));
  const each = workOf(reduction);
  let work = 0;
  for (const index of indicesOf(rows)) {
    const first = placeOf(index, strides);
    let state: readonly Scalar[] = inits.map((init) => reader(init)(0));
    for (let i = 0; i < (shape[axis] as number); i++) {
      const place = first + i * step;
      state = run(...state, ...read.map((value) => value(place)));
      for (const [which, value] of state.entries()) write[which]?.(place, value);
      work += each;
      if (work < pieceWork) continue;
      work = 0;
      yield pause;
    }
  }
  return results;
}

export function* selectAndScatter(
  operand: Tensor,
  source: Tensor,
  init: Tensor,
  windows: readonly Window[],
  regions: { readonly select: GraphRegion; readonly scatter: GraphRegion },
  frame: Frame,
  op: AnyGraphOp,
): Steps<Tensor> {
  const result = splat(init, { element: operand.element, shape: operand.shape });
  const select = scalarRegion(regions.select, frame, op);
  const combine = scalarRegion(regions.scatter, frame, op);
  const read = reader(operand);
  const readSource = reader(source);
  const readResult = reader(result);
  const write = writer(result.element, result.data);
  let kept: number | undefined;
  const visit = (_: number, place: number | undefined): void => {
    if (place === undefined) return;
    if (kept === undefined || select(read(kept), read(place)) === 0) kept = place;
  };
  yield* visitTaps(operand.shape, windows, source.shape, 4, visit, (from) => {
    if (kept !== undefined) write(kept, combine(readResult(kept), readSource(from)));
    kept = undefined;
  });
  return result;
}
