/**
 * Arrays: values of graphs that remember how they are computed. An operation is checked and recorded, nothing
 * runs; reading computes what the value needs.
 *
 *   const y = x.mul(2).add(1);      two ops, types known, nothing computed
 *   await y.read();                 both run
 *
 * Inside a recorded function (jit, grad, scan) the same holds with parameters in place of data, so there is no
 * recorder to switch: a graph is what can be reached from its results.
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { toNested } from "../formats/hostarray.ts";
import type { HostArray, Nested } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { requireRunLimits } from "../support/run-limits.ts";
import type { RunLimits } from "../support/run-limits.ts";
import { arrayOfTensor, evaluate, isTensorDatum } from "../graph/evaluate/index.ts";
import type { Tensor } from "../graph/evaluate/index.ts";
import { disposeSymbol } from "../device/device-array.ts";
import { requireNotAborted } from "../device/wait-limits.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import type { OpDetails, Origin } from "../graph/infer/builder.ts";
import { capturesOf } from "../graph/ops/captures.ts";
import { elementOfDType, elements } from "../graph/ops/elements.ts";
import type { ElementType } from "../graph/ops/elements.ts";
import { graphRegion, graphValue, moduleOf } from "../graph/ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../graph/ops/node.ts";
import type { GraphAttributes, GraphOpKind, GraphOperands } from "../graph/ops/table.ts";
import { operandsOf, regionsOf } from "../graph/ops/traverse.ts";
import { isTensor } from "../graph/ops/types.ts";
import type { TensorType } from "../graph/ops/types.ts";

import {
  chosenPlace,
  disposeHeldValue,
  downloaded,
  isHeld,
  noteMade,
  ready,
  runOnDevice,
} from "./device.ts";
import { computeNow, computeWithBreaks } from "./deferred.ts";
import type { DeferredResult, DeferredRun } from "./deferred.ts";
import type { Place } from "./default-device.ts";
import type { DeviceInput } from "./device.ts";
import { isQuick, isQuickEachTime } from "./evaluator-work.ts";
import { ranksFor } from "./ranks-place.ts";
import { isUnusable, markUnusable, requireUsable } from "./use-after-dispose.ts";

/** The op that defines a value; a value without one is a parameter or has data. */
const producers = new WeakMap<GraphValue, AnyGraphOp>();
const computed = new WeakMap<GraphValue, Tensor>();

/** The element type of a dtype. */
export function elementOf(dtype: DTypeName): ElementType {
  const found = elementOfDType(dtypes[dtype]);
  if (found !== undefined) return found;
  throw new TilewrightError({
    code: "TW9301",
    message: `arrays have no elements of ${dtype}`,
    expected: "a dtype that programs have, such as f32",
    found: dtype,
  });
}

/** The names of scopes around what is recorded: `jit(step)/grad`. */
let scopes: readonly string[] = [];

/** What is around whatever is recorded now, as one name. */
export function scopeName(): string {
  return scopes.join("/");
}

/** Runs `body` with ops named below `name`. */
export function named<T>(name: string, body: () => T): T {
  return within([...scopes, name], body);
}

/** Runs `body` with ops named as if nothing were around them: what is recorded once may be used in many places. */
export function unnamed<T>(body: () => T): T {
  return within([], body);
}

function within<T>(names: readonly string[], body: () => T): T {
  const outer = scopes;
  scopes = names;
  try {
    return body();
  } finally {
    scopes = outer;
  }
}

export function originOf(kind: string): Origin {
  const short = kind.replace(/^\w+\./, "");
  return { name: [...scopes, short].join("/"), location: captureLocation() };
}

/** What an op needs, its regions' captures included. */
function usedBy(op: AnyGraphOp): readonly GraphValue[] {
  return [...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)];
}

/** Records what a builder holds. */
export function keep(ops: readonly AnyGraphOp[]): void {
  for (const op of ops) {
    for (const value of usedBy(op)) requireUsable(value);
    for (const value of op.results) producers.set(value, op);
  }
}

