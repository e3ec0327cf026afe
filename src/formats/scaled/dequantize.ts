/**
 * What arrays with scales mean: their numbers in f64, exactly. Products of an element, a scale of 8 bits and an f32 have at most
 * 32 significant bits, and so do those of an element and an f32 scale.
 *
 *   mxfp4    element 0x7 (6) · scale 0x80 (2)                     = 12
 *   nvfp4    element 0x3 (1.5) · scale 0x40 (2) · global 0.25     = 0.75
 *
 * A scale that is NaN makes its whole block NaN.
 */
import { allocateElements, f64 } from "../dtype.ts";
import type { Elements } from "../dtype.ts";
import { convertInto } from "../convert.ts";
import { elementCount } from "../shape.ts";
import type { ScaleName, ScaledElementName, ScaledFormat } from "./formats.ts";
import { scaleIndices, scalePlaces } from "./layout.ts";
import type { ScaleLayout } from "./layout.ts";

/** Elements and scales as they lie in memory, one a slot. */
export interface ScaledElements<E extends ScaledElementName, S extends ScaleName> {
  readonly shape: readonly number[];
  readonly elements: Elements<E>;
  readonly scales: Elements<S>;
  /** The axis along which blocks share a scale, the last one by default. */
  readonly axis?: number | undefined;
  readonly layout?: ScaleLayout | undefined;
  readonly globalScale?: number | undefined;
}

/** The numbers of an array with scales. */
export function dequantizeElements<E extends ScaledElementName, S extends ScaleName>(
  format: ScaledFormat<ScaledFormat["name"], E, S>,
  given: ScaledElements<E, S>,
): Float64Array {
  const { shape, axis = shape.length - 1, layout = "plain", globalScale = 1 } = given;
  const numbers = allocateElements(f64, elementCount(shape));
  const scales = allocateElements(f64, given.scales.length);
  convertInto(format.element, f64, given.elements, numbers, 0);
  convertInto(format.scale, f64, given.scales, scales, 0);
  const indices = scaleIndices(format, shape, axis);
  const places = scalePlaces(format, shape, axis, layout);
  return numbers.map((number, index) => {
    const scale = scales[places[indices[index] ?? 0] ?? 0] ?? NaN;
    return number * scale * globalScale;
  });
}
