/**
 * Functions of the two halves of rows: gated layers (SwiGLU, GeGLU), whose gate and value are columns of one product, and rotary embeddings,
 * which rotate pairs of columns. Halves are read in place, each element once.
 *
 *   gated     out[j] = activation(x[j]) · x[n + j]
 *   rotary    out[j] = x[j] cos[j] − x[h + j] sin[j]        out[h + j] = x[h + j] cos[j] + x[j] sin[j]
 */
import type { DType, DTypeName, FloatName } from "../../formats/dtype.ts";
import { operation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { divideSizeExactly, multiplySizes, shapeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty, KernelDefinition, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { isTile } from "../../lang/elementwise.ts";
import type { Location } from "../../support/location.ts";
import { optionText, requireKnownOptions } from "../../support/options.ts";
import { computeFormat, computed } from "../support/numbers.ts";
import {
  givenArray,
  givenAxis,
  refused,
  requireFields,
  requireFloat,
  requireShape,
} from "../support/arguments.ts";
import type { FormatOf, GivenArray } from "../support/arguments.ts";
import { laidOut } from "../support/sizes.ts";
import { activations } from "./activations.ts";
import type { Activation } from "./activations.ts";
import type { MapConfiguration } from "./map-kernel.ts";
import { planStridedMap } from "./strided-map.ts";
import { tracedResults } from "./traced-results.ts";

/** What `gated` is made for. */
export interface GatedSpec<X extends FloatName> {
  /** The gate and then the value along the last axis: [..., 2n]. A format is an array of [m, 2n]. */
  readonly x: GivenArray<X>;
  /** `"silu"` is SwiGLU, `"gelu"` GeGLU; or a function on tiles of f32. */
  readonly activation: keyof typeof activations | ((gate: Tile<"f32">) => Tile<"f32">);
}

/** The operation that `gated` makes. */
export type GatedOperation<X extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<X> },
  Empty,
  MapConfiguration
>;

/** The first half of rows, activated, times the second. */
export function gated<X extends FloatName>(spec: GatedSpec<X>): GatedOperation<X> {
  const location = captureLocation();
  requireKnownOptions("gated", spec, ["x", "activation"], "TW1033", location);
  const usual = [dim("m"), multiplySizes(2, dim("n"))];
  const x = givenArray("x", "gated", spec.x, usual, location);
  requireFloat("x", "gated", x, location);
  const half = halfOf("gated", x, location);
  const compute = computeFormat(x.dtype);
  const activation = activationOf(spec.activation, location);
  const accuracy = { approximate: x.dtype.bits === 16 };
  const body = (tiles: { readonly [name: string]: unknown }) => ({
    out: activation(computed(tiles["gate"] as Tile, compute), accuracy)
      .mul(computed(tiles["value"] as Tile, compute))
      .cast(x.dtype),
  });
  tracedResults("gated", { gate: x, value: x }, {}, body, location);
  const out = tensor(x.dtype, x.shape.with(-1, half));
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "gated",
    inputs: { x },
    outputs: { out },
    plan: (dimensions, target) => {
      const { strides } = laidOut(x, dimensions);
      const made = laidOut(out, dimensions);
      const offset = (made.shape.at(-1) ?? 0) * (strides.at(-1) ?? 1);
      const { dtype } = x;
      const part = { parameter: "x", argument: "x", dtype, isOutput: false, strides };
      const result = { name: "out", parameter: "out", argument: "out", dtype, isOutput: true };
      const arrays = [
        { ...result, strides: made.strides, offset: 0 },
        { ...part, name: "gate", offset: 0 },
        { ...part, name: "value", offset },
      ];
      const { shape: extents } = made;
      const problem = { name: "gated", arrays, scalars: {}, extents, body, isFixed: true };
      return planStridedMap(problem, kernels, target);
    },
  }) as unknown as GatedOperation<X>;
}

function activationOf(given: unknown, location: Location): Activation {
  if (typeof given === "function")
    return (x, accuracy) => {
      const result: unknown = (given as Activation)(x, accuracy);
      if (isTile(result)) return result as Tile<"f32">;
      throw refused(
        "TW9905",
        "the activation of gated gives no tile",
        "a function from a tile to a tile",
        optionText(result),
        location,
      );
    };
  const found = Object.entries(activations).find(([name]) => name === given);
  if (found !== undefined) return found[1];
  throw refused(
    "TW9904",
    "gated has no such activation",
    `${Object.keys(activations).join(", ")}, or a function`,
    optionText(given),
    location,
  );
}

