/**
 * bitcast_convert: the same bits as another element type. Elements that become narrower get one more, last
 * axis, low bits first; elements that become wider lose theirs.
 *
 *   tensor<2xf32>  -> tensor<2x4xui8>       tensor<2x4xui8> -> tensor<2xf32>
 */
import type { ElementType } from "../ops/index.ts";
import { elements } from "../ops/index.ts";
import { countOf, emptyTensor, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { mapTensors } from "./map.ts";
import { elementsOfNumbers, numbersOf } from "./scalars.ts";
import { conversion } from "./elementwise/convert.ts";

/** All bits in order, the lowest first; what a byte holds beyond a narrow element is left out. */
function bitsOf(operand: Tensor): Uint8Array {
  const { bits } = elements[operand.element];
  const bytes = new Uint8Array(
    operand.data.buffer,
    operand.data.byteOffset,
    operand.data.byteLength,
  );
  const stride = bits < 8 ? 8 : bits;
  return Uint8Array.from({ length: countOf(operand) * bits }, (_, at) => {
    const place = Math.floor(at / bits) * stride + (at % bits);
    return ((bytes[place >> 3] as number) >> (place & 7)) & 1;
  });
}

function fromBits(all: Uint8Array, element: ElementType, shape: readonly number[]): Tensor {
  const { bits, kind } = elements[element];
  const result = emptyTensor({ element, shape });
  const bytes = new Uint8Array(result.data.buffer);
  const stride = bits < 8 ? 8 : bits;
  for (let at = 0; at < all.length; at++) {
    const place = Math.floor(at / bits) * stride + (at % bits);
    bytes[place >> 3] = (bytes[place >> 3] as number) | ((all[at] as number) << (place & 7));
  }
  // A narrow number with a sign fills its byte with it.
  if (kind === "signed" && bits < 8)
    for (let i = 0; i < bytes.length; i++)
      bytes[i] = ((bytes[i] as number) << (32 - bits)) >> (32 - bits);
  return result;
}

/** The bits of `operand`, declared as `from`, as elements declared as `to`; both may be kept wider. */
export function bitcast(
  operand: Tensor,
  from: ElementType,
  to: {
    readonly element: ElementType;
    readonly shape: readonly number[];
    readonly stored: ElementType;
  },
): Tensor {
  const declared = asDeclared(operand, from);
  const sameElements =
    elements[from].bits === elements[to.element].bits && elements[from].bits >= 8;
  const result = sameElements
    ? reinterpreted(declared, to)
    : fromBits(bitsOf(declared), to.element, to.shape);
  return asDeclared(result, to.stored);
}

/** The same bytes under elements of another class. */
function reinterpreted(
  operand: Tensor,
  to: { readonly element: ElementType; readonly shape: readonly number[] },
): Tensor {
  const result = emptyTensor(to);
  const { data } = operand;
  new Uint8Array(result.data.buffer).set(
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
  );
  return result;
}

/** A tensor in the element type that it is declared to have, or is kept in. */
function asDeclared(operand: Tensor, element: ElementType): Tensor {
  if (operand.element === element) return operand;
  if (elements[element].kind === "float")
    return tensor(element, operand.shape, elementsOfNumbers(element, numbersOf(operand).slice()));
  const target = emptyTensor({ element, shape: operand.shape });
  return mapTensors(target, conversion(operand.element, element), [operand]);
}
