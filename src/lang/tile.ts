/**
 * Tiles: immutable blocks of numbers in the registers of a program thread. What they share with
 * scalars is in `elementwise.ts`; here are the methods that know of axes. An axis may be negative and
 * then counts from the end.
 */
import type { ArgFunction, ReduceFunction, ScanFunction } from "../formats/arithmetic/functions.ts";
import { isFloat, u16, u32, u4, u64, u8 } from "../formats/dtype.ts";
import type { DType, DTypeName, HostValue } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import { shapeText } from "../ir/size.ts";
import { isData } from "../ir/types.ts";
import type { RegisterLayout } from "../layout/algebra/register-layout.ts";
import { layoutOfText } from "../layout/algebra/named-layouts.ts";
import { locatedAt, TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { axisFromEnd, axisOption, requireAxisOptions, requireDifferentAxes } from "./axes.ts";
import { broadcasts, broadcastValue, shapeOf } from "./broadcast.ts";
import { reduceWith, scanWith } from "./combine.ts";
import type { Combine } from "./combine.ts";
import type { InLogic } from "./elementwise.ts";
import { Elementwise } from "./elementwise.ts";
import { make, noteCondition } from "./making.ts";
import { wrongOperand } from "./operands.ts";
import { Scalar } from "./elementwise.ts";
import { emit, emitValue, originOf } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { numberList, useValue, wrongKind } from "./traced.ts";

/** The axis of an operation, and nothing else. */
export interface AxisOption {
  /** An axis; a negative one counts from the end. */
  readonly axis: number;
}

/** Along which axes a reduction goes, and how it leaves the shape. */
export interface ReduceOptions {
  /** One axis or several; negative ones count from the end. */
  readonly axis: number | readonly number[];
  /** Keeps the axes, with extent 1. */
  readonly keepDims?: boolean;
}

/** Along which axis a search goes, and how it leaves the shape. */
export interface SearchOptions {
  /** The axis; a negative one counts from the end. */
  readonly axis: number;
  /** Keeps the axis, with extent 1. */
  readonly keepDims?: boolean;
}

/** Along which axis and in which direction a running combination goes. */
export interface ScanOptions {
  /** The axis; a negative one counts from the end. */
  readonly axis: number;
  /** From the last element to the first. */
  readonly reverse?: boolean;
}

/** Along which axis and in which order to sort. */
export interface SortOptions {
  /** The axis; a negative one counts from the end. */
  readonly axis: number;
  /** Greatest first. */
  readonly descending?: boolean;
}

type BitFunction = "and" | "or" | "xor";
const bitFunctions: readonly BitFunction[] = ["and", "or", "xor"];

/** Formats that have no functions of their own, and those that have their bits. */
const storageBits: { readonly [N in DTypeName]?: DType } = {
  f8e4m3fn: u8,
  f8e5m2: u8,
  f8e8m0fnu: u8,
  f6e2m3fn: u8,
  f6e3m2fn: u8,
  f4e2m1fn: u4,
};

type Tiles<T extends readonly DTypeName[]> = { readonly [I in keyof T]: Tile<T[I]> };

/** An array of numbers in registers, spread over the threads of a program thread. Operations make new tiles. */
export class Tile<D extends DTypeName = DTypeName> extends Elementwise<"tile", D> {
  /** Tells a tile from a scalar. */
  readonly kind = "tile";
  /** The extents of its axes. */
  readonly shape: readonly number[];

  /** @internal */
  constructor(made: Origin) {
    super(made);
    this.shape = shapeOf(made.value);
  }

  /** @internal */
  [make](made: Origin): Tile {
    return new Tile(made);
  }

  /** The element of a tile that has only one, of whatever rank, as a scalar. */
  item(): Scalar<D> {
    const location = captureLocation();
    const value = useValue(this, location);
    return new Scalar(originOf(reshapedValue(value, [], location), location));
  }

  /** The same elements, in row-major order, under another shape; an extent of -1 is what the others leave. */
  reshape(shape: readonly number[]): Tile<D> {
    const location = captureLocation();
    const extents = numberList("the shape of reshape", shape, location);
    return this.#reshape(inferredShape(this.shape, extents, location), location);
  }

  /** Output axis i is this tile's axis `permutation[i]`; all axes reversed without one. */
  transpose(permutation: readonly number[] = this.shape.map((_, axis) => axis).reverse()): Tile<D> {
    const location = captureLocation();
    const source = useValue(this, location);
    const axes = numberList("the permutation of transpose", permutation, location);
    if (this.shape.length === 0 && axes.length === 0) return this;
    return this.#tile(
      emitValue("transpose", { source }, { permutation: axes }, location),
      location,
    );
  }

  /**
   * States in which register layout this tile lies as it is made, at no cost: a layout, its name in `namedLayouts`, or its
   * text such as `(L2 L3 L4 R1 W0 W1 | R0 L0 L1)`. Where others need it elsewhere they convert; an instruction that leaves
   * it elsewhere is reported. A tile about which two layouts are stated has two places. See `convertLayout`.
   */
  layoutCast(layout: RegisterLayout | string): Tile<D> {
    const location = captureLocation();
    return this.#stateLayout(layout, {}, location);
  }

  /**
   * This tile in another register layout, wherever it lies itself: a layout, its name in `namedLayouts` or its text. What
   * moving its elements costs is in the report of the placement.
   */
  convertLayout(layout: RegisterLayout | string): Tile<D> {
    const location = captureLocation();
    return this.#stateLayout(layout, { convert: true }, location);
  }

  /**
   * Prefers a register layout for this tile: it is taken where the kernel costs little more for it, and
   * never makes a kernel impossible to place.
   */
  layoutHint(layout: RegisterLayout | string): Tile<D> {
    const location = captureLocation();
    return this.#stateLayout(layout, { hint: true }, location);
  }

  #stateLayout(
    layout: RegisterLayout | string,
    strength: { readonly hint?: true; readonly convert?: true },
    location: Location,
  ): Tile<D> {
    const source = useValue(this, location);
    const isLayout = typeof layout === "object" && (layout as unknown) !== null && "text" in layout;
    if (typeof layout !== "string" && !isLayout)
      wrongKind("the layout", "a layout or its text", layout, location);
    const { text } = locatedAt(location, () =>
      typeof layout === "string" ? layoutOfText(layout) : layout,
    );
    const attributes = { layout: text, ...strength };
    return this.#tile(emitValue("layout_cast", { source }, attributes, location), location);
  }

  /** The window of `sizes` elements from `starts`. */
  slice(starts: readonly number[], sizes: readonly number[]): Tile<D> {
    const location = captureLocation();
    const source = useValue(this, location);
    const attributes = {
      starts: numberList("the starts of slice", starts, location),
      sizes: numberList("the sizes of slice", sizes, location),
    };
    if ([this.shape, attributes.starts, attributes.sizes].every(({ length }) => length === 0))
      return this;
    return this.#tile(emitValue("slice", { source }, attributes, location), location);
  }

  /** Repeated to `shape`, by the rule of implicit broadcasting. */
  broadcastTo(shape: readonly number[]): Tile<D> {
    const location = captureLocation();
    const wanted = numberList("the shape of broadcastTo", shape, location);
    if (!broadcasts(this.shape, wanted)) {
      throw new TilewrightError({
        code: "TW1010",
        message: `a tile of shape ${shapeText(this.shape)} does not broadcast to ${shapeText(shape)}`,
        location,
        expected: `extents that are 1 or those of ${shapeText(shape)}, aligned at the last axis`,
        found: shapeText(this.shape),
      });
    }
    return this.#tile(broadcastValue(useValue(this, location), wanted, location), location);
  }

  /** With a new axis of extent 1 at position `axis`. */
  expand(options: AxisOption): Tile<D> {
    const location = captureLocation();
    const axis = axisOption("expand", options, location);
    const rank = this.shape.length + 1;
    const position = axisFromEnd(axis, rank);
    if (!Number.isInteger(position) || position < 0 || position >= rank)
      wrongKind("the axis of expand", `an axis from ${-rank} to ${rank - 1}`, axis, location);
    return this.#reshape(this.shape.toSpliced(position, 0, 1), location);
  }

  /** Sum of all elements, or along some axes. */
  sum(): Scalar<D>;
  sum(options: ReduceOptions): Tile<D>;
  sum(options?: ReduceOptions): Scalar<D> | Tile<D> {
    return this.#reduce("sum", "sum", options);
  }

  /** Product of all elements, or along some axes. */
  prod(): Scalar<D>;
  prod(options: ReduceOptions): Tile<D>;
  prod(options?: ReduceOptions): Scalar<D> | Tile<D> {
    return this.#reduce("prod", "prod", options);
  }

  /** Least element of all, or along some axes. */
  min(): Scalar<D>;
  min(options: ReduceOptions): Tile<D>;
  min(options?: ReduceOptions): Scalar<D> | Tile<D> {
    return this.#reduce("min", "min", options);
  }

  /** Greatest element of all, or along some axes. */
  max(): Scalar<D>;
  max(options: ReduceOptions): Tile<D>;
  max(options?: ReduceOptions): Scalar<D> | Tile<D> {
    return this.#reduce("max", "max", options);
  }

  /** Whether all elements are true, or all along one axis. */
  all(this: Tile<"bool">): Scalar<"bool">;
  all(this: Tile<"bool">, options: ReduceOptions): Tile<"bool">;
  all(this: Tile<"bool">, options?: ReduceOptions): Scalar<"bool"> | Tile<"bool"> {
    return this.#reduce("all", "and", options);
  }

  /** Whether any element is true, or any along one axis. */
  any(this: Tile<"bool">): Scalar<"bool">;
  any(this: Tile<"bool">, options: ReduceOptions): Tile<"bool">;
  any(this: Tile<"bool">, options?: ReduceOptions): Scalar<"bool"> | Tile<"bool"> {
    return this.#reduce("any", "or", options);
  }

  /** All elements combined bit by bit, or those along some axes. */
  reduce(this: InLogic<D>, fn: BitFunction): Scalar<D>;
  reduce(this: InLogic<D>, fn: BitFunction, options: ReduceOptions): Tile<D>;
  /**
   * All elements in row-major order, or those along some axes, combined by a function of one's own: it is traced on tiles, must
   * be associative, and `identity` leaves every element as it is. Several tiles go together by `reduceWith`.
   */
  reduce(combine: Combine<Tile<D>>, identity: number | HostValue<D>): Scalar<D>;
  reduce(
    combine: Combine<Tile<D>>,
    identity: number | HostValue<D>,
    options: ReduceOptions,
  ): Tile<D>;
  reduce(
    by: BitFunction | Combine<Tile<D>>,
    second?: ReduceOptions | number | HostValue<D>,
    third?: ReduceOptions,
  ): Scalar<D> | Tile<D> {
    if (typeof by !== "function" && !bitFunctions.includes(by))
      wrongKind(
        "what reduce combines by",
        '"and", "or", "xor", or a function',
        by,
        captureLocation(),
      );
    if (typeof by !== "function")
      return this.#reduce("reduce", by, second as ReduceOptions | undefined);
    const identity = second as number | HostValue<D>;
    return third === undefined
      ? this.#reduceAllWith(by, identity)
      : this.#reduceWith(by, identity, third);
  }

  /** Running combinations along an axis by a function of one's own, which must be associative; several tiles by `scanWith`. */
  scan(combine: Combine<Tile<D>>, identity: number | HostValue<D>, options: ScanOptions): Tile<D> {
    const location = captureLocation();
    if (typeof combine !== "function")
      wrongKind("what scan combines by", "a function of two tiles", combine, location);
    requireAxisOptions("scan", options, ["axis", "reverse"], location);
    return scanWith<Tile<D>>(this, combine, { ...options, identity });
  }

  /** Running sum along an axis. */
  cumsum(options: ScanOptions): Tile<D> {
    return this.#scan("sum", options);
  }

  /** Running product along an axis. */
  cumprod(options: ScanOptions): Tile<D> {
    return this.#scan("prod", options);
  }

  /** Least element so far along an axis. */
  cummin(options: ScanOptions): Tile<D> {
    return this.#scan("min", options);
  }

  /** Greatest element so far along an axis. */
  cummax(options: ScanOptions): Tile<D> {
    return this.#scan("max", options);
  }

  /** Index of the first least element along an axis; without one its index among all elements, in row-major order. */
  argmin(): Scalar<"i32">;
  argmin(options: SearchOptions): Tile<"i32">;
  argmin(options?: SearchOptions): Scalar<"i32"> | Tile<"i32"> {
    return this.#arg("argmin", options);
  }

  /** Index of the first greatest element along an axis; without one its index among all elements, in row-major order. */
  argmax(): Scalar<"i32">;
  argmax(options: SearchOptions): Tile<"i32">;
  argmax(options?: SearchOptions): Scalar<"i32"> | Tile<"i32"> {
    return this.#arg("argmax", options);
  }

  /** Sorted along an axis; equal elements keep their order. */
  sort(options: SortOptions): Tile<D> {
    const [keys] = this.#sort([], options);
    return keys;
  }

  /** Sorted along an axis, with tiles whose elements move along: `[keys, ...payloads]`. */
  sortWith<const P extends readonly DTypeName[]>(
    payloads: Tiles<P>,
    options: SortOptions,
  ): readonly [Tile<D>, ...Tiles<P>] {
    return this.#sort(payloads, options);
  }

  #sort<const P extends readonly DTypeName[]>(
    payloads: Tiles<P>,
    options: SortOptions,
  ): readonly [Tile<D>, ...Tiles<P>] {
    const location = captureLocation();
    const keys = useValue(this, location);
    if (!Array.isArray(payloads))
      wrongKind("the payloads of sortWith", "a list of tiles", payloads, location);
    const operands = {
      keys,
      payloads: payloads.map((payload: unknown) =>
        payload instanceof Tile
          ? useValue(payload, location)
          : wrongKind("a payload of sortWith", "a tile", payload, location),
      ),
    };
    requireAxisOptions("sort", options, ["axis", "descending"], location);
    const { axis, descending = false } = options;
    const attributes = { axis: axisFromEnd(axis, this.shape.length), descending };
    const results = emit("sort", operands, attributes, location);
    const tiles = results.map((value) => this.#tile(value, location));
    return tiles as unknown as readonly [Tile<D>, ...Tiles<P>];
  }

  #reduceWith(
    combine: Combine<Tile<D>>,
    identity: number | HostValue<D>,
    options: ReduceOptions,
  ): Tile<D> {
    const location = captureLocation();
    requireAxisOptions("reduce", options, ["axis", "keepDims"], location);
    const { axis } = options;
    const along = typeof axis === "number" ? [axis] : axesOf("reduce", axis, location);
    requireDifferentAxes("reduce", this.shape, along, location);
    return reduceWith<Tile<D>>(this, combine, { ...options, identity });
  }

  /** What is left is one element, of which any reduction is the element itself. */
  #reduceAllWith(combine: Combine<Tile<D>>, identity: number | HostValue<D>): Scalar<D> {
    if (this.shape.length === 0) return this.item();
    const axes = this.shape.map((_, axis) => axis);
    const last = this.#reduceWith(combine, identity, { axis: axes, keepDims: true });
    const bits = storageBits[this.dtype.name];
    if (bits === undefined)
      return last.#reduce("reduce", isFloat(this.dtype) ? "max" : "or") as Scalar<D>;
    const whole = last.bitcast(bits).#reduce("reduce", "or") as Scalar;
    return whole.bitcast(this.dtype);
  }

  #reduce<E extends DTypeName>(
    this: Tile<E>,
    method: string,
    fn: ReduceFunction,
    options?: ReduceOptions,
  ): Scalar<E> | Tile<E> {
    const location = captureLocation();
    const source = useValue(this, location);
    if (options !== undefined) requireAxisOptions(method, options, ["axis", "keepDims"], location);
    const { axis, keepDims = false } = options ?? {};
    const rank = this.shape.length;
    const given =
      typeof axis === "number" || axis === undefined ? axis : axesOf(method, axis, location);
    const along = typeof given === "number" ? [given] : given;
    const axes = along?.map((each) => axisFromEnd(each, rank)) ?? this.shape.map((_, each) => each);
    if (along !== undefined) requireDifferentAxes(method, this.shape, along, location);
    // A reduction of no axes is the element itself.
    const value = rank === 0 ? source : emitValue("reduce", { source }, { fn, axes }, location);
    const shape = this.shape.map((extent, position) => (axes.includes(position) ? 1 : extent));
    const result = keepDims ? reshapedValue(value, shape, location) : value;
    noteCondition(result, method, location);
    const made = originOf(result, location);
    return options === undefined ? new Scalar<E>(made) : new Tile<E>(made);
  }

  #scan(fn: ScanFunction, options: ScanOptions): Tile<D> {
    const location = captureLocation();
    const source = useValue(this, location);
    requireAxisOptions(`cum${fn}`, options, ["axis", "reverse"], location);
    const { axis, reverse = false } = options;
    const attributes = { fn, axis: axisFromEnd(axis, this.shape.length), reverse };
    return this.#tile(emitValue("scan", { source }, attributes, location), location);
  }

  #arg(fn: ArgFunction, options: SearchOptions | undefined): Scalar<"i32"> | Tile<"i32"> {
    const location = captureLocation();
    const value = useValue(this, location);
    const { length: rank } = this.shape;
    if (options === undefined) {
      const count = this.shape.reduce((product, extent) => product * extent, 1);
      const source = rank === 1 ? value : reshapedValue(value, [count], location);
      const index = emitValue("arg_reduce", { source }, { fn, axis: 0 }, location);
      return dataObject(index, location) as Scalar<"i32">;
    }
    requireAxisOptions(fn, options, ["axis", "keepDims"], location);
    const { axis, keepDims = false } = options;
    requireDifferentAxes(fn, this.shape, [axis], location);
    const along = axisFromEnd(axis, rank);
    const found = emitValue("arg_reduce", { source: value }, { fn, axis: along }, location);
    if (!keepDims) return new Tile(originOf(found, location));
    const shape = this.shape.with(along, 1);
    return new Tile(originOf(reshapedValue(found, shape, location), location));
  }

  #reshape(shape: readonly number[], location: Location): Tile<D> {
    return this.#tile(reshapedValue(useValue(this, location), shape, location), location);
  }

  #tile(value: Value, location: Location): Tile<D> {
    return new Tile(originOf(value, location));
  }
}

