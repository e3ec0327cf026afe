/**
 * Every op that computes each element of its result from the elements at the same place, as a function
 * of scalars. The same functions serve whole tensors and, compiled into one function, the regions of
 * reductions, scatters and sorts (`region.ts`).
 *
 *   "stablehlo.add": { bool: or, integer: () => (a, b) => a + b, real: (a, b) => a + b, … }
 */
import type { ElementType, GraphOp, GraphOpKind, GraphValue } from "../../ops/index.ts";
import { floatOrders, isFloatElement, isTensor } from "../../ops/index.ts";
import { domainOf } from "../scalars.ts";
import type { Domain } from "../scalars.ts";
import { binaryForms } from "./binary.ts";
import { comparison } from "./compare.ts";
import { conversion, nextAfter, reducePrecision } from "./convert.ts";
import { chooseForm } from "./forms.ts";
import type { Forms, ScalarFunction } from "./forms.ts";
import { unaryForms } from "./unary.ts";

/** The elements that a function is made for: as they are stored, which the widened evaluator changes. */
export interface ScalarTypes {
  readonly operands: readonly ElementType[];
  readonly result: ElementType;
}

type ScalarRule<K extends GraphOpKind> = (
  op: GraphOp<K>,
  types: ScalarTypes,
) => ScalarFunction | undefined;

type FormKind = keyof typeof unaryForms | keyof typeof binaryForms;
type OtherKind =
  | "stablehlo.compare"
  | "stablehlo.select"
  | "stablehlo.clamp"
  | "stablehlo.convert"
  | "stablehlo.reduce_precision"
  | "chlo.next_after";

/** The kinds that have a scalar rule. */
export type ScalarKind = FormKind | OtherKind;

const otherRules: { readonly [K in OtherKind]: ScalarRule<K> } = {
  "stablehlo.compare": ({ attributes }, { operands: [element = "i1"] }) =>
    comparison(
      attributes.comparison_direction,
      floatOrders[attributes.compare_type ?? "NOTYPE"],
      element,
    ),
  "stablehlo.select": () => (condition, onTrue, onFalse) => (condition === 0 ? onFalse : onTrue),
  "stablehlo.clamp": (_, { result }) => {
    const larger = chooseForm(binaryForms["stablehlo.maximum"], result);
    const smaller = chooseForm(binaryForms["stablehlo.minimum"], result);
    if (larger === undefined || smaller === undefined) return undefined;
    return (least, value, greatest) => smaller(larger(least, value), greatest);
  },
  "stablehlo.convert": (_, { operands: [from = "i1"], result }) => conversion(from, result),
  "stablehlo.reduce_precision": ({ attributes, operands }, { result }) => {
    const declared = declaredElement(operands.operand);
    if (domainOf(result) !== "real" || !isFloatElement(declared)) return undefined;
    const { exponent_bits: exponentBits, mantissa_bits: mantissaBits } = attributes;
    return reducePrecision(declared, exponentBits, mantissaBits) as ScalarFunction;
  },
  "chlo.next_after": ({ operands }) => {
    const declared = declaredElement(operands.x);
    return isFloatElement(declared) ? (nextAfter(declared) as ScalarFunction) : undefined;
  },
};

/** The element type that the program gives a value, however it is stored. */
export function declaredElement({ type }: GraphValue): ElementType {
  if (!isTensor(type)) throw new Error("no tensor");
  return type.element;
}

const formTable: { readonly [kind: string]: Forms<1> | Forms<2> } = {
  ...unaryForms,
  ...binaryForms,
};
const ruleTable = otherRules as {
  readonly [kind: string]: (op: never, types: ScalarTypes) => ScalarFunction | undefined;
};

export function isScalarKind(kind: GraphOpKind): kind is ScalarKind {
  return Object.hasOwn(formTable, kind) || Object.hasOwn(ruleTable, kind);
}

const domainTitles: { readonly [D in Domain]: string } = {
  bool: "i1",
  integer: "integers",
  wide: "",
  real: "floats",
  complex: "complex numbers",
};

/** The elements for which a function is defined, in words; undefined where its kind does not say. */
export function scalarKindDomains(kind: GraphOpKind): readonly string[] | undefined {
  const forms = Object.hasOwn(formTable, kind) ? formTable[kind] : undefined;
  if (forms === undefined) return undefined;
  const titles = Object.entries(domainTitles) as readonly (readonly [Domain, string])[];
  return titles
    .filter(([domain, title]) => title !== "" && forms[domain] !== undefined)
    .map(([, title]) => title);
}

/** The function of an op; undefined where it is not defined for its elements. */
export function scalarFunction(
  op: GraphOp<ScalarKind>,
  types: ScalarTypes,
): ScalarFunction | undefined {
  const forms = Object.hasOwn(formTable, op.kind) ? formTable[op.kind] : undefined;
  if (forms !== undefined) return chooseForm(forms, types.operands[0] ?? "i1");
  return ruleTable[op.kind]?.(op as never, types);
}