/** Records an op and gives its results. */
export function recordAll<K extends GraphOpKind>(
  kind: K,
  operands: GraphOperands<K>,
  attributes: GraphAttributes<K>,
  details?: OpDetails<K>,
): readonly GraphValue[] {
  const builder = new GraphBuilder(originOf(kind));
  const results = builder.add(kind, operands, attributes, details);
  keep(builder.ops);
  return results;
}

/** Records what `body` builds. */
export function recordWith(name: string, body: (builder: GraphBuilder) => GraphValue): GraphValue {
  const builder = new GraphBuilder(originOf(name));
  const result = body(builder);
  keep(builder.ops);
  return result;
}

/**
 * The ops that values need, each after those it uses, and the values at which the search ended: those with
 * data, parameters other than `parameters`, and what was there before the value numbered `since`.
 */
export function graphOf(
  results: readonly GraphValue[],
  parameters: ReadonlySet<GraphValue>,
  since = 0,
): { readonly ops: readonly AnyGraphOp[]; readonly free: readonly GraphValue[] } {
  const ops: AnyGraphOp[] = [];
  const seen = new Set<AnyGraphOp>();
  const free = new Set<GraphValue>();
  // A stack of its own: programs can be deeper than the call stack.
  const pending: { readonly value?: GraphValue; readonly op?: AnyGraphOp }[] = results
    .map((value) => ({ value }))
    .reverse();
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (next.op !== undefined) {
      ops.push(next.op);
      continue;
    }
    const { value } = next;
    if (value === undefined || parameters.has(value)) continue;
    const known = computed.has(value) || isHeld(value) || value.id < since;
    const op = known ? undefined : producers.get(value);
    if (op === undefined) {
      free.add(value);
      continue;
    }
    if (seen.has(op)) continue;
    seen.add(op);
    pending.push({ op });
    for (const operand of [...usedBy(op)].reverse()) pending.push({ value: operand });
  }
  return { ops, free: [...free] };
}

function dataOf(value: GraphValue): Tensor {
  requireUsable(value);
  const found = computed.get(value);
  if (found !== undefined) return found;
  const result = deferred.get(value);
  if (result !== undefined) return settled(value, computeNow(result));
  if (isHeld(value))
    throw new TilewrightError({
      code: "TW9315",
      message: "an array lies on a device that is no longer chosen",
      expected: "useDevice with its device, or await x.read() first",
      found: "the evaluator",
    });
  throw new TilewrightError({
    code: "TW9302",
    message: "a value of a recorded function has no data",
    expected: "an array outside the function",
    found: "a parameter of a function that is being recorded",
  });
}

/** The data of a value that has it here already; undefined for what would have to be computed or brought. */
export function dataAtHand(value: GraphValue): Tensor | undefined {
  return isUnusable(value) ? undefined : computed.get(value);
}

/** Runs a graph on the evaluator. */
export function runGraph(
  graph: GraphRegion,
  inputs: readonly Tensor[],
  limits: RunLimits = {},
): readonly Tensor[] {
  return evaluate(moduleOf(graph), "main", inputs, limits).filter(isTensorDatum);
}

/** What values that are still to be computed need. */
function neededBy(missing: readonly GraphValue[]): ReturnType<typeof graphOf> {
  const needed = graphOf(missing, new Set());
  for (const value of needed.free) requireUsable(value, true);
  return needed;
}

/** Whether a value is still to be computed. */
export function isPending(value: GraphValue): boolean {
  return !computed.has(value) && !isHeld(value) && !deferred.has(value);
}

/** Results of runs of the evaluator that wait until somebody reads. */
const deferred = new WeakMap<GraphValue, DeferredResult>();

/** Keeps the data of a value that was deferred or recorded. */
function settled(value: GraphValue, data: Tensor): Tensor {
  deferred.delete(value);
  // How it came about need not be kept.
  producers.delete(value);
  if (!isUnusable(value)) setMade(value, data);
  return data;
}

