/**
 * The integers that a kernel computes places in memory from, in one block and one step of each loop: of a block in the middle of the grid and of
 * steps in the middle, unless others are asked for.
 *
 *   %9 = binary %iota, %start {fn = add}       [768, 769, 770, …]
 *   %14 = load %rows indices(%9)               data: any numbers, the same ones for the same elements
 *
 * Numbers that are read are not known. They stand for numbers far apart, which what bounds them brings into bounds: `min(read, 19999)` is
 * some number up to 19999.
 */
import { compareNumbers } from "../../formats/arithmetic/functions.ts";
import type { BinaryFunction, UnaryFunction } from "../../formats/arithmetic/functions.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import { ruleOf } from "../ops.ts";
import type { SomeOpRules } from "../ops.ts";
import { evaluateSize } from "../size.ts";
import type { DimensionValues } from "../size.ts";
import { regionList, walkOps, yieldedValues } from "../traverse.ts";

/** The numbers of a tile in row-major order, or of a scalar. */
export interface Numbers {
  readonly values: Float64Array;
  /** Whether they follow from what is read. */
  readonly isData: boolean;
}

type Loop = Op<"loop"> | Op<"while">;

/** Where a value that no op makes comes from. */
interface Carried {
  readonly loop: Loop;
  /** Among the parameters of the region, of which the counter is number −1. */
  readonly position: number;
}

const unaries: { readonly [F in UnaryFunction]?: (value: number) => number } = {
  neg: (value) => -value,
  abs: Math.abs,
  sign: Math.sign,
  not: (value) => Number(value === 0),
  floor: Math.floor,
  ceil: Math.ceil,
  trunc: Math.trunc,
  sqrt: Math.sqrt,
  log2: Math.log2,
  exp2: (value) => 2 ** value,
};

const binaries: { readonly [F in BinaryFunction]?: (left: number, right: number) => number } = {
  add: (left, right) => left + right,
  sub: (left, right) => left - right,
  mul: (left, right) => left * right,
  rem: (left, right) => left % right,
  min: Math.min,
  max: Math.max,
  and: (left, right) => left & right,
  or: (left, right) => left | right,
  xor: (left, right) => left ^ right,
  shl: (left, right) => left * 2 ** right,
  shr: (left, right) => Math.floor(left / 2 ** right),
};

/** A number for an element of memory that nobody knows. */
function scattered(element: number): number {
  let bits = Math.imul(element ^ 0x9e3779b9, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 4;
}

/** Numbers that nobody knows, as many as there are elements. */
function unknown(count: number, from = 0): Numbers {
  const values = new Float64Array(count);
  for (let i = 0; i < count; i++) values[i] = scattered(from + i);
  return { values, isData: true };
}

function shapeOf({ type }: Value): readonly number[] {
  return type.kind === "tile" || type.kind === "inflight" ? type.shape : [];
}

function countOf(shape: readonly number[]): number {
  return shape.reduce((product, extent) => product * extent, 1);
}

/** For each element of `shape`, in order, the sum of its coordinates times `strides`. */
export function placesOf(
  shape: readonly number[],
  strides: readonly number[],
  first = 0,
): Float64Array {
  const places = new Float64Array(countOf(shape));
  places[0] = first;
  let filled = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const [extent = 1, stride = 0] = [shape[axis], strides[axis]];
    for (let i = 1; i < extent; i++)
      for (let j = 0; j < filled; j++) places[i * filled + j] = (places[j] ?? 0) + i * stride;
    filled *= extent;
  }
  return places;
}

export function rowMajor(shape: readonly number[]): readonly number[] {
  const strides: number[] = [];
  let stride = 1;
  for (const extent of shape.toReversed()) {
    strides.unshift(stride);
    stride *= extent;
  }
  return strides;
}

/** Who makes each value of a kernel. */
export class Definitions {
  readonly ops = new Map<Value, AnyOp>();
  readonly carried = new Map<Value, Carried>();

  constructor({ body }: Kernel) {
    walkOps(body, (op) => {
      for (const result of op.results) this.ops.set(result, op);
      if (op.kind === "loop") this.#carry(op, op.regions.body, -1);
      if (op.kind === "while") for (const region of regionList(op)) this.#carry(op, region, 0);
    });
  }

  #carry(loop: Loop, { parameters }: Region, first: number): void {
    for (const [i, value] of parameters.entries())
      this.carried.set(value, { loop, position: first + i });
  }
}