/** A value under another shape; one without axes is a scalar to the IR. */
function reshapedValue(source: Value, shape: readonly number[], location: Location): Value {
  const from = shapeOf(source);
  if (from.length === 0 && shape.length === 0) return source;
  if (shape.length === 0 && from.every((extent) => extent === 1))
    return singleElement(source, location);
  return emitValue("reshape", { source }, { shape }, location);
}

/** The only element of a tile: its bits by a reduction, which changes none. */
function singleElement(source: Value, location: Location): Value {
  if (!isData(source.type)) throw new Error("a tile has elements");
  const { dtype } = source.type;
  const axes = shapeOf(source).map((_, axis) => axis);
  const bits = unsignedOf(dtype);
  const as = (value: Value, to: DType): Value =>
    emitValue("bitcast", { source: value }, { dtype: to }, location);
  const whole = bits === undefined ? source : as(source, bits);
  const only = emitValue("reduce", { source: whole }, { fn: "or", axes }, location);
  return bits === undefined ? only : as(only, dtype);
}

/** The integers that hold a float's bits; undefined for what has the function itself. */
function unsignedOf(dtype: DType): DType | undefined {
  if (dtype.kind !== "float") return undefined;
  return [u4, u8, u16, u32, u64].find(({ bits }) => bits === dtype.bits);
}