/** The data of values, or the runs that compute it under `limits`. */
function runsOf(
  values: readonly GraphValue[],
  limits: RunLimits,
): readonly (Tensor | DeferredResult)[] {
  for (const value of values) requireUsable(value);
  const missing = [...new Set(values.filter(isPending))];
  const { ops, free } = neededBy(missing);
  const inputs = free.map((value) => deferred.get(value) ?? dataOf(value));
  const run: DeferredRun = { graph: graphRegion(free, ops, missing), inputs, limits };
  return values.map((value) => {
    const index = missing.indexOf(value);
    return index >= 0 ? { run, index } : (deferred.get(value) ?? dataOf(value));
  });
}

/** A call of a compiled function that runs when one of its results is needed. */
export function defer(
  graph: GraphRegion,
  inputs: readonly GraphValue[],
  limits: RunLimits,
): readonly GraphValue[] {
  const run: DeferredRun = { graph, inputs: runsOf(inputs, {}), limits };
  return graph.results.map(({ type }, index) => {
    const value = graphValue(type);
    deferred.set(value, { run, index });
    return value;
  });
}

/** Computes values that have no data yet, in one run. */
export function compute(values: readonly GraphValue[], limits: RunLimits = {}): readonly Tensor[] {
  const missing = values.filter((value) => !computed.has(value) && !deferred.has(value));
  if (missing.length > 0) {
    const { ops, free } = neededBy(missing);
    const results = runGraph(graphRegion(free, ops, missing), free.map(dataOf), limits);
    for (const [i, value] of missing.entries()) {
      const tensor = results[i];
      if (tensor !== undefined) setMade(value, tensor);
      // The data is there, so how it came about need not be kept.
      producers.delete(value);
    }
  }
  return values.map(dataOf);
}

/**
 * Where values are computed that are still to be, and the compiled function that takes them, if any; undefined for the evaluator. The default
 * device is not worth its while for what the evaluator does at once, but where something of it lies on a device.
 */
export function placeFor(values: readonly GraphValue[], graph?: GraphRegion): Place | undefined {
  const ranks = graph === undefined ? undefined : ranksFor(graph);
  if (ranks !== undefined) return ranks;
  const place = chosenPlace();
  if (place?.isDefault !== true) return place;
  if (values.some(isHeld) || (graph !== undefined && !isQuickEachTime(graph))) return place;
  const { ops, free } = graphOf(values.filter(isPending), new Set());
  return free.some(isHeld) || !isQuick(ops) ? place : undefined;
}

/** Values with or without data, as a device takes them; those still to be computed are run there first. */
export function onDevice(
  place: Place,
  values: readonly GraphValue[],
  limits: RunLimits = {},
): readonly DeviceInput[] {
  const missing = [...new Set(values.filter(isPending))];
  if (missing.length > 0 && place.ranks !== undefined) {
    // Ranks run what was written for them; what leads there is computed as ever.
    const other = placeFor(missing);
    if (other === undefined) compute(missing, limits);
    else onDevice(other, missing, limits);
  } else if (missing.length > 0 && place.isDefault && placeFor(missing) === undefined)
    compute(missing, limits);
  else if (missing.length > 0) {
    const { ops, free } = neededBy(missing);
    runOnDevice(place, graphRegion(free, ops, missing), free.map(inputOf), missing, { limits });
    // How it came about need not be kept.
    for (const value of missing) producers.delete(value);
  }
  return values.map(inputOf);
}

function inputOf(value: GraphValue): DeviceInput {
  requireUsable(value);
  return { value, data: isHeld(value) ? undefined : dataOf(value) };
}

/** The data of a value, wherever it is computed. */
async function read(value: GraphValue, limits: RunLimits): Promise<Tensor> {
  requireUsable(value);
  const known = computed.get(value);
  if (known !== undefined) return known;
  const place = placeFor([value]);
  if (place === undefined && !isHeld(value)) {
    const [run] = runsOf([value], limits);
    return run !== undefined && "run" in run
      ? settled(value, await computeWithBreaks(run))
      : dataOf(value);
  }
  const begins = !isHeld(value);
  const [input] = place === undefined ? [inputOf(value)] : onDevice(place, [value], limits);
  const data = input?.data ?? (await downloaded(value, limits, begins));
  // It may have been disposed of meanwhile.
  if (!isUnusable(value)) computed.set(value, data);
  producers.delete(value);
  return data;
}

