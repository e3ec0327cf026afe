/**
 * Products whose operands are read where they lie in other values, and whose result is written where a transpose would have moved it,
 * so that nothing is copied.
 *
 *   q, k = heads cut out of x [b, t, 3·h·d]       a: part of x, batch b and h, rows t, depth d
 *   dot(q, k) [b, h, t, t]                        b: another part of it, by columns
 *   transpose(dot(p, v)) [b, t, h, d]             out: batch b and h, rows t apart by h·d
 *
 * An axis of a batch along which an operand has one matrix for all (broadcast heads) is none of its axes; rows that lie in two runs are
 * those of two matrices. A value that is computed as it is used is read from memory instead if what is read of it is most of it.
 */
import { matmul } from "../../../kernels/matmul/matmul.ts";
import type { Operation } from "../../../device/operation.ts";
import { tensor } from "../../../lang/index.ts";
import type { TensorSpec } from "../../../lang/index.ts";
import { capturesOf } from "../../ops/captures.ts";
import { elements } from "../../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { operandsOf, regionsOf } from "../../ops/traverse.ts";
import { sizeOf } from "../../ops/types.ts";
import { dotAxes } from "../dot-axes.ts";
import { productFormats, leastProducts } from "../library.ts";
import type { LibraryCall, ProductFormats } from "../library.ts";
import { loweringOf } from "../record.ts";
import { storageOf, tensorTypeOf } from "../storage.ts";
import { jointModes } from "./joint-modes.ts";
import type { JointMode } from "./joint-modes.ts";
import { placesIn, viewsOf } from "./strided.ts";
import type { Axis, Mode, Strided } from "./strided.ts";

type Product = GraphOp<"stablehlo.dot_general">;

export interface ViewedProduct {
  readonly call: LibraryCall;
  /** The values that the operands are parts of. */
  readonly sources: readonly GraphValue[];
  /** The value that the product writes: its result, or what that is moved into. */
  readonly result: GraphValue;
  /** The ops that would have moved it. */
  readonly absorbed: readonly AnyGraphOp[];
}

/** Axes of an operand or of the result by what they are to the product. */
interface Roles {
  readonly batch: readonly Mode[];
  readonly first: readonly Mode[];
  readonly second: readonly Mode[];
}

interface Candidate {
  readonly view: Strided;
  /** Whether elements would have been moved otherwise. */
  readonly isMoved: boolean;
}

/** Where the result may be written. */
interface Target extends Candidate {
  readonly result: GraphValue;
  readonly absorbed: readonly AnyGraphOp[];
}

function countOf(value: GraphValue): number {
  return sizeOf(tensorTypeOf(value).shape);
}

function rolesOf({ axes }: Strided, ...groups: readonly (readonly number[])[]): Roles {
  const modes = (list: readonly number[] = []): readonly Mode[] =>
    list.flatMap((axis): Axis => axes[axis] ?? []);
  const [batch, first, second] = groups;
  return { batch: modes(batch), first: modes(first), second: modes(second) };
}

const known = new WeakMap<GraphRegion, ReadonlyMap<AnyGraphOp, ViewedProduct>>();

/** The products of a region that are carried out over views. */
export function viewedProducts(region: GraphRegion): ReadonlyMap<AnyGraphOp, ViewedProduct> {
  const before = known.get(region);
  if (before !== undefined) return before;
  const found = productsOf(region);
  known.set(region, found);
  return found;
}

function productsOf(region: GraphRegion): ReadonlyMap<AnyGraphOp, ViewedProduct> {
  const found = new Map<AnyGraphOp, ViewedProduct>();
  const products = region.ops.filter((op) => op.kind === "stablehlo.dot_general");
  if (products.length === 0) return found;
  const places = new Places(region, products);
  for (const op of products) {
    const formats = productFormats(op);
    const viewed = formats && viewedProduct(op, formats, places);
    if (viewed === undefined) continue;
    found.set(op, viewed);
    for (const each of viewed.absorbed) places.absorb(each);
  }
  return found;
}

/** What products of a region can read and write where. */
class Places {
  readonly #definitions = new Map<GraphValue, AnyGraphOp>();
  readonly #users = new Map<GraphValue, AnyGraphOp[]>();
  readonly #results: ReadonlySet<GraphValue>;
  /** Elements that products read of values, at least. */
  readonly #read = new Map<GraphValue, Map<GraphValue, number>>();

