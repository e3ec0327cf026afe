/** Loops, branches, calls and scans: rules that run regions and functions. */
import type { AnyGraphOp, GraphRegion, TensorType } from "../ops/index.ts";
import { emptyTensor, reshaped } from "./value.ts";
import type { Datum, Tensor } from "./value.ts";
import type { Frame, Steps } from "./frame.ts";
import { scalarNumber } from "./scalars.ts";
import { concatenate, dynamicSlice } from "./shapes.ts";

export function* repeatWhile(
  frame: Frame,
  inputs: readonly Datum[],
  condition: GraphRegion,
  body: GraphRegion,
): Steps<readonly Datum[]> {
  const { runRegion } = frame.session;
  let state = inputs;
  for (;;) {
    const [predicate] = yield* runRegion(condition, state, frame);
    if (scalarNumber(predicate as Tensor) === 0) return state;
    state = yield* runRegion(body, state, frame);
  }
}

/** One of several regions; the last where the index is none of theirs. */
export function chooseBranch(
  frame: Frame,
  index: number,
  branches: readonly GraphRegion[],
): Steps<readonly Datum[]> {
  const branch = branches[index] ?? branches.at(-1);
  if (branch === undefined) throw new Error("a case without branches");
  return frame.session.runRegion(branch, [], frame);
}

export interface Scan {
  readonly inputs: readonly Tensor[];
  readonly inits: readonly Tensor[];
  readonly dimension: number;
  readonly reversed: boolean;
  readonly body: GraphRegion;
}

/** Runs the body on slice after slice of an axis; results are the outputs side by side, then the last carries. */
export function* scan(
  op: AnyGraphOp,
  frame: Frame,
  { inputs, inits, dimension, reversed, body }: Scan,
): Steps<readonly Datum[]> {
  const outputs = op.results.length - inits.length;
  const [first] = inputs;
  const extent = first?.shape[dimension] ?? frame.result(op).shape[dimension] ?? 0;
  const columns = Array.from({ length: outputs }, () => new Array<Tensor>(extent));
  let carries: readonly Datum[] = inits;
  for (let step = 0; step < extent; step++) {
    const at = reversed ? extent - 1 - step : step;
    const slices: Tensor[] = [];
    for (const input of inputs) slices.push(yield* sliceAt(input, dimension, at));
    const results = yield* frame.session.runRegion(body, [...slices, ...carries], frame);
    for (const [i, column] of columns.entries()) column[at] = results[i] as Tensor;
    carries = results.slice(outputs);
  }
  const stacked: Tensor[] = [];
  for (const [i, column] of columns.entries())
    stacked.push(yield* stack(column, dimension, frame.result(op, i)));
  return [...stacked, ...carries];
}

function* sliceAt(input: Tensor, axis: number, at: number): Steps<Tensor> {
  const starts = input.shape.map((_, each) => (each === axis ? at : 0));
  const sizes = input.shape.map((extent, each) => (each === axis ? 1 : extent));
  return reshaped(
    yield* dynamicSlice(input, starts, sizes),
    input.shape.filter((_, each) => each !== axis),
  );
}

function* stack(column: readonly Tensor[], axis: number, type: TensorType): Steps<Tensor> {
  if (column.length === 0) return emptyTensor(type);
  const shape = type.shape.map((extent, each) => (each === axis ? 1 : extent));
  return yield* concatenate(
    column.map((each) => reshaped(each, shape)),
    axis,
    type,
  );
}
