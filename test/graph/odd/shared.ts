/** What several families of ops are drawn with: element types, regions, and operands whose sums are exact. */
import { typeOf } from "./builder.ts";
import type { Builder, Value } from "./builder.ts";
import { binaryOf, floatNames, integerNames, isFloat, settled } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";

/** Adds an op to a program, or nothing where what was drawn does not fit. */
export type Draw = (b: Builder) => void;

export const everyElement = ["i1", ...integerNames, ...floatNames];
export const numbers = [...integerNames, ...floatNames];

/** A region of one op of two scalars; and of what it does. */
export function combiner(
  b: Builder,
  element: string,
  kinds?: readonly string[],
): { readonly text: string; readonly kind: string; readonly f: (x: Scalar, y: Scalar) => Scalar } {
  const table = binaryOf(element);
  const kind = b.pick(kinds?.filter((each) => each in table) ?? Object.keys(table));
  const f = table[kind];
  if (f === undefined) throw new Error(kind);
  const type = typeOf(element, []);
  return {
    kind,
    text: `{ ^bb0(%a: ${type}, %b: ${type}): %c = stablehlo.${kind} %a, %b : ${type} stablehlo.return %c : ${type} }`,
    f: (x, y) => f(x, y, element),
  };
}

/** Small whole numbers, whose sums are exact in every format. */
export function smallNumbers(b: Builder, element: string, shape: readonly number[]): Value {
  return b.parameter(element, shape, () => {
    if (element === "i1") return BigInt(b.below(2));
    return isFloat(element) ? b.between(-2, 2) : settled(element, BigInt(b.between(-2, 2)));
  });
}

/** An operand of sums: any whole numbers, or floats whose sums are exact. */
export function summable(b: Builder, element: string, shape: readonly number[]): Value {
  return isFloat(element) ? smallNumbers(b, element, shape) : b.value(element, shape);
}

export const sumElements = [
  ...integerNames,
  ...floatNames.filter((each) => !each.startsWith("f8")),
];
