/** Elementwise functions of two operands. */
import { power } from "../../../formats/arithmetic/special.ts";
import type { Complex } from "../scalars.ts";
import * as complex from "./complex.ts";
import type { Forms } from "./forms.ts";
import * as integers from "./integers.ts";
import * as special from "./special.ts";

const or = (a: number, b: number): number => a | b;
const and = (a: number, b: number): number => a & b;
const xor = (a: number, b: number): number => a ^ b;

/** Complex numbers are ordered by their real part, then by the other. */
function isLess(a: Complex, b: Complex): boolean {
  return a.re < b.re || (a.re === b.re && a.im < b.im);
}

export const binaryForms = {
  "stablehlo.add": {
    bool: or,
    integer: () => (a, b) => a + b,
    wide: () => (a, b) => a + b,
    real: (a, b) => a + b,
    complex: complex.add,
  },
  "stablehlo.and": { bool: and, integer: () => and, wide: () => (a, b) => a & b },
  "stablehlo.atan2": { real: Math.atan2, complex: complex.arcTangent2 },
  "stablehlo.complex": { real: complex.complex },
  "stablehlo.divide": {
    integer: () => integers.divideIntegers,
    wide: () => integers.divideWide,
    real: (a, b) => a / b,
    complex: complex.divide,
  },
  "stablehlo.maximum": {
    bool: or,
    integer: () => (a, b) => (a > b ? a : b),
    wide: () => (a, b) => (a > b ? a : b),
    // JavaScript's own: NaN wins, and +0 is above -0.
    real: (a, b) => Math.max(a, b),
    complex: (a, b) => (isLess(a, b) ? b : a),
  },
  "stablehlo.minimum": {
    bool: and,
    integer: () => (a, b) => (a < b ? a : b),
    wide: () => (a, b) => (a < b ? a : b),
    real: (a, b) => Math.min(a, b),
    complex: (a, b) => (isLess(b, a) ? b : a),
  },
  "stablehlo.multiply": {
    bool: and,
    integer: () => Math.imul,
    wide: () => (a, b) => a * b,
    real: (a, b) => a * b,
    complex: complex.multiply,
  },
  "stablehlo.or": { bool: or, integer: () => or, wide: () => (a, b) => a | b },
  "stablehlo.power": {
    integer: () => integers.powerOfInteger,
    wide: () => integers.powerOfWide,
    real: power,
    complex: complex.power,
  },
  "stablehlo.remainder": {
    integer: () => integers.remainderOfIntegers,
    wide: () => integers.remainderOfWide,
    real: (a, b) => a % b,
  },
  "stablehlo.shift_left": { integer: integers.shiftLeft, wide: () => integers.shiftLeftWide },
  "stablehlo.shift_right_arithmetic": {
    integer: integers.shiftRightArithmetic,
    wide: () => integers.shiftRightArithmeticWide,
  },
  "stablehlo.shift_right_logical": {
    integer: integers.shiftRightLogical,
    wide: () => integers.shiftRightLogicalWide,
  },
  "stablehlo.subtract": {
    integer: () => (a, b) => a - b,
    wide: () => (a, b) => a - b,
    real: (a, b) => a - b,
    complex: complex.subtract,
  },
  "stablehlo.xor": { bool: xor, integer: () => xor, wide: () => (a, b) => a ^ b },
  "chlo.polygamma": { real: special.polygamma },
  "chlo.zeta": { real: special.zeta },
  "chlo.mulhi": { integer: integers.highProduct, wide: () => integers.highProductWide },
} satisfies { readonly [kind: string]: Forms<2> };