async function computedWhereItLies(value: GraphValue): Promise<void> {
  requireUsable(value);
  const place = computed.has(value) ? undefined : placeFor([value]);
  if (place !== undefined) onDevice(place, [value]);
  if (isHeld(value)) await ready(value);
  else await read(value, {});
}

export function setData(value: GraphValue, data: Tensor): void {
  computed.set(value, data);
}

/** The data of a value that the evaluator has computed. */
export function setMade(value: GraphValue, data: Tensor): void {
  setData(value, data);
  noteMade(value);
}

/** Gives up the memory of values, wherever it is; using them afterwards is an error. */
export function disposeValues(values: readonly GraphValue[]): void {
  markUnusable(values, "disposed of");
  for (const value of values) {
    computed.delete(value);
    deferred.delete(value);
    disposeHeldValue(value);
  }
}

/** Gives the memory of values to a call that is about to run. */
export function donateValues(values: readonly GraphValue[]): void {
  markUnusable(values, "donated");
  for (const value of values) computed.delete(value);
}

export function typeOfArray(value: GraphValue): TensorType {
  if (isTensor(value.type)) return value.type;
  throw new Error("arrays are tensors");
}

/** An array of elements of one dtype; its shape is known, its data once it is read. */
export class NDArray<D extends DTypeName = DTypeName> {
  /** The value in the graph that is recorded. */
  readonly value: GraphValue;

  constructor(value: GraphValue) {
    this.value = value;
  }

  /** The extents of the axes; [] for a single number. */
  get shape(): readonly number[] {
    return typeOfArray(this.value).shape;
  }

  /** The name of the format of the elements, such as `"f32"`. */
  get dtype(): D {
    const { dtype } = elements[typeOfArray(this.value).element];
    if (dtype === undefined) throw new Error("arrays have elements that kernels have");
    return dtype.name as D;
  }

  /** The number of axes. */
  get rank(): number {
    return this.shape.length;
  }

  /** The elements as a host array. Limits hold for what has to be computed, and end the waiting for what was begun before. */
  async read(limits: RunLimits = {}): Promise<HostArray<D>> {
    const location = captureLocation();
    requireKnownOptions("read", limits, ["signal", "timeLimit", "stepLimit"], "TW4015", location);
    requireRunLimits("read", limits, location);
    requireNotAborted("read", limits);
    const array = arrayOfTensor(await read(this.value, limits));
    if (array === undefined) throw new Error("arrays have elements that kernels have");
    return array as HostArray<D>;
  }

  /** The elements as nested lists, a single one as itself. */
  async values(limits: RunLimits = {}): Promise<Nested<number | bigint | boolean>> {
    return toNested(await this.read(limits));
  }

  /** Resolves when the elements are computed, and leaves them where they are; rejects with what went wrong. */
  async blockUntilReady(): Promise<void> {
    await computedWhereItLies(this.value);
  }

  /** Gives its memory back, on a device at once; using it afterwards is an error. Doing it twice is harmless. */
  dispose(): void {
    disposeValues([this.value]);
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** The dtype and the shape, such as `Array(f32[2, 3])`; not the elements, which `values()` gives. */
  toString(): string {
    return `Array(${this.dtype}[${this.shape.join(", ")}])`;
  }

  /** Numbers are not there while a program is recorded; this stops `x + 1` from making text of them. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === "string") return this.toString();
    throw new TilewrightError({
      code: "TW9303",
      message: "an array was used as a number",
      expected: "a function such as add(x, 1), or await x.values()",
      found: this.toString(),
    });
  }

  /** Throws: elements are there once they are read, by `await x.values()`. */
  toJSON(): never {
    throw new TilewrightError({
      code: "TW9303",
      message: "an array was turned into JSON",
      expected: "await x.values()",
      found: this.toString(),
    });
  }
}