/** The shape with an extent in place of -1, as many as leave the number of elements; what does not go is for inference to refuse. */
function inferredShape(
  from: readonly number[],
  shape: readonly number[],
  location: Location,
): readonly number[] {
  const at = shape.indexOf(-1);
  if (at === -1) return shape;
  const product = (extents: readonly number[]): number =>
    extents.reduce((count, extent) => count * extent, 1);
  const [count, others] = [product(from), product(shape.toSpliced(at, 1))];
  if (shape.lastIndexOf(-1) !== at || !(others > 0) || count % others !== 0)
    wrongKind(
      "the shape of reshape",
      `one -1 at most, beside extents that divide ${count} elements`,
      shape,
      location,
    );
  return shape.with(at, count / others);
}

/** The axes of a reduction as the user wrote them: a number, or a list of them. */
function axesOf(method: string, axes: unknown, location: Location): readonly number[] {
  if (Array.isArray(axes) && axes.length > 0 && axes.every((axis) => typeof axis === "number"))
    return axes;
  return wrongKind(`the axis of ${method}`, "a number, or a list of numbers", axes, location);
}

/** The scalar or tile that stands for a value made just now. */
export function dataObject(value: Value, location: Location): Scalar | Tile {
  const made = originOf(value, location);
  return value.type.kind === "scalar" ? new Scalar(made) : new Tile(made);
}

/**
 * Gives objects that have no elements yet, windows of memory and products in flight, the methods of tiles, to say what comes first: types refuse
 * `x.mul(2)`, and a program without types would hear of a missing function.
 */
export function refuseTileMethods(prototype: object): void {
  for (const owner of [Elementwise.prototype, Tile.prototype])
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (typeof value !== "function" || name in prototype) continue;
      const refuse = function (this: unknown): never {
        return wrongOperand(name, this, captureLocation());
      };
      Object.defineProperty(prototype, name, { value: refuse, configurable: true });
    }
}
