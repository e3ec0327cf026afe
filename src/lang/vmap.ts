/**
 * `vmap`: a kernel for one item becomes a kernel for a batch of them. The grid gets one more axis, the slowest, and
 * each argument that differs from item to item one more axis, wherever it lies; the rest of the kernel stays as it is,
 * working on the windows of its item:
 *
 *   vmap(rows, { x: 1 })         x: [n, m]   becomes  [n, batch, m], and `x.at(all, batch, all)` in the body
 *                                scale: f32           the same number for the whole batch
 *                                out: [n]    becomes  [batch, n]
 *                                gmem [8]    becomes  [batch, 8]: items do not know of each other
 *
 * | thing                    | in the batch                                                |
 * |--------------------------|-------------------------------------------------------------|
 * | input, in-out array      | with the axis that is named, or shared by all items         |
 * | scalar                   | an array of one for each item where axis 0 is named         |
 * | output                   | with the axis that is named, or axis 0                      |
 * | gmem scratch, semaphores | one for each item                                           |
 * | clusters, threads, warps | as they were                                                |
 */
import { changedOp } from "../ir/make-op.ts";
import { i32 } from "../formats/dtype.ts";
import { Builder } from "../ir/builder.ts";
import type { AnyOp, Kernel, KernelParameter, Region, Value } from "../ir/node.ts";
import { nextValueId } from "../ir/rewrite/analysis.ts";
import { changeOps, changeRegions, substituteOperands } from "../ir/rewrite/substitute.ts";
import { dimension } from "../ir/size.ts";
import type { Size } from "../ir/size.ts";
import { refOf } from "../ir/traverse.ts";
import { dataShape, refType } from "../ir/types.ts";
import { kernelFor, variesByTarget, varyByTarget } from "../ir/target-variants.ts";
import type { RefType, Type } from "../ir/types.ts";
import { verifyKernel } from "../ir/verify/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord, requireKnownOptions } from "../support/options.ts";
import type { TensorSpec, ScalarSpec } from "./arguments.ts";
import { isKernelDefinition, KernelDefinition } from "./kernel.ts";
import { NameRegister } from "./names.ts";
import { isExtent } from "./sizes.ts";
import { collectDimensions } from "./spec.ts";
import type { TensorSpecs, InputSpecs } from "./spec.ts";
import { describe, wrongKind } from "./traced.ts";

/** Where each argument has the axis of the batch; what is not named is shared, but for outputs, which have it first. */
export type BatchAxes<
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
> = { readonly [N in keyof Inputs | keyof Outputs | keyof Inouts]?: number };

/** What the specification of a batch's inputs is: a scalar that differs from item to item is an array. */
export type BatchedInputs<Inputs extends InputSpecs, Axes> = {
  readonly [N in keyof Inputs]: N extends keyof Axes
    ? Inputs[N] extends ScalarSpec<infer D>
      ? TensorSpec<D>
      : Inputs[N]
    : Inputs[N];
};

/** The axis that a batch adds. */
export interface VmapOptions {
  /** What the grid calls the new axis; `batch` without it. */
  readonly gridAxis?: string;
  /** How many items there are; without it a dimension of that name, known at launch. */
  readonly size?: Size;
}

/**
 * The kernel for a batch: `axes` says where each argument has its axis of items, counted in the shape with that axis,
 * from the end where negative. Outputs that it does not name have it first; other arguments are shared by all items.
 */
export function vmap<
  Inputs extends InputSpecs,
  Outputs extends TensorSpecs,
  Inouts extends TensorSpecs,
  const Axes extends BatchAxes<Inputs, Outputs, Inouts>,
>(
  definition: KernelDefinition<Inputs, Outputs, Inouts>,
  axes: Axes,
  options: VmapOptions = {},
): KernelDefinition<BatchedInputs<Inputs, Axes>, Outputs, Inouts> {
  const location = captureLocation();
  if (!isKernelDefinition(definition))
    return wrongKind("the first argument of vmap", "a kernel", definition, location);
  const batchOf = (own: Kernel): Kernel => {
    const made = batchKernel(own, planBatch(own, axes, options, location));
    verifyKernel(made);
    return made;
  };
  const kernel = batchOf(definition.kernel);
  if (variesByTarget(definition.kernel))
    varyByTarget(kernel, (target) => batchOf(kernelFor(definition.kernel, target)));
  const { inputs, outputs, inouts } = definition;
  return new KernelDefinition(kernel, {
    inputs: batchSpecs(inputs, kernel) as BatchedInputs<Inputs, Axes>,
    outputs: batchSpecs(outputs, kernel) as Outputs,
    inouts: batchSpecs(inouts, kernel) as Inouts,
  });
}

