/**
 * The inverse of the error function. Of f32, with l = log2(1 - y²) by the GPU's logarithm, whose error counts for less the greater |l| is:
 *
 *   l > -8      y·P(l + 4)
 *   beyond      y·Q(√-l - 3.75)       of one number in 250, behind a branch
 *
 * Of f64 by the rational functions of Wichura (AS 241, "The percentage points of the normal distribution"),
 * scaled to it. With m = |y|:
 *
 *   m ≤ 0.85    y·P(r) / Q(r)     r = 0.180625 - y²/4
 *   beyond      P(r - c) / Q(r - c)   r = √-log((1 - m) / 2), c is 1.6, or 5 where r is above 5: in f64 alone
 *
 * (1 - m) / 2 is exact.
 */
import type { Register } from "../module.ts";
import type { Arithmetic } from "./arithmetic.ts";
import type { FloatArithmetic } from "./float-arithmetic.ts";
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

/** erf_inv y / y by l + 4 for l from -8 to 0, 2^-24.4, and by √-l - 3.75 beyond, 2^-24.5. */
const nearCurve = [
  1.5683062076568604, -0.16919803619384766, -0.002453250577673316, 0.0003396116371732205,
  4.809444726561196e-5, 1.5667535535612842e-6, -2.9028618087068025e-7, -3.615101462628445e-8,
  4.3501524604749875e-10, 2.5189797470126507e-10,
];
const farCurve = [
  2.9553892612457275, 0.8356162309646606, 0.004916368052363396, -0.003079264424741268,
  0.0018446460599079728, -0.001047066762112081, 0.00041974912164732814, -4.02195546485018e-5,
  -2.936513556051068e-5,
];

/** Of f32, by the GPU's logarithm and root. */
export function erfInvOfSingle(f: Arithmetic, y: Register): Register {
  const { code } = f;
  const l = f.make("lg2.approx.ftz", f.madd(f.neg(y), y, 1));
  const factor = code.register("b32");
  code.emit("mov.b32", [factor, f.polynomial(f.add(l, 4), nearCurve)]);
  const done = code.label("near");
  // A NaN goes either way.
  code.jumpIf(f.compare("lt", l, -8), done, { negated: true, uniform: false });
  const root = f.make("sqrt.approx.ftz", f.neg(l));
  const far = f.polynomial(f.sub(root, 3.75), farCurve);
  const isOne = f.compare("eq", f.abs(y), 1);
  code.emit("mov.b32", [factor, f.select(isOne, Infinity, far)]);
  code.place(done);
  return f.mul(factor, y);
}

export function erfInv<T extends object>(f: FloatArithmetic<T>, y: T): T {
  const size = f.abs(y);
  const inside = f.compare("le", size, isCentral);
  const half = f.mul(y, 0.5);
  const centralArgument = f.madd(f.neg(half), half, 0.180625);
  const distance = f.sqrt(f.neg(log(f, f.madd(size, -0.5, 0.5))));
  const far = f.precision === 64 ? f.compare("gt", distance, isOutermost) : undefined;
  const offset = far === undefined ? 1.6 : f.select(far, isOutermost, 1.6);
  const argument = f.select(inside, centralArgument, f.sub(distance, offset));
  const sum = (part: keyof Ratio): T => {
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