export class IndexValues {
  readonly #known = new Map<Value, Numbers>();
  readonly #pending = new Set<Value>();
  readonly #definitions: Definitions;
  readonly #kernel: Kernel;
  readonly #dimensions: DimensionValues;
  /** The loop of which the step after the usual one is meant. */
  readonly #later: AnyOp | undefined;

  constructor(
    kernel: Kernel,
    dimensions: DimensionValues,
    definitions: Definitions,
    later?: AnyOp,
  ) {
    this.#kernel = kernel;
    this.#dimensions = dimensions;
    this.#definitions = definitions;
    this.#later = later;
  }

  size(size: Parameters<typeof evaluateSize>[0]): number {
    return evaluateSize(size, this.#dimensions);
  }

  /** The op that makes a value. */
  definition(value: Value): AnyOp | undefined {
    return this.#definitions.ops.get(value);
  }

  of(value: Value): Numbers {
    const found = this.#known.get(value);
    if (found !== undefined) return found;
    // What is computed from itself, turn by turn, is not known.
    if (this.#pending.has(value)) return unknown(countOf(shapeOf(value)), value.id);
    this.#pending.add(value);
    const op = this.#definitions.ops.get(value);
    const made = op === undefined ? this.#carriedIn(value) : this.#made(op, value);
    this.#pending.delete(value);
    this.#known.set(value, made);
    return made;
  }

  /** The first number of a value. */
  first(value: Value): number {
    return this.of(value).values[0] ?? 0;
  }

  #carriedIn(value: Value): Numbers {
    const carried = this.#definitions.carried.get(value);
    if (carried === undefined) return unknown(countOf(shapeOf(value)), value.id);
    const { loop, position } = carried;
    if (position < 0 && loop.kind === "loop") return this.#counter(loop, value);
    const initial = loop.operands.initial[position];
    return initial === undefined ? unknown(1, value.id) : this.of(initial);
  }

  #counter(loop: Op<"loop">, value: Value): Numbers {
    const [lower, upper, step] = (["lower", "upper", "step"] as const).map((name) =>
      this.of(loop.operands[name]),
    );
    const from = lower?.values[0] ?? 0;
    const by = step?.values[0] ?? 1;
    const trips = upper?.isData === true ? 1 : Math.ceil(((upper?.values[0] ?? 0) - from) / by);
    const later = this.#later === loop ? 1 : 0;
    const place = Math.max(0, Math.floor((trips - 1) / 2)) + later;
    return { ...this.constant(value, from + place * by), isData: lower?.isData ?? false };
  }

  #made(op: AnyOp, value: Value): Numbers {
    return ruleOf(makers, op)?.(op, value, this) ?? this.anything(value);
  }

  /** Numbers that nobody knows. */
  anything(value: Value): Numbers {
    return unknown(countOf(shapeOf(value)), value.id);
  }

  constant(value: Value, number: number): Numbers {
    return { values: new Float64Array(countOf(shapeOf(value))).fill(number), isData: false };
  }

  /** Blocks along an axis of the grid. */
  gridExtent(name: string): number {
    const axis = this.#kernel.grid.find((each) => each.name === name);
    return axis === undefined ? 1 : this.size(axis.extent);
  }
}

/** The elements of `source` at these places. */
function taken(source: Value, places: Float64Array, known: IndexValues): Numbers {
  const { values, isData } = known.of(source);
  return { values: places.map((place) => values[place] ?? 0), isData };
}