/** An argument of the kernel, and what it is in the batch. */
interface BatchArgument {
  readonly parameter: KernelParameter;
  /** Where it has the axis of items; undefined for what they share. */
  readonly position: number | undefined;
  readonly type: Type;
  readonly strides: readonly Size[] | undefined;
}

/** What a batch adds to a kernel. */
interface Batch {
  readonly axis: string;
  readonly size: Size;
  readonly arguments: readonly BatchArgument[];
  readonly location: Location;
}

function planBatch(
  kernel: Kernel,
  axes: { readonly [name: string]: unknown },
  options: VmapOptions,
  location: Location,
): Batch {
  requireKnownOptions("vmap", options, ["gridAxis", "size"], "TW1033", location);
  if (!isRecord(axes) || !isReadable(axes, []))
    wrongKind("the axes of vmap", "an object with a number for each argument", axes, location);
  const { gridAxis: axis = "batch", size } = options;
  const register = new NameRegister();
  for (const { name } of kernel.grid) register.claim("a grid axis", name, location);
  for (const { name } of kernel.parameters) register.claim("an argument", name, location);
  for (const name of kernel.threads) register.claim("a program thread", name, location);
  // A dimension that the kernel has already would silently be the number of items too.
  if (size === undefined)
    for (const { name } of kernel.dimensions)
      if (!register.names.includes(name)) register.claim("a dimension", name, location);
  register.claim("the axis of vmap", axis, location);
  if (size !== undefined && !isExtent(size))
    wrongKind("the size of a batch", "a positive whole number or a size", size, location);
  const known = kernel.parameters.map(({ name }) => name);
  for (const name of Object.keys(axes))
    if (!known.includes(name))
      throw misfit(
        `kernel ${kernel.name} has no argument ${name}`,
        known.join(", "),
        name,
        location,
      );
  const items = size ?? dimension(axis);
  const found = kernel.parameters.map((parameter): BatchArgument => {
    const position = positionOf(parameter, axes, location);
    const type = batchType(parameter.value.type, position, items);
    return { parameter, position, type, strides: batchStrides(parameter, position, axis) };
  });
  if (found.every(({ position }) => position === undefined))
    throw misfit(
      `vmap of ${kernel.name} gives no argument an axis`,
      "an axis for at least one argument",
      "none",
      location,
    );
  return { axis, size: items, arguments: found, location };
}

function positionOf(
  { name, role, value: { type } }: KernelParameter,
  axes: { readonly [name: string]: unknown },
  location: Location,
): number | undefined {
  const axis = axes[name] ?? (role === "output" ? 0 : undefined);
  if (axis === undefined) return undefined;
  const rank = shapeOf(type).length + 1;
  if (typeof axis !== "number" || !Number.isInteger(axis) || axis < -rank || axis >= rank)
    throw misfit(
      `${name} cannot have the axis of a batch at ${describe(axis)}`,
      `a whole number from ${-rank} to ${rank - 1}`,
      describe(axis),
      location,
    );
  return axis < 0 ? axis + rank : axis;
}

function misfit(
  message: string,
  expected: string,
  found: string,
  location: Location,
): TilewrightError {
  return new TilewrightError({ code: "TW1039", message, location, expected, found });
}

/** The extents of an argument; a scalar has none. */
function shapeOf(type: Type): readonly Size[] {
  if (type.kind === "ref") return type.shape;
  return type.kind === "scalar" ? dataShape(type) : [];
}

/** The specifications as the batch's kernel has them. */
function batchSpecs(specs: InputSpecs, kernel: Kernel): InputSpecs {
  return Object.fromEntries(
    Object.entries(specs).map(([name, spec]): [string, InputSpecs[string]] => {
      const parameter = kernel.parameters.find((each) => each.name === name);
      if (parameter?.value.type.kind !== "ref") return [name, spec];
      const { shape } = parameter.value.type;
      const { strides } = parameter;
      return [name, Object.freeze({ kind: "array", dtype: spec.dtype, shape, strides })];
    }),
  );
}

function batchKernel(kernel: Kernel, batch: Batch): Kernel {
  const { axis, size, location } = batch;
  const first = Object.freeze({ name: axis, extent: size, cluster: 1 });
  const sizes = batch.arguments.flatMap(({ type, strides = [] }) => [...shapeOf(type), ...strides]);
  const header = {
    ...kernel,
    name: `${kernel.name}_batched`,
    grid: Object.freeze([first, ...kernel.grid]),
    dimensions: Object.freeze(collectDimensions([...kernel.dimensions, size, ...sizes], location)),
  };
  const body = new BatchedBody(header, batch).build(kernel);
  const parameters = batch.arguments.flatMap(({ parameter: { name, role }, strides }, at) => {
    const value = body.parameters[at];
    if (value === undefined) return [];
    const isArray = value.type.kind === "ref" && role === "scalar";
    const made = { name, role: isArray ? "input" : role, value } as const;
    return [Object.freeze(strides === undefined ? made : { ...made, strides })];
  });
  return Object.freeze({ ...header, parameters: Object.freeze(parameters), body });
}

