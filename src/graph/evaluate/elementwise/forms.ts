/**
 * The form that an elementwise function is given in: one function of scalars for each domain in which it
 * is defined. Integer functions are made for a width, others are the same for all elements of a domain.
 *
 *   "stablehlo.add": { bool: or, integer: () => (a, b) => a + b, wide: () => (a, b) => a + b, real: …, complex: … }
 *
 * Results need be neither rounded nor wrapped: whoever stores them does that (`scalars.ts`).
 */
import { elements } from "../../ops/index.ts";
import type { ElementType } from "../../ops/index.ts";
import { domainOf } from "../scalars.ts";
import type { Complex, Scalar } from "../scalars.ts";

/** A function of the elements at one place. */
export type ScalarFunction = (...operands: Scalar[]) => Scalar;

/** What integer functions may depend on. */
export interface IntegerWidth {
  readonly bits: number;
  readonly signed: boolean;
}

type Arguments<T, N extends 1 | 2> = N extends 1 ? [T] : [T, T];
type Result = number | bigint | Complex;

export interface Forms<N extends 1 | 2> {
  readonly bool?: (...operands: Arguments<number, N>) => Result;
  readonly integer?: (width: IntegerWidth) => (...operands: Arguments<number, N>) => Result;
  readonly wide?: (width: IntegerWidth) => (...operands: Arguments<bigint, N>) => Result;
  readonly real?: (...operands: Arguments<number, N>) => Result;
  readonly complex?: (...operands: Arguments<Complex, N>) => Result;
}

/** The function for operands of an element type; undefined where the forms have none. */
export function chooseForm(
  forms: Forms<1> | Forms<2>,
  element: ElementType,
): ScalarFunction | undefined {
  const domain = domainOf(element);
  const form = forms[domain];
  if (form === undefined) return undefined;
  if (domain !== "integer" && domain !== "wide") return form as ScalarFunction;
  const { bits, kind } = elements[element];
  const make = form as (width: IntegerWidth) => unknown;
  return make({ bits, signed: kind === "signed" }) as ScalarFunction;
}