/** Half of the last axis. */
function halfOf(of: string, { shape }: TensorSpec, location: Location): Size {
  const last = shape.at(-1);
  const half = last === undefined ? undefined : divideSizeExactly(last, 2);
  if (half !== undefined) return half;
  throw refused(
    "TW9902",
    `the last axis of ${of} has no two halves`,
    "an even size: n.mul(2), or dim(…, { multipleOf: 2 })",
    shapeText(shape),
    location,
  );
}

/** What `rotary` is made for. */
export interface RotarySpec<X extends FloatName> {
  /** [..., positions, heads, d] or the like; pairs are element j and d/2 + j of the last axis. */
  readonly x: TensorSpec<X>;
  /** Of the angles, [positions, d/2]. */
  readonly cos: GivenArray<FloatName>;
  /** Of the angles, [positions, d/2]. */
  readonly sin: GivenArray<FloatName>;
  /** The axis of x along which positions lie; the third from the end by default. */
  readonly axis?: number;
}

/** The operation that `rotary` makes. */
export type RotaryOperation<S extends RotarySpec<FloatName>> = Operation<
  {
    readonly x: TensorSpec<FormatOf<S["x"]>>;
    readonly cos: TensorSpec<FormatOf<S["cos"]>>;
    readonly sin: TensorSpec<FormatOf<S["sin"]>>;
  },
  { readonly out: TensorSpec<FormatOf<S["x"]>> },
  Empty,
  MapConfiguration
>;

/** Rotates pairs of columns by the angles of their position. Its gradient is itself with −sin. */
export function rotary<const S extends RotarySpec<FloatName>>(spec: S): RotaryOperation<S> {
  const location = captureLocation();
  requireFields(
    "rotary",
    spec,
    { x: "array", cos: "array", sin: "array", axis: "number" },
    location,
  );
  const x = givenArray("x", "rotary", spec.x, [dim("s"), dim("h"), dim("d")], location);
  const half = halfOf("rotary", x, location);
  const axis = givenAxis("rotary", spec.axis ?? -3, x.shape.length, location);
  if (axis === x.shape.length - 1)
    throw refused(
      "TW9902",
      "positions of rotary lie along the axis that is turned",
      "an axis before the last",
      optionText(spec.axis),
      location,
    );
  const angles = [x.shape[axis] ?? 1, half];
  const cos = givenArray("cos", "rotary", spec.cos, angles, location);
  const sin = givenArray("sin", "rotary", spec.sin, angles, location);
  for (const [name, each] of Object.entries({ x, cos, sin }))
    requireFloat(name, "rotary", each, location);
  for (const [name, each] of Object.entries({ cos, sin }))
    requireShape(name, "rotary", each, angles, location);
  const out = tensor(x.dtype, x.shape);
  const compute = computeFormat(x.dtype);
  const kernels = new Map<string, KernelDefinition>();
  return operation({
    name: "rotary",
    inputs: { x, cos, sin },
    outputs: { out },
    plan: (dimensions, target) => {
      const given = laidOut(x, dimensions);
      const made = laidOut(out, dimensions);
      const width = (given.shape.at(-1) ?? 0) / 2;
      const extents = given.shape.with(-1, width);
      const halves = (name: string, isOutput: boolean, strides: readonly number[]) => {
        const part = { parameter: name, argument: name, dtype: x.dtype, isOutput, strides };
        return [
          { ...part, name: `${name}First`, offset: 0 },
          { ...part, name: `${name}Second`, offset: width * (strides.at(-1) ?? 1) },
        ];
      };
      const angle = (name: string, array: TensorSpec) => {
        const own = laidOut(array, dimensions).strides;
        const strides = extents.map((_, each) =>
          each === axis ? (own[0] ?? 0) : each === extents.length - 1 ? (own[1] ?? 0) : 0,
        );
        return {
          name,
          parameter: name,
          argument: name,
          dtype: array.dtype,
          isOutput: false,
          strides,
          offset: 0,
        };
      };
      const arrays = [
        ...halves("out", true, made.strides),
        ...halves("x", false, given.strides),
        angle("cos", cos),
        angle("sin", sin),
      ];
      const body = turned(x.dtype, compute);
      const problem = { name: "rotary", arrays, scalars: {}, extents, body, isFixed: true };
      return planStridedMap(problem, kernels, target);
    },
  }) as unknown as RotaryOperation<S>;
}

function turned(dtype: DType, compute: DType<"f32">) {
  return (tiles: { readonly [name: string]: unknown }) => {
    const of = (name: string): Tile<"f32"> => computed(tiles[name] as Tile, compute);
    const [first, second, cos, sin] = [of("xFirst"), of("xSecond"), of("cos"), of("sin")];
    return {
      outFirst: first.mul(cos).sub(second.mul(sin)).cast(dtype),
      outSecond: second.mul(cos).add(first.mul(sin)).cast(dtype),
    };
  };
}