/** The numbers that ops make. */
const makers: SomeOpRules<[value: Value, known: IndexValues], Numbers> = {
  constant: (op, value, known) => known.constant(value, Number(op.attributes.value)),
  size: (op, value, known) => known.constant(value, known.size(op.attributes.of)),
  grid_size: (op, value, known) => known.constant(value, known.gridExtent(op.attributes.axis)),
  block_index: (op, value, known) =>
    known.constant(value, Math.floor(known.gridExtent(op.attributes.axis) / 2)),
  thread_index: (_, value, known) => known.constant(value, 0),
  cluster_rank: (_, value, known) => known.constant(value, 0),
  iota: (op, value) => {
    const shape = shapeOf(value);
    const strides = shape.map((_, axis) => Number(axis === op.attributes.axis));
    return { values: placesOf(shape, strides), isData: false };
  },
  unary: (op, value, known) => {
    const fn = unaries[op.attributes.fn];
    const { values, isData } = known.of(op.operands.source);
    return fn === undefined ? known.anything(value) : { values: values.map(fn), isData };
  },
  binary: combined,
  compare: (op, value, known) => {
    const [left, right] = [known.of(op.operands.left), known.of(op.operands.right)];
    const holds = compareNumbers[op.attributes.predicate];
    // Of what nobody knows all is taken to be as it is asked for.
    if (left.isData || right.isData) return { ...known.constant(value, 1), isData: true };
    const other = right.values;
    return {
      values: left.values.map((each, i) => Number(holds(each, other[i] ?? 0))),
      isData: false,
    };
  },
  select: (op, _, known) => chosen(op, known),
  cast: (op, _, known) => {
    const { values, isData } = known.of(op.operands.source);
    return { values: values.map(Math.trunc), isData };
  },
  assume: (op, _, known) => known.of(op.operands.source),
  layout_cast: (op, _, known) => known.of(op.operands.source),
  reshape: (op, _, known) => known.of(op.operands.source),
  broadcast: (op, value, known) => {
    const { source } = op.operands;
    const shape = shapeOf(value);
    const own = shapeOf(source);
    const strides = shape.map(() => 0);
    for (const [i, stride] of rowMajor(own).entries()) {
      const axis = op.attributes.axes[i];
      if (axis !== undefined && own[i] !== 1) strides[axis] = stride;
    }
    return taken(source, placesOf(shape, strides), known);
  },
  transpose: (op, value, known) => {
    const { source } = op.operands;
    const own = rowMajor(shapeOf(source));
    const strides = op.attributes.permutation.map((axis) => own[axis] ?? 0);
    return taken(source, placesOf(shapeOf(value), strides), known);
  },
  slice: (op, value, known) => {
    const { source } = op.operands;
    const own = rowMajor(shapeOf(source));
    const first = op.attributes.starts.reduce((sum, at, axis) => sum + at * (own[axis] ?? 0), 0);
    return taken(source, placesOf(shapeOf(value), own, first), known);
  },
  load: read,
  if: (op, value, known) => {
    const { then, otherwise } = op.regions;
    const condition = known.of(op.operands.condition);
    const way = condition.isData || condition.values[0] === 1 ? then : otherwise;
    const given = yieldedValues(way)[op.results.indexOf(value)];
    return given === undefined ? known.anything(value) : known.of(given);
  },
};

/** Elements that are picked alike are alike. */
function read(
  { operands: { ref, indices } }: Op<"load">,
  value: Value,
  known: IndexValues,
): Numbers {
  const count = countOf(shapeOf(value));
  const [places] = indices;
  if (places === undefined) return unknown(count, ref.id);
  const { values } = known.of(places);
  return values.length === count
    ? { values: values.map(scattered), isData: true }
    : unknown(count, ref.id);
}

function combined(
  { operands, attributes: { fn } }: Op<"binary">,
  value: Value,
  known: IndexValues,
): Numbers {
  const [left, right] = [known.of(operands.left), known.of(operands.right)];
  const isData = left.isData || right.isData;
  const other = right.values;
  if (left.isData !== right.isData && (fn === "min" || fn === "max")) {
    const [data, bound] = left.isData ? [left, right] : [right, left];
    if (fn === "max") return data;
    const values = data.values.map((each, i) => {
      const most = bound.values[i] ?? 0;
      return each <= most || most < 0 ? Math.min(each, most) : each % (most + 1);
    });
    return { values, isData };
  }
  if (fn === "div") {
    const isWhole = value.type.kind !== "ref" && isWholeNumber(value);
    return {
      values: left.values.map((each, i) => {
        const quotient = each / (other[i] ?? 1);
        return isWhole ? Math.trunc(quotient) : quotient;
      }),
      isData,
    };
  }
  const combine = binaries[fn];
  if (combine === undefined) return unknown(left.values.length, value.id);
  return { values: left.values.map((each, i) => combine(each, other[i] ?? 0)), isData };
}

function chosen({ operands }: Op<"select">, known: IndexValues): Numbers {
  const condition = known.of(operands.condition);
  const [ifTrue, ifFalse] = [known.of(operands.ifTrue), known.of(operands.ifFalse)];
  if (condition.isData) return ifFalse.isData && !ifTrue.isData ? ifFalse : ifTrue;
  const [single = 0] = condition.values;
  const values = ifTrue.values.map((each, i) =>
    (condition.values.length === 1 ? single : (condition.values[i] ?? 0)) === 0
      ? (ifFalse.values[i] ?? 0)
      : each,
  );
  return { values, isData: ifTrue.isData || ifFalse.isData };
}

function isWholeNumber({ type }: Value): boolean {
  return (type.kind === "scalar" || type.kind === "tile") && type.dtype.kind !== "float";
}
