/**
 * Windows that grow, as JAX prints running sums, products and extremes: each holds all elements up to its own, or from
 * it on, and initial values besides. As windows they take n² steps; the library's `scan` takes n.
 *
 *   x [a b c]   size 3, padding 2 before    windows  i i a   i a b   a b c      scan forwards
 *               size 3, padding 2 behind    windows  a b c   b c i   c i i      scan from the end
 *
 * The initial value i takes part n times less the elements of the window, and once as the start: usually it changes nothing and
 * is left out, otherwise it is combined in afterwards, so many times.
 *
 * Sums and products of f32 are scanned in f64 and rounded once, like those of rows, and so are products of shorter floats: the product
 * of a stretch must not leave the range where the product of all before it does not.
 */
import type { Operation } from "../../../device/operation.ts";
import { scan } from "../../../kernels/scan/scan.ts";
import type { ScanCombination } from "../../../kernels/scan/scan.ts";
import { tensor, dim } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { graphRegion } from "../../ops/node.ts";
import { completeWindow } from "../../infer/window.ts";
import { combinerKind, neutralNumbers } from "../../ops/combiner.ts";
import type { ElementType } from "../../ops/elements.ts";
import { isFloatElement } from "../../ops/elements.ts";
import { registerKernelCall } from "../../ops/kernel-calls.ts";
import type { GraphModule, GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { splatValue } from "../../ops/small-floats.ts";
import { sizeOf, tensorType, typeText } from "../../ops/types.ts";
import type { TensorType } from "../../ops/types.ts";
import {
  binary,
  broadcastInDim,
  combiner,
  convert,
  iota,
  reshape,
  splatOf,
  subtract,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import type { AnyPointRule } from "../context.ts";
import { storageOf } from "../storage.ts";
import { expandLargeWindows } from "./large-windows.ts";
import { closedRegion, identityOf } from "./monoid.ts";
import { scanByRegion } from "./scan-by-region.ts";

type ReduceWindow = GraphOp<"stablehlo.reduce_window">;

interface Rule {
  readonly combine: ScanCombination;
  /** What `count` initial values come to. */
  readonly repeated: (builder: GraphBuilder, init: GraphValue, count: GraphValue) => GraphValue;
}

const once = (_: GraphBuilder, init: GraphValue): GraphValue => init;

const rules = {
  "stablehlo.add": {
    combine: "sum",
    repeated: (builder, init, count) => binary(builder, "stablehlo.multiply", init, count),
  },
  "stablehlo.multiply": {
    combine: "prod",
    repeated: (builder, init, count) => binary(builder, "stablehlo.power", init, count),
  },
  "stablehlo.maximum": { combine: "max", repeated: once },
  "stablehlo.minimum": { combine: "min", repeated: once },
} as const satisfies { readonly [K in keyof typeof neutralNumbers]: Rule };
type Combiner = keyof typeof rules;

/** Elements that the library scans as graphs mean it. */
const scanned: ReadonlySet<ElementType> = new Set<ElementType>([
  ...(["f64", "f32", "f16", "bf16", "i32", "ui32", "i64", "ui64"] as const),
]);

/** Shorter rows take no more time as windows, and are combined in order. */
export const leastScanned = 16;

/** What an element is combined as. */
function workingOf(kind: Combiner, element: ElementType): ElementType {
  const isProduct = kind === "stablehlo.multiply" && isFloatElement(element);
  const isSum = kind === "stablehlo.add" && element === "f32";
  return isProduct || isSum ? "f64" : element;
}

interface Cumulative {
  readonly kind: Combiner;
  readonly axis: number;
  readonly isReverse: boolean;
}

/** The axis and the direction of windows that grow; undefined for all others, and for those that are as well made one by one. */
function growthOf(op: ReduceWindow): Omit<Cumulative, "kind"> | undefined {
  const [operand] = op.operands.inputs;
  if (operand === undefined) return undefined;
  const { shape } = typeOfValue(operand);
  const window = completeWindow(shape.length, {
    sizes: op.attributes.window_dimensions,
    strides: op.attributes.window_strides,
    padding: op.attributes.padding,
    baseDilations: op.attributes.base_dilations,
    windowDilations: op.attributes.window_dilations,
  });
  const axis = window.sizes.findIndex((size) => size > 1);
  const extent = shape[axis] ?? 0;
  const isPlain = [window.strides, window.baseDilations, window.windowDilations].every((list) =>
    list.every((each) => each === 1),
  );
  const isAlone = window.sizes.every((size, each) => size === (each === axis ? extent : 1));
  const padding = window.padding.map((pair) => pair.join());
  const grows = (pair: string): boolean =>
    padding.every((each, at) => each === (at === axis ? pair : "0,0"));
  const isReverse = grows(`0,${extent - 1}`);
  if (!isPlain || !isAlone || extent < leastScanned || sizeOf(shape) === 0) return undefined;
  return isReverse || grows(`${extent - 1},0`) ? { axis, isReverse } : undefined;
}

/** Windows that grow and combine by an op that the library's `scan` has. */
function cumulativeOf(op: ReduceWindow): Cumulative | undefined {
  const [operand, ...others] = op.operands.inputs;
  const [result] = op.results;
  const kind = combinerKind(op.regions.body);
  const growth = growthOf(op);
  if (operand === undefined || result === undefined || others.length > 0) return undefined;
  if (kind === undefined || !Object.hasOwn(rules, kind) || growth === undefined) return undefined;
  const { element } = typeOfValue(operand);
  if (!scanned.has(element) || typeOfValue(result).element !== element) return undefined;
  if (kind === "stablehlo.multiply" && element === "f64") return undefined;
  return { kind: kind as Combiner, ...growth };
}

export function isCumulative(op: ReduceWindow): boolean {
  return growthOf(op) !== undefined;
}

const operations = new Map<string, Operation>();

/** One operation for all rows of an element, whatever their sizes: their kernels are shared. */
function operationOf(
  { kind, isReverse: reverse }: Cumulative,
  working: ElementType,
  element: ElementType,
): Operation {
  const { combine } = rules[kind];
  const key = [combine, working, element, reverse].join();
  const known = operations.get(key);
  if (known !== undefined) return known;
  const [dtype, out] = [storageOf(working), storageOf(element)];
  if (dtype === undefined || out === undefined) throw new Error("devices have what is scanned");
  const x = tensor(dtype, [dim("outer"), dim("n"), dim("inner")]);
  const made = scan({ x, axis: 1, combine, reverse, out }) as unknown as Operation;
  operations.set(key, made);
  return made;
}

/** What a scan of [outer, n, inner] means, as windows. */
function meaningOf(
  builder: GraphBuilder,
  type: TensorType,
  element: ElementType,
  rule: Cumulative,
): GraphRegion {
  const [, extent = 1] = type.shape;
  const padding = [[0, 0], rule.isReverse ? [0, extent - 1] : [extent - 1, 0], [0, 0]];
  return builder.region([type], (inner, [operand]) => {
    const scalar = tensorType(type.element, []);
    const init = splatOf(inner, scalar, neutralNumbers[rule.kind](type.element));
    const body = combiner(inner, type.element, rule.kind);
    const running = inner.one(
      "stablehlo.reduce_window",
      { inputs: [operand as GraphValue], init_values: [init] },
      { window_dimensions: [1, extent, 1], padding },
      { regions: { body } },
    );
    return [convert(inner, running, element)];
  });
}

const targets = new Map<string, string>();

function targetOf(
  builder: GraphBuilder,
  type: TensorType,
  element: ElementType,
  rule: Cumulative,
): string {
  const key = [typeText(type), element, rule.kind, rule.isReverse].join();
  const known = targets.get(key);
  if (known !== undefined) return known;
  const operation = operationOf(rule, type.element, element);
  const meaning = meaningOf(builder, type, element, rule);
  const target = registerKernelCall({ operation, meaning });
  targets.set(key, target);
  return target;
}

/** The initial values of each window, the start among them, come to this. Short floats have no numbers for all counts. */
function startsOf(
  builder: GraphBuilder,
  init: GraphValue,
  shape: readonly number[],
  { kind, axis, isReverse }: Cumulative,
): GraphValue {
  const { element } = typeOfValue(init);
  const isShort = element === "f16" || element === "bf16";
  const type = tensorType(isShort ? "f32" : element, shape);
  const place = iota(builder, type, axis);
  const extent = shape[axis] ?? 0;
  const one = splatOf(builder, type, 1);
  const count = isReverse
    ? binary(builder, "stablehlo.add", place, one)
    : subtract(builder, splatOf(builder, type, extent), place);
  const start = broadcastInDim(builder, convert(builder, init, type.element), shape, []);
  return convert(builder, rules[kind].repeated(builder, start, count), element);
}

/** Whether an initial value changes nothing, as far as can be seen here. */
function isNeutral({ ops }: GraphBuilder, init: GraphValue, kind: Combiner): boolean {
  const op = ops.find(({ results }) => results.includes(init));
  if (op?.kind !== "stablehlo.constant" || "kind" in op.attributes.value) return false;
  const found = splatValue(op.attributes.value);
  const neutral = neutralNumbers[kind](typeOfValue(init).element);
  // A whole number may be of either kind, and has one text.
  return String(found) === String(neutral);
}

/** A scan by a region that no op of the library is; undefined where initial values change something, or are not known. */
function scanOf(
  op: ReduceWindow,
  builder: GraphBuilder,
  rule: AnyPointRule,
): readonly GraphValue[] | undefined {
  const growth = growthOf(op);
  const body = closedRegion(builder, op.regions.body);
  if (growth === undefined || body === undefined) return undefined;
  const identity = identityOf(builder, body, op.operands.init_values);
  if (identity === undefined) return undefined;
  // Windows have their elements in the order of the axis, and a scan from its end meets the last one first.
  const half = body.parameters.length / 2;
  const [left, right] = [body.parameters.slice(0, half), body.parameters.slice(half)];
  const turned = growth.isReverse ? graphRegion([...right, ...left], body.ops, body.results) : body;
  const { inputs } = op.operands;
  return scanByRegion(
    builder,
    { inputs, body: turned, ...growth, identity, wanted: [...inputs.keys()] },
    rule,
  );
}

export function expandCumulative(
  op: ReduceWindow,
  builder: GraphBuilder,
  _: GraphModule,
  pointRule: AnyPointRule,
): readonly GraphValue[] {
  const rule = cumulativeOf(op);
  if (rule === undefined) return scanOf(op, builder, pointRule) ?? expandLargeWindows(op, builder);
  const [operand] = op.operands.inputs;
  const [init] = op.operands.init_values;
  if (rule === undefined || operand === undefined || init === undefined)
    throw new Error("the windows were found to grow");
  const { shape, element } = typeOfValue(operand);
  const working = workingOf(rule.kind, element);
  const type = tensorType(working, [
    sizeOf(shape.slice(0, rule.axis)),
    shape[rule.axis] ?? 1,
    sizeOf(shape.slice(rule.axis + 1)),
  ]);
  const rows = reshape(builder, convert(builder, operand, working), type.shape);
  const attributes = {
    call_target_name: targetOf(builder, type, element, rule),
    has_side_effect: false,
    api_version: 1,
    called_computations: [],
  };
  const call = builder.one("stablehlo.custom_call", { inputs: [rows] }, attributes, {
    types: [tensorType(element, type.shape)],
  });
  const running = reshape(builder, call, shape);
  if (isNeutral(builder, init, rule.kind)) return [running];
  return [binary(builder, rule.kind, running, startsOf(builder, init, shape, rule))];
}