function batchType(type: Type, position: number | undefined, size: Size): Type {
  if (position === undefined || (type.kind !== "ref" && type.kind !== "scalar")) return type;
  return refType("gmem", type.dtype, shapeOf(type).toSpliced(position, 0, size));
}

/** An array that lies by strides is asked for one more, under a name of its own. */
function batchStrides(
  { name, strides }: KernelParameter,
  position: number | undefined,
  axis: string,
): readonly Size[] | undefined {
  if (position === undefined || strides === undefined) return strides;
  return Object.freeze(strides.toSpliced(position, 0, dimension(`${axis}_stride_of_${name}`)));
}

/** Rebuilds a body so that everything in it is the item's of its block. */
class BatchedBody {
  readonly #batch: Batch;
  readonly #builder: Builder;
  readonly #substitution = new Map<Value, Value>();

  constructor(header: Kernel, batch: Batch) {
    this.#batch = batch;
    this.#builder = new Builder(header, nextValueId(header));
  }

  build(kernel: Kernel): Region {
    const { axis, location } = this.#batch;
    const builder = this.#builder;
    const given = builder.openRegion(this.#batch.arguments.map(({ type }) => type));
    const item = one(builder.add("block_index", {}, { axis }, {}, location));
    for (const [at, { parameter, position }] of this.#batch.arguments.entries()) {
      const value = one(given.slice(at));
      this.#substitution.set(
        parameter.value,
        position === undefined ? value : this.#ofItem(parameter, value, position, item),
      );
    }
    for (const op of kernel.body.ops.slice(0, -1)) this.#add(op, item);
    return builder.closeRegion([], kernel.location);
  }

  #ofItem({ role }: KernelParameter, whole: Value, position: number, item: Value): Value {
    const ref = this.#itemOf(whole, position, item);
    if (role !== "scalar") return ref;
    return one(this.#builder.add("load", { ref, indices: [] }, {}, {}, this.#batch.location));
  }

  /** Memory and counters of the whole grid are there once for each item. */
  #add(op: AnyOp, item: Value): void {
    const builder = this.#builder;
    if (op.kind === "alloc" && op.attributes.space === "gmem") {
      const shape = [this.#batch.size, ...op.attributes.shape];
      const whole = one(builder.add("alloc", {}, { ...op.attributes, shape }, {}, op.location));
      this.#substitution.set(one(op.results), this.#itemOf(whole, 0, item));
    } else if (op.kind === "alloc_semaphore") {
      const shape = [this.#batch.size, ...op.attributes.shape];
      const added = builder.add(
        "alloc_semaphore",
        {},
        { ...op.attributes, shape },
        {},
        op.location,
      );
      this.#substitution.set(one(op.results), one(added));
    } else builder.append(this.#changed(op, item));
  }

  #changed(op: AnyOp, item: Value): AnyOp {
    const own = substituteOperands(op, this.#substitution);
    return changeRegions(countersOf(own, item), (region) =>
      changeOps(
        region,
        region.ops.map((inner) => this.#changed(inner, item)),
      ),
    );
  }

  /** The window of an item on what all of them have side by side. */
  #itemOf(whole: Value, position: number, item: Value): Value {
    const { location } = this.#batch;
    const { shape }: RefType = refOf(whole);
    const start = { value: 0, dtype: i32, shape: [] };
    const offsets = shape.map((_, axis) =>
      axis === position ? item : one(this.#builder.add("constant", {}, start, {}, location)),
    );
    const sizes = shape.toSpliced(position, 1, 1);
    const attributes = { sizes, dropped: [position] };
    return one(this.#builder.add("slice_ref", { ref: whole, offsets }, attributes, {}, location));
  }
}

/** An op on a counter, on that of its item. */
function countersOf(op: AnyOp, item: Value): AnyOp {
  if (!("semaphore" in op.operands)) return op;
  const indices = Object.freeze([item, ...op.operands.indices]);
  return changedOp(op, { operands: Object.freeze({ ...op.operands, indices }) });
}

function one(values: readonly Value[]): Value {
  const [value] = values;
  if (value === undefined) throw new Error("an op of a batch has no result");
  return value;
}
