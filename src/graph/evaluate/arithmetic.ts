/**
 * The arithmetics that programs are evaluated in by those who run them: rounded to the formats that programs say, or with all floats as
 * f64, which is the reference. `modular.ts` is a third one, for those who check what passes do.
 */
import { isComplexElement, isFloatElement } from "../ops/index.ts";
import type { ElementType } from "../ops/index.ts";
import { conversion } from "./elementwise/convert.ts";
import { scalarFunction } from "./elementwise/index.ts";
import type { Arithmetic } from "./frame.ts";
import { mapTensors } from "./map.ts";
import { emptyTensor } from "./value.ts";
import type { Tensor } from "./value.ts";

/** Elements in another type, such as that which a region computes in. */
export function promoted(source: Tensor, element: ElementType): Tensor {
  if (source.element === element) return source;
  const result = emptyTensor({ element, shape: source.shape });
  return mapTensors(result, conversion(source.element, element), [source]);
}

function arithmeticOf(stored: (element: ElementType) => ElementType): Arithmetic {
  return {
    stored,
    kept: (own) => promoted(own, stored(own.element)),
    scalarFunction,
    results: () => undefined,
    isModular: false,
  };
}

export const roundedArithmetic = arithmeticOf((element) => element);

export const widenedArithmetic = arithmeticOf((element) => {
  if (isFloatElement(element)) return "f64";
  return isComplexElement(element) ? "complex<f64>" : element;
});
