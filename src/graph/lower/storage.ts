/**
 * In which format of kernels the elements of a graph lie and are computed on devices.
 *
 * | element                    | memory | computed as                                               |
 * |----------------------------|--------|-----------------------------------------------------------|
 * | i1                         | bool   | bool                                                      |
 * | i2, i4 / ui2, ui4          | i8, u8 | i8, u8, wrapped to their width after every op             |
 * | i8 … i64, ui8 … ui64, index | itself | itself                                                   |
 * | f64, f32, f16, bf16        | itself | itself                                                    |
 * | f8E4M3FN, f8E5M2, f8E8M0FNU | itself | f32, rounded by StableHLO's rule after every op          |
 * | f6E2M3FN, f6E3M2FN         | itself | likewise; a byte each                                     |
 * | f4E2M1FN                   | itself | likewise; two a byte                                     |
 * | complex<f32>, complex<f64> | its parts | two values of real numbers (`complex/`)                |
 *
 * All others are refused where a program would run.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { elements, isComplexElement, partOf } from "../ops/elements.ts";
import type { ElementType } from "../ops/elements.ts";
import type { AnyGraphOp, GraphValue } from "../ops/node.ts";
import { textNameOf } from "../ops/traverse.ts";
import { isOpaque, isTensor, sizeOf, typeText } from "../ops/types.ts";
import type { GraphType, TensorType } from "../ops/types.ts";

const narrow: { readonly [E in ElementType]?: DType } = {
  i2: dtypes.i8,
  i4: dtypes.i8,
  ui2: dtypes.u8,
  ui4: dtypes.u8,
};

/** What indices of 32 bits count, and what no memory holds. */
const [longestAxis, mostElements] = [2 ** 31 - 1, 2 ** 38];

/** The format that an element lies in; undefined where devices have none. */
export function storageOf(element: ElementType): DType | undefined {
  return narrow[element] ?? elements[element].dtype;
}

/** The bits of an element that is kept in a wider format; undefined for all others. */
export function narrowBits(element: ElementType): number | undefined {
  return narrow[element] === undefined ? undefined : elements[element].bits;
}

/** Whether elements are kept in a format without arithmetic. */
export function isStorageOnly(element: ElementType): boolean {
  return elements[element].kind === "float" && elements[element].bits <= 8;
}

/** Whether an element's codes are no byte with a sign, an exponent and a mantissa: what works on codes refuses them. */
export function hasOtherCodes(element: ElementType): boolean {
  return isStorageOnly(element) && element !== "f8E4M3FN" && element !== "f8E5M2";
}

/** What a device cannot run, with the reason. */
export function cannotRun(op: AnyGraphOp, reason: string): TilewrightError {
  return new TilewrightError({
    code: "TW9601",
    message: `${textNameOf(op)} cannot run on a device: ${reason}`,
    location: op.location,
    expected: "an op that devices run, see docs/stablehlo-operations.md",
    found: op.name === "" ? textNameOf(op) : op.name,
  });
}

function noElements(type: string, location: Location | undefined): TilewrightError {
  const isDynamic = type.includes("?");
  return new TilewrightError({
    code: "TW9602",
    message: `devices have no values of type ${type}`,
    location,
    expected: isDynamic
      ? "a shape that is known before the program runs"
      : "i1, integers, f64, f32, f16, bf16, complex numbers, or floats of 8, 6 or 4 bits that kernels have",
    found: type,
    ...(isDynamic && { remedy: "lower the program for arguments of known shapes" }),
  });
}

/** Refuses a type whose shape or elements are not known, or that no index counts. */
export function requireKnownType(type: GraphType, location: Location): void {
  if (isOpaque(type)) throw noElements(typeText(type), location);
  if (
    isTensor(type) &&
    (Math.max(...type.shape) > longestAxis || sizeOf(type.shape) > mostElements)
  )
    throw new TilewrightError({
      code: "TW9602",
      message: `devices have no values of type ${typeText(type)}`,
      location,
      expected: `axes of at most ${longestAxis} elements, and ${mostElements} in all`,
      found: typeText(type),
      remedy: "compute it in parts",
    });
}

/** Refuses an op that gives what a device cannot hold. */
export function requireStorage({ results, location }: AnyGraphOp): void {
  for (const value of results)
    if (isTensor(value.type) || value.type.kind === "opaque") tensorTypeOf(value, location);
}

/** The format of arrays for arguments and results, and how many of its elements one of theirs is. */
export function heldElements(
  element: ElementType,
): { readonly dtype: DType; readonly each: number } | undefined {
  const isComplex = isComplexElement(element);
  const dtype = storageOf(isComplex ? partOf(element) : element);
  return dtype === undefined ? undefined : { dtype, each: isComplex ? 2 : 1 };
}

/** The type of an argument or a result that a device can hold. */
export function heldType(type: GraphType, location?: Location): TensorType {
  if (isTensor(type) && heldElements(type.element) !== undefined) return type;
  throw noElements(typeText(type), location);
}

/** The type of a value that a device can hold. */
export function tensorTypeOf({ type }: GraphValue, location?: Location): TensorType {
  if (!isTensor(type) || storageOf(type.element) === undefined)
    throw noElements(typeText(type), location);
  return type;
}

/** The format of a value that a device can hold. */
export function dtypeOf(value: GraphValue, location?: Location): DType {
  const { element } = tensorTypeOf(value, location);
  const dtype = storageOf(element);
  if (dtype === undefined) throw noElements(element, location);
  return dtype;
}
