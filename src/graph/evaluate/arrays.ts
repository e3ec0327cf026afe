/**
 * Inputs and outputs of a program as named arrays, such as an npz file holds: `in0`, `in1` … for the
 * parameters, `out0`, `out1` … for the results.
 *
 *   in0                 the array itself
 *   in0.bfloat16        numbers of an array of that type, which NumPy does not have
 *
 * A complex tensor is an array of its parts, with one more axis of two.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import type { ElementType, GraphType } from "../ops/index.ts";
import { elements, isComplexElement, isTensor, typeText } from "../ops/index.ts";
import { tensor, tensorOfArray } from "./value.ts";
import type { Tensor } from "./value.ts";
import { elementsOfNumbers, numbersOf } from "./scalars.ts";

/** Element types by the names of Python's ml_dtypes. */
const namedElements: { readonly [name: string]: ElementType } = {
  bfloat16: "bf16",
  float16: "f16",
  float8_e3m4: "f8E3M4",
  float8_e4m3: "f8E4M3",
  float8_e4m3fn: "f8E4M3FN",
  float8_e4m3fnuz: "f8E4M3FNUZ",
  float8_e4m3b11fnuz: "f8E4M3B11FNUZ",
  float8_e5m2: "f8E5M2",
  float8_e5m2fnuz: "f8E5M2FNUZ",
  float8_e8m0fnu: "f8E8M0FNU",
  float6_e2m3fn: "f6E2M3FN",
  float6_e3m2fn: "f6E3M2FN",
  float4_e2m1fn: "f4E2M1FN",
  int2: "i2",
  int4: "i4",
  uint2: "ui2",
  uint4: "ui4",
};

/** The tensors that `prefix` numbers, one for each of the types. */
export function namedTensors(
  arrays: { readonly [name: string]: HostArray },
  prefix: "in" | "out",
  types: readonly GraphType[],
): readonly Tensor[] {
  return types.map((type, index) => {
    const key = `${prefix}${index}`;
    const [name, ...others] = Object.keys(arrays).filter(
      (each) => each === key || each.startsWith(`${key}.`),
    );
    if (others.length > 0) throw several(key, [name ?? "", ...others]);
    const array = name === undefined ? undefined : arrays[name];
    if (name === undefined || array === undefined) throw missing(key, type, Object.keys(arrays));
    const element = name === key ? undefined : namedElement(name.slice(key.length + 1));
    return tensorOf(array, element, isTensor(type) && isComplexElement(type.element));
  });
}

function namedElement(name: string): ElementType {
  const element = Object.hasOwn(namedElements, name) ? namedElements[name] : undefined;
  if (element !== undefined) return element;
  throw new TilewrightError({
    code: "TW9505",
    message: `an array's key names the element type ${name}, which programs do not have`,
    expected: Object.keys(namedElements).join(", "),
    found: name,
  });
}

function tensorOf(array: HostArray, element: ElementType | undefined, complex: boolean): Tensor {
  const given = tensorOfArray(array, complex);
  if (element === undefined) return given;
  const { kind, bits } = elements[element];
  const numbers = numbersOf(given).slice();
  const least = kind === "signed" ? -(2 ** (bits - 1)) : 0;
  const wrong =
    kind === "float"
      ? undefined
      : numbers.find(
          (each) => !Number.isInteger(each) || each < least || each >= least + 2 ** bits,
        );
  if (wrong !== undefined)
    throw new TilewrightError({
      code: "TW9505",
      message: `an array whose key names ${element} has a number that is none of it`,
      expected: `whole numbers from ${least}, below ${least + 2 ** bits}`,
      found: `${wrong}`,
    });
  return tensor(element, given.shape, elementsOfNumbers(element, numbers));
}

function several(key: string, names: readonly string[]): TilewrightError {
  return new TilewrightError({
    code: "TW9505",
    message: `there are ${names.length} arrays ${key}`,
    expected: `one array, ${key} or ${key} with the name of its element type`,
    found: names.join(", "),
    remedy: "leave out all but one of them",
  });
}

function missing(key: string, type: GraphType, names: readonly string[]): TilewrightError {
  return new TilewrightError({
    code: "TW9505",
    message: `there is no array ${key} for a value of type ${typeText(type)}`,
    expected: key,
    found: names.length === 0 ? "no arrays" : names.join(", "),
    remedy:
      "name arrays in0, in1 … in the order of the parameters, out0, out1 … in that of the results",
  });
}
