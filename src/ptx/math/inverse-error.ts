/**
 * The inverse of the error function, by the rational functions of Wichura (AS 241, "The percentage points of the normal distribution"),
 * scaled to it. With m = |y|:
 *
 *   m ≤ 0.85    y·P(r) / Q(r)     r = 0.180625 - y²/4
 *   beyond      P(r - c) / Q(r - c)   r = √-log((1 - m) / 2), c is 1.6, or 5 where r is above 5: in f64 alone
 *
 * (1 - m) / 2 is exact.
 */
import type { Code } from "../function-builder.ts";
import type { Register } from "../module.ts";
import { Arithmetic } from "./arithmetic.ts";
import type { Width } from "./arithmetic.ts";
import { log } from "./logarithm.ts";

interface Ratio {
  readonly above: readonly number[];
  readonly below: readonly number[];
}

const central: Ratio = {
  above: [
    1.1975323115670913, 47.07268811238398, 697.062665343896, 4854.886889384388, 16235.862515167575,
    23782.041382114385, 11819.493347062295, 887.0940696254552,
  ],
  below: [
    1, 42.31333070160091, 687.1870074920579, 5394.196021424751, 21213.794301586597,
    39307.89580009271, 28729.085735721943, 5226.495278852854,
  ],
};
const outer: Ratio = {
  above: [
    1.006522033603688, 3.274143290202006, 4.079650609331799, 2.579418287180049, 0.8983496455234804,
    0.17096479033317635, 0.016068184886544188, 0.0005476860319304465,
  ],
  below: [
    1, 2.053191626637759, 1.6763848301838038, 0.6897673349851, 0.14810397642748008,
    0.015198666563616457, 0.0005475938084995345, 1.0507500716444169e-9,
  ],
};
const outermost: Ratio = {
  above: [
    4.707849521913034, 3.8634793616288836, 1.2620629496172389, 0.209699991372496,
    0.01876109113396867, 0.0008786939826138098, 1.9173593302226658e-5, 1.4215210861921614e-7,
  ],
  below: [
    1, 0.599832206555888, 0.1369298809227358, 0.014875361290850615, 0.0007868691311456133,
    1.8463183175100548e-5, 1.421511758316446e-7, 2.0442631033899397e-15,
  ],
};

const isCentral = 0.85;
const isOutermost = 5;

export function erfInv(code: Code, width: Width, y: Register): Register {
  const f = new Arithmetic(code, width);
  const size = f.abs(y);
  const inside = f.compare("le", size, isCentral);
  const half = f.mul(y, 0.5);
  const centralArgument = f.fma(f.neg(half), half, 0.180625);
  const distance = f.make("sqrt.rn", f.neg(log(code, width, f.fma(size, -0.5, 0.5))));
  const far = width === 64 ? f.compare("gt", distance, isOutermost) : undefined;
  const offset = far === undefined ? 1.6 : f.select(far, isOutermost, 1.6);
  const argument = f.select(inside, centralArgument, f.sub(distance, offset));
  const sum = (part: keyof Ratio): Register => {
    const coefficients = central[part].map((own, n) => {
      const [next = 0, last = 0] = [outer[part][n], outermost[part][n]];
      const beyond = far === undefined ? next : f.select(far, last, next);
      return own === beyond ? own : f.select(inside, own, beyond);
    });
    return f.polynomial(argument, coefficients);
  };
  const ratio = f.div(sum("above"), sum("below"));
  const value = f.select(inside, f.mul(ratio, size), ratio);
  return f.copySign(f.select(f.compare("eq", size, 1), Infinity, value), y);
}
