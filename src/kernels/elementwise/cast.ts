/** Elementwise operations that need no function of the user's: other formats, other strides, one value everywhere. */
import type { DTypeName, HostValue } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { dim, full } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { requireLiteral } from "../../lang/constants.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import {
  givenArray,
  isFormat,
  refused,
  requireFields,
  requireShape,
} from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";
import { mapping } from "./map.ts";
import type { MapConfiguration } from "./map-kernel.ts";

type FromX<X extends DTypeName, Out extends DTypeName> = Operation<
  { readonly x: TensorSpec<X> },
  { readonly out: TensorSpec<Out> },
  Empty,
  MapConfiguration
>;

/** What `cast` is made for. */
export interface CastSpec<X extends DTypeName, Out extends DTypeName> {
  /** What is converted. A format is an array of n elements. */
  readonly x: GivenArray<X>;
  /** A format, or an array that lies otherwise than by rows. */
  readonly out: GivenArray<Out>;
}

/** The same numbers in another format, by the rules of the language's `cast`. */
export function cast<X extends DTypeName, Out extends DTypeName>(
  spec: CastSpec<X, Out>,
): FromX<X, Out> {
  const location = captureLocation();
  requireFields("cast", spec, { x: "array", out: "array" }, location);
  return converted("cast", spec.x, spec.out, location) as unknown as FromX<X, Out>;
}

/** What `copy` is made for. */
export interface CopySpec<D extends DTypeName> {
  /** What is copied. A format is an array of n elements. */
  readonly x: GivenArray<D>;
  /** Where it lies otherwise than by rows. */
  readonly out?: TensorSpec<D>;
}

/** The same numbers, lying by rows by default otherwise. */
export function copy<D extends DTypeName>(spec: CopySpec<D>): FromX<D, D> {
  const location = captureLocation();
  requireFields("copy", spec, { x: "array", out: "array" }, location);
  const x = givenArray("x", "copy", spec.x, [dim("n")], location);
  const { dtype } = givenArray("out", "copy", spec.out ?? x, x.shape, location);
  if (dtype !== x.dtype)
    throw refused(
      "TW9901",
      "copy does not convert",
      `out of ${x.dtype.name}; cast({ x, out }) converts`,
      dtype.name,
      location,
    );
  return converted("copy", x, spec.out ?? x.dtype, location) as unknown as FromX<D, D>;
}

function converted(name: string, x: GivenArray, out: GivenArray, location: Location): Operation {
  const source = givenArray("x", name, x, [dim("n")], location);
  const target = givenArray("out", name, out, source.shape, location);
  requireShape("out", name, target, source.shape, location);
  return mapping(
    { x: source },
    ({ x: tile }) => ({ out: asTile(tile).cast(target.dtype) }),
    { name, outputs: isFormat(out) ? {} : { out: target } },
    location,
  );
}

function asTile(value: unknown): Tile {
  return value as Tile;
}

/** What `fill` is made for. */
export interface FillSpec<D extends DTypeName> {
  /** A format is an array of n elements. */
  readonly out: GivenArray<D>;
  /** What every element becomes. */
  readonly value: number | HostValue<D>;
}

/** The operation that `fill` makes. */
export type FillOperation<D extends DTypeName> = Operation<
  Empty,
  { readonly out: TensorSpec<D> },
  Empty,
  MapConfiguration
>;

/** Fills an array with one value. Sizes that follow from no array are given with the launch: `{ dimensions: { n } }`. */
export function fill<D extends DTypeName>(spec: FillSpec<D>): FillOperation<D> {
  const location = captureLocation();
  requireFields("fill", spec, { out: "array", value: "element" }, location);
  const out = givenArray("out", "fill", spec.out, [dim("n")], location);
  requireLiteral(out.dtype, spec.value, location);
  const value = (): Tile => full(out.dtype, [1, 1], spec.value);
  return mapping(
    {},
    () => ({ out: value() }),
    { name: "fill", outputs: { out } },
    location,
  ) as unknown as FillOperation<D>;
}