  constructor({ ops, results }: GraphRegion, products: readonly Product[]) {
    this.#results = new Set(results);
    for (const op of ops) {
      for (const value of op.results) this.#definitions.set(value, op);
      for (const value of [...operandsOf(op), ...regionsOf(op).flatMap(capturesOf)])
        this.#users.set(value, [...(this.#users.get(value) ?? []), op]);
    }
    for (const { operands } of products)
      for (const value of [operands.lhs, operands.rhs])
        for (const { base } of this.#views(value))
          this.#read.set(
            base,
            (this.#read.get(base) ?? new Map<GraphValue, number>()).set(value, countOf(value)),
          );
  }

  /** What was moved into a value has no memory of its own any more. */
  absorb(op: AnyGraphOp): void {
    for (const value of op.results) this.#definitions.delete(value);
  }

  #views(value: GraphValue): readonly Strided[] {
    return viewsOf(value, (each) => this.#definitions.get(each));
  }

  /** A value as parts of others that have memory, or that are read for the most part. */
  sources(value: GraphValue): readonly Candidate[] {
    return this.#views(value)
      .map((view, depth) => ({ view, isMoved: depth > 0 && !isWhole(view) }))
      .filter(({ view: { base } }) => base === value || this.#isHeld(base));
  }

  #isHeld(base: GraphValue): boolean {
    const op = this.#definitions.get(base);
    if (op === undefined || loweringOf(op).form !== "map") return true;
    if (op.kind === "stablehlo.constant" || op.kind === "stablehlo.iota") return false;
    const read = [...(this.#read.get(base)?.values() ?? [])];
    return read.reduce((sum, each) => sum + each, 0) >= countOf(base);
  }

  /** Where a result can be written: where the transposes that alone use it would move it, or where it is itself. */
  targets(result: GraphValue): readonly Target[] {
    const own: Target = { ...this.#whole(result), result, absorbed: [] };
    const found: Target[] = [own];
    const absorbed: AnyGraphOp[] = [];
    for (let value = result; ;) {
      const [user, ...others] = this.#users.get(value) ?? [];
      const isOnly = user !== undefined && others.length === 0 && !this.#results.has(value);
      if (!isOnly || (user.kind !== "stablehlo.transpose" && user.kind !== "stablehlo.reshape"))
        return found;
      absorbed.push(user);
      const [next] = user.results;
      if (next === undefined) return found;
      value = next;
      if (user.kind !== "stablehlo.transpose") continue;
      const moved = viewsOf(value, (each) =>
        each === result ? undefined : this.#definitions.get(each),
      );
      const view = moved.find(({ base }) => base === result);
      const places = view && placesIn(view, value);
      if (places !== undefined)
        found.push({ view: places, isMoved: true, result: value, absorbed: [...absorbed] });
    }
  }

  #whole(value: GraphValue): Candidate {
    const [view] = viewsOf(value, () => undefined);
    if (view === undefined) throw new Error("a value is a part of itself");
    return { view, isMoved: false };
  }
}

/** Whether a view has all of a value as it lies there. */
function isWhole({ base, offset, axes }: Strided): boolean {
  let inside = 1;
  for (const { extent, stride } of axes.flat().toReversed()) {
    if (extent === 1) continue;
    if (stride !== inside) return false;
    inside *= extent;
  }
  return offset === 0 && inside === countOf(base);
}

function viewedProduct(
  op: Product,
  formats: ProductFormats,
  places: Places,
): ViewedProduct | undefined {
  const { lhs, rhs } = op.operands;
  const [result] = op.results;
  if (result === undefined) return undefined;
  const options: {
    readonly left: Candidate;
    readonly right: Candidate;
    readonly target: Target;
    readonly depth: number;
  }[] = [];
  for (const [i, left] of places.sources(lhs).entries())
    for (const [j, right] of places.sources(rhs).entries())
      for (const [k, target] of places.targets(result).entries())
        if (left.isMoved || right.isMoved || target.isMoved)
          options.push({ left, right, target, depth: i + j + k });
  // What goes furthest back copies least.
  for (const { left, right, target } of options.toSorted((one, other) => other.depth - one.depth)) {
    const call = callOf(op, formats, left, right, target);
    if (call !== undefined)
      return {
        call,
        sources: [left.view.base, right.view.base],
        result: target.result,
        absorbed: target.absorbed,
      };
  }
  return undefined;
}

/** One mode, or none of extent 1. */
function single(modes: readonly JointMode[] | undefined): JointMode | undefined {
  if (modes === undefined || modes.length > 1) return undefined;
  return modes[0] ?? { extent: 1, strides: [] };
}

/** The longest of some modes, and the others. */
function withLongest(modes: readonly JointMode[]): readonly [JointMode, readonly JointMode[]] {
  const most = Math.max(1, ...modes.map(({ extent }) => extent));
  const at = modes.findLastIndex(({ extent }) => extent === most);
  return [modes[at] ?? { extent: 1, strides: [] }, modes.filter((_, i) => i !== at)];
}

/** Modes of one operand and the result as layers of the batch, all of which share the other operand. */
function sharing(modes: readonly JointMode[], other: 0 | 1): readonly JointMode[] {
  return modes.map(({ extent, strides: [own = 0, made = 0] }) => ({
    extent,
    strides: other === 0 ? [0, own, made] : [own, 0, made],
  }));
}

function callOf(
  op: Product,
  formats: ProductFormats,
  { view: left, ...ofA }: Candidate,
  { view: right, ...ofB }: Candidate,
  target: Target,
): LibraryCall | undefined {
  const numbers = op.attributes.dot_dimension_numbers;
  const [ofLeft, ofRight] = [
    dotAxes(numbers, "lhs", left.axes.length),
    dotAxes(numbers, "rhs", right.axes.length),
  ];
  const a = rolesOf(left, ofLeft.batch, ofLeft.free, ofLeft.contracted);
  const b = rolesOf(right, ofRight.batch, ofRight.contracted, ofRight.free);
  const count = [ofLeft.batch.length, ofLeft.free.length, ofRight.free.length];
  const from = (place: number): readonly number[] => {
    const start = count.slice(0, place).reduce((sum, each) => sum + each, 0);
    return Array.from({ length: count[place] ?? 0 }, (_, axis) => start + axis);
  };
  const out = rolesOf(target.view, from(0), from(1), from(2));
  const batch = jointModes([a.batch, b.batch, out.batch]);
  const rows = jointModes([a.first, out.first]);
  const columns = jointModes([b.second, out.second]);
  const depth = single(jointModes([a.second, b.first]));
  if (batch === undefined || rows === undefined || columns === undefined || depth === undefined)
    return undefined;
  // Rows or columns in two runs are those of two matrices, which share the other operand: the longer run stays one of each.
  const [row, otherRows] = withLongest(rows);
  const [column, otherColumns] = withLongest(columns);
  const layers = [...batch, ...sharing(otherRows, 1), ...sharing(otherColumns, 0)];
  if (layers.length > 2) return undefined;
  const [m, n, k] = [row.extent, column.extent, depth.extent];
  if (layers.reduce((all, { extent }) => all * extent, m * n * k) < leastProducts) return undefined;
  const part = (
    at: number,
    shape: readonly [number, number],
    strides: readonly [number | undefined, number | undefined],
  ): Part =>
    partOf(
      layers.map(({ extent, strides: all }) => ({ extent, stride: all[at] ?? 0 })),
      shape,
      strides,
    );
  const parts = {
    a: part(0, [m, k], [row.strides[0], depth.strides[0]]),
    b: part(1, [k, n], [depth.strides[1], column.strides[0]]),
    out: part(2, [m, n], [row.strides[1], column.strides[1]]),
  };
  const lies = [
    { part: parts.a, offset: left.offset, of: op.operands.lhs, isMoved: ofA.isMoved },
    { part: parts.b, offset: right.offset, of: op.operands.rhs, isMoved: ofB.isMoved },
    { part: parts.out, offset: 0, of: target.result, isMoved: target.isMoved },
  ];
  if (!lies.every((each) => isReadable(each)) || !isByRows(parts.out)) return undefined;
  return {
    operation: operationOf(parts, op, target.result, formats),
    inputs: [
      {
        name: "a",
        value: left.base,
        shape: [spanOf(parts.a)],
        view: { offset: left.offset, ...parts.a },
      },
      {
        name: "b",
        value: right.base,
        shape: [spanOf(parts.b)],
        view: { offset: right.offset, ...parts.b },
      },
    ],
    outputs: [
      isPlain(parts.out)
        ? { name: "out", shape: plainShape(parts.out) }
        : { name: "out", shape: [spanOf(parts.out)], view: { offset: 0, ...parts.out } },
    ],
  };
}

/** An array within another: its shape, [outer, inner, rows, columns] or a matrix, and its strides. */
interface Part {
  readonly shape: readonly number[];
  readonly strides: readonly number[];
}

function partOf(
  layers: readonly Mode[],
  shape: readonly [number, number],
  [down, along]: readonly [number | undefined, number | undefined],
): Part {
  const [rows, columns] = shape;
  // Along an axis of one element strides say nothing.
  const byRows = along === 1 || (along === undefined && down !== 1);
  const strides = byRows ? [down ?? columns, along ?? 1] : [down ?? 1, along ?? rows];
  if (layers.length === 0) return { shape, strides };
  const [outer = { extent: 1, stride: 0 }, inner = { extent: 1, stride: 0 }] = layers;
  const both = [outer, inner];
  return {
    shape: [...both.map(({ extent, stride }) => (stride === 0 ? 1 : extent)), ...shape],
    strides: [...both.map(({ stride }) => (stride === 0 ? 1 : stride)), ...strides],
  };
}

function isByRows({ strides }: Part): boolean {
  return strides.at(-1) === 1;
}

/**
 * Whether neighbours lie together along rows or columns, and all else begins where TMA can read it, which is why it need not be moved. What
 * lies as it is may begin anywhere: it is copied in either case.
 */
function isReadable({
  part: { shape, strides },
  offset,
  of,
  isMoved,
}: {
  readonly part: Part;
  readonly offset: number;
  readonly of: GraphValue;
  readonly isMoved: boolean;
}): boolean {
  const [rows = 1, columns = 1] = shape.slice(-2);
  const [down = 1, along = 1] = strides.slice(-2);
  const byRows = along === 1;
  if (!byRows && down !== 1) return false;
  const [pitch, width, steps] = byRows ? [down, columns, rows] : [along, rows, columns];
  if (pitch < width) return false;
  const { bits } = elements[tensorTypeOf(of).element];
  const far = strides.slice(0, -2).filter((_, axis) => (shape[axis] ?? 1) > 1);
  const begins = [offset, ...(steps > 1 ? [pitch] : []), ...far];
  return !isMoved || begins.every((each) => (each * bits) % 128 === 0);
}

/** Whether a part is an array by rows. */
function isPlain({ shape, strides }: Part): boolean {
  let inside = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const extent = shape[axis] ?? 1;
    if (extent > 1 && strides[axis] !== inside) return false;
    inside *= extent;
  }
  return true;
}

/** The shape of a result that is no part of a larger array. */
function plainShape({ shape }: Part): readonly number[] {
  const [rows = 1, columns = 1] = shape.slice(-2);
  return shape.length === 2 ? shape : [sizeOf(shape.slice(0, -2)), rows, columns];
}

function spanOf({ shape, strides }: Part): number {
  return shape.reduce((reach, extent, axis) => reach + (extent - 1) * (strides[axis] ?? 0), 1);
}

const operations = new Map<string, Operation>();
/** Operations that are remembered; plans hold on to theirs. */
const mostOperations = 512;

function operationOf(
  parts: { readonly a: Part; readonly b: Part; readonly out: Part },
  { operands }: Product,
  result: GraphValue,
  { precision }: ProductFormats,
): Operation {
  const [element, out] = [tensorTypeOf(operands.lhs).element, tensorTypeOf(result).element];
  const key = JSON.stringify([parts, element, out, precision]);
  const same = operations.get(key);
  if (same !== undefined) return same;
  const spec = (part: Part, format: typeof element): TensorSpec => {
    const dtype = storageOf(format);
    if (dtype === undefined) throw new Error("devices have these formats");
    return tensor(dtype, part.shape, { strides: part.strides });
  };
  const dtype = storageOf(out);
  const made = matmul({
    a: spec(parts.a, element),
    b: spec(parts.b, element),
    out: isPlain(parts.out) && dtype !== undefined ? dtype : spec(parts.out, out),
    ...(precision !== undefined && { precision }),
  }) as unknown as Operation;
  const [oldest] = operations.keys();
  if (operations.size >= mostOperations && oldest !== undefined) operations.delete(oldest);
  operations.set(key, made);
  return made;
}
