/**
 * Functions of complex numbers as formulas over their parts, for whatever stands for a real number: numbers of the evaluator, values of programs for
 * devices. Branch cuts are those of C's annex G: along the real axis for logarithm, roots, acos, asin, acosh and atanh, along the imaginary
 * one for asinh and atan, continuous from the side that the sign of zero names.
 */

/** Where something holds of a number. */
export interface Choice<R> {
  and(other: Choice<R>): Choice<R>;
  or(other: Choice<R>): Choice<R>;
  not(): Choice<R>;
  /** One value where it holds, another where not; one of them is no plain number. */
  pick(yes: R | number, no: R | number): R;
}

/** What formulas ask of a real number. */
export interface RealNumber<R> {
  add(other: R | number): R;
  sub(other: R | number): R;
  mul(other: R | number): R;
  div(other: R | number): R;
  pow(other: R | number): R;
  max(other: R | number): R;
  min(other: R | number): R;
  /** The angle of the point whose height this is. */
  atan2(other: R | number): R;
  /** √(x² + y²), where squares neither overflow nor vanish. */
  hypot(other: R): R;
  /** A number of about this size, to divide by. */
  nearby(): R;
  abs(): R;
  asinh(): R;
  cbrt(): R;
  cos(): R;
  cosh(): R;
  exp(): R;
  expm1(): R;
  log(): R;
  log1p(): R;
  neg(): R;
  sign(): R;
  sin(): R;
  sinh(): R;
  sqrt(): R;
  tan(): R;
  isFinite(): Choice<R>;
  is(direction: "EQ" | "NE" | "GE" | "GT" | "LE" | "LT", other: R | number): Choice<R>;
  /** The magnitude of this with the sign of another, that of a zero too. */
  withSignOf(other: R): R;
  /** A constant in its place. */
  fill(number: number): R;
}

export interface ComplexNumber<R> {
  readonly re: R;
  readonly im: R;
}

function pair<R extends RealNumber<R>>(re: R, im: R): ComplexNumber<R> {
  return { re, im };
}

export function add<R extends RealNumber<R>>(
  a: ComplexNumber<R>,
  b: ComplexNumber<R>,
): ComplexNumber<R> {
  return pair(a.re.add(b.re), a.im.add(b.im));
}

export function multiply<R extends RealNumber<R>>(
  a: ComplexNumber<R>,
  b: ComplexNumber<R>,
): ComplexNumber<R> {
  return pair(a.re.mul(b.re).sub(a.im.mul(b.im)), a.re.mul(b.im).add(a.im.mul(b.re)));
}

export function square<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  const even = re.abs().is("EQ", im.abs()).and(re.isFinite());
  return pair(even.pick(0, re.sub(im).mul(re.add(im))), re.mul(im).mul(2));
}

function negate<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  return pair(re.neg(), im.neg());
}

/** i·z. */
function turned<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  return pair(im.neg(), re);
}

/** -i·z. */
function turnedBack<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  return pair(im, re.neg());
}

/** A number along the real axis, in the shape of z. */
function plus<R extends RealNumber<R>>(z: ComplexNumber<R>, number: number): ComplexNumber<R> {
  return pair(z.re.add(number), z.im);
}

/** 1 - z; the sign of a zero imaginary part says the side of a cut. */
function oneMinus<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  return pair(re.fill(1).sub(re), im.neg());
}

export function magnitude<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): R {
  return re.hypot(im);
}

/** The quotient, with the divisor near one; by zero as real numbers are, by infinity zero. */
export function divide<R extends RealNumber<R>>(
  a: ComplexNumber<R>,
  b: ComplexNumber<R>,
): ComplexNumber<R> {
  const size = b.re.abs().max(b.im.abs());
  const scale = size.is("EQ", 0).or(size.isFinite().not()).pick(1, size.nearby());
  const [re, im] = [b.re.div(scale), b.im.div(scale)];
  const [x, y] = [a.re.div(scale), a.im.div(scale)];
  const norm = re.mul(re).add(im.mul(im));
  const real = x.mul(re).add(y.mul(im)).div(norm);
  const imaginary = y.mul(re).sub(x.mul(im)).div(norm);
  const isZero = size.is("EQ", 0);
  const isInfinite = size.is("EQ", Infinity);
  const isTopFinite = a.re.isFinite().and(a.im.isFinite());
  const [u, v] = [direction(b.re), direction(b.im)];
  const beyond = (turned: R): R => isTopFinite.pick(turned.mul(0), NaN);
  const special = (plain: R, top: R, turned: R): R =>
    isInfinite.pick(beyond(turned), isZero.pick(top.div(b.re.abs()), plain));
  return pair(
    special(real, a.re, a.re.mul(u).add(a.im.mul(v))),
    special(imaginary, a.im, a.im.mul(u).sub(a.re.mul(v))),
  );
}

/** Where a part of an infinite number points: what is finite beside the infinite is a zero of its sign. */
function direction<R extends RealNumber<R>>(part: R): R {
  return part.abs().is("EQ", Infinity).pick(part.sign(), part.mul(0));
}

/** 1 / z, whose parts have the signs of the conjugate's, those of zeros too. */
function reciprocal<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  const size = z.re.abs().max(z.im.abs());
  const scale = size.is("EQ", 0).or(size.isFinite().not()).pick(1, size.nearby());
  const [re, im] = [z.re.div(scale), z.im.div(scale)];
  const norm = re.mul(re).add(im.mul(im));
  const isZero = size.is("EQ", 0);
  const isInfinite = size.is("EQ", Infinity);
  const special = (part: R, ofZero: R): R =>
    isInfinite.pick(direction(part).mul(0), isZero.pick(ofZero, part.div(norm).div(scale)));
  return pair(special(re, re.fill(Infinity)), special(im.neg(), re.fill(NaN)));
}

export function sign<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  const size = magnitude(z);
  const unit = (part: R): R => size.is("EQ", 0).pick(0, part.div(size));
  const either = size.is("NE", size);
  return pair(either.pick(NaN, unit(z.re)), either.pick(NaN, unit(z.im)));
}

export function exponential<R extends RealNumber<R>>({
  re,
  im,
}: ComplexNumber<R>): ComplexNumber<R> {
  const size = re.exp();
  const isReal = im.is("EQ", 0);
  const vanishes = re.is("EQ", -Infinity).and(im.isFinite().not());
  const real = vanishes.pick(0, isReal.pick(size, size.mul(im.cos())));
  return pair(real, vanishes.pick(0, isReal.pick(im, size.mul(im.sin()))));
}

export function exponentialMinusOne<R extends RealNumber<R>>({
  re,
  im,
}: ComplexNumber<R>): ComplexNumber<R> {
  const half = im.mul(0.5).sin();
  const real = re.expm1().mul(im.cos()).sub(half.mul(half).mul(2));
  return pair(real, im.is("EQ", 0).pick(im, re.exp().mul(im.sin())));
}

/** log|z|, which near one is that of one plus a small difference. */
function logMagnitude<R extends RealNumber<R>>(z: ComplexNumber<R>): R {
  const [x, y] = [z.re.abs(), z.im.abs()];
  const large = x.max(y);
  const small = x.min(y);
  const near = large.sub(1).mul(large.add(1)).add(small.mul(small)).log1p().mul(0.5);
  const isNear = large.is("GT", 0.5).and(large.is("LT", 2));
  return isNear.pick(near, magnitude(z).log());
}

export function log<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return pair(logMagnitude(z), z.im.atan2(z.re));
}

export function logPlusOne<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  const { re, im } = z;
  const isNear = re.abs().is("LT", 0.5).and(im.abs().is("LT", 0.5));
  const near = re.mul(re.add(2)).add(im.mul(im)).log1p().mul(0.5);
  const shifted = plus(z, 1);
  return pair(isNear.pick(near, logMagnitude(shifted)), im.atan2(shifted.re));
}

/** The root in the right half plane, of a number scaled so that its magnitude neither overflows nor vanishes. */
export function squareRoot<R extends RealNumber<R>>({
  re,
  im,
}: ComplexNumber<R>): ComplexNumber<R> {
  const large = re.abs().max(im.abs());
  const isHuge = large.is("GT", 1e300);
  const isTiny = large.is("LT", 1e-290);
  const scale = isHuge.pick(0.25, isTiny.pick(2 ** 108, large.fill(1)));
  const [x, y] = [re.mul(scale), im.mul(scale)];
  const size = x
    .abs()
    .add(magnitude(pair(x, y)))
    .mul(0.5)
    .sqrt();
  const root = size.div(scale.sqrt());
  const other = im.abs().div(root.mul(2));
  const isRight = re.is("GE", 0);
  const real = isRight.pick(root, other);
  const imaginary = isRight.pick(other, root).withSignOf(im);
  const isZero = large.is("EQ", 0);
  const isTall = im.abs().is("EQ", Infinity);
  const isFarLeft = re.is("EQ", -Infinity);
  const left = pair(im.is("EQ", im).pick(0, im), im.fill(Infinity).withSignOf(im));
  return pair(
    isTall.pick(Infinity, isZero.pick(0, isFarLeft.pick(left.re, real))),
    isTall.or(isZero).pick(im, isFarLeft.pick(left.im, imaginary)),
  );
}

export function reciprocalRoot<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return reciprocal(squareRoot(z));
}

export function cubeRoot<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  const angle = z.im.atan2(z.re).div(3);
  const size = magnitude(z).cbrt();
  return pair(size.mul(angle.cos()), size.mul(angle.sin()));
}

export function power<R extends RealNumber<R>>(
  base: ComplexNumber<R>,
  exponent: ComplexNumber<R>,
): ComplexNumber<R> {
  const angle = base.im.atan2(base.re);
  const size = magnitude(base).pow(exponent.re).mul(exponent.im.mul(angle).neg().exp());
  const turn = exponent.im.mul(logMagnitude(base)).add(exponent.re.mul(angle));
  const isOne = exponent.re.is("EQ", 0).and(exponent.im.is("EQ", 0));
  const isZero = base.re.is("EQ", 0).and(base.im.is("EQ", 0));
  const ofZero = exponent.re.is("GT", 0).pick(0, base.re.fill(NaN));
  const real = isOne.pick(1, isZero.pick(ofZero, size.mul(turn.cos())));
  const sine = turn.is("EQ", 0).pick(0, size.mul(turn.sin()));
  return pair(real, isOne.pick(0, isZero.pick(ofZero, sine)));
}

/** A product in which a zero stays one beside what has overflowed. */
function besideZero<R extends RealNumber<R>>(zero: R, large: R): R {
  return zero.mul(zero.is("EQ", 0).pick(large.sign(), large));
}

export function sine<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  return pair(besideZero(re.sin(), im.cosh()), re.cos().mul(im.sinh()));
}

export function cosine<R extends RealNumber<R>>({ re, im }: ComplexNumber<R>): ComplexNumber<R> {
  return pair(re.cos().mul(im.cosh()), besideZero(re.sin().neg(), im.sinh()));
}

export function hyperbolicSine<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return turnedBack(sine(turned(z)));
}

export function hyperbolicCosine<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return cosine(turned(z));
}

export function hyperbolicTangent<R extends RealNumber<R>>({
  re,
  im,
}: ComplexNumber<R>): ComplexNumber<R> {
  const tangent = im.tan();
  const secant = tangent.mul(tangent).add(1);
  const sinh = re.sinh();
  const rho = sinh.mul(sinh).add(1).sqrt();
  const denominator = secant.mul(sinh).mul(sinh).add(1);
  const isPole = tangent.isFinite().not();
  const near = pair(
    isPole.pick(rho.div(sinh), secant.mul(rho).mul(sinh).div(denominator)),
    isPole.pick(tangent.fill(1).div(tangent), tangent.div(denominator)),
  );
  const small = im.sin().mul(im.cos()).mul(4).mul(re.abs().mul(-2).exp());
  const isFar = re.abs().is("GT", 20);
  return pair(isFar.pick(re.sign(), near.re), isFar.pick(im.isFinite().pick(small, 0), near.im));
}

export function tangent<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return turnedBack(hyperbolicTangent(turned(z)));
}

export function logistic<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return reciprocal(plus(exponential(negate(z)), 1));
}

export function arcCosine<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  const minus = squareRoot(oneMinus(z));
  const above = squareRoot(plus(z, 1));
  const imaginary = above.re.mul(minus.im).sub(above.im.mul(minus.re)).asinh();
  return pair(minus.re.atan2(above.re).mul(2), imaginary);
}

export function arcSine<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  const minus = squareRoot(oneMinus(z));
  const above = squareRoot(plus(z, 1));
  const real = z.re.atan2(minus.re.mul(above.re).sub(minus.im.mul(above.im)));
  return pair(real, minus.re.mul(above.im).sub(minus.im.mul(above.re)).asinh());
}

export function hyperbolicArcSine<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return turnedBack(arcSine(turned(z)));
}

export function hyperbolicArcCosine<R extends RealNumber<R>>(
  z: ComplexNumber<R>,
): ComplexNumber<R> {
  const minus = squareRoot(plus(z, -1));
  const above = squareRoot(plus(z, 1));
  const real = minus.re.mul(above.re).add(minus.im.mul(above.im)).asinh();
  return pair(real, minus.im.atan2(above.re).mul(2));
}

export function hyperbolicArcTangent<R extends RealNumber<R>>({
  re,
  im,
}: ComplexNumber<R>): ComplexNumber<R> {
  const right = re.abs();
  const away = right.fill(1).sub(right);
  const real = right
    .mul(4)
    .div(away.mul(away).add(im.mul(im)))
    .log1p()
    .mul(0.25)
    .withSignOf(re);
  const height = re.fill(1).sub(re).mul(re.add(1)).sub(im.mul(im));
  return pair(real, im.mul(2).atan2(height).mul(0.5));
}

export function arcTangent<R extends RealNumber<R>>(z: ComplexNumber<R>): ComplexNumber<R> {
  return turnedBack(hyperbolicArcTangent(turned(z)));
}

/** The angle of the point (x, y): -i·log((x + i·y) / sqrt(x² + y²)). */
export function arcTangent2<R extends RealNumber<R>>(
  y: ComplexNumber<R>,
  x: ComplexNumber<R>,
): ComplexNumber<R> {
  const size = squareRoot(add(multiply(x, x), multiply(y, y)));
  return turnedBack(log(divide(add(x, turned(y)), size)));
}

/** Complex numbers are ordered by their real parts, then by the others. */
export function larger<R extends RealNumber<R>>(
  a: ComplexNumber<R>,
  b: ComplexNumber<R>,
): ComplexNumber<R> {
  return isLess(a, b, a, b);
}

export function smaller<R extends RealNumber<R>>(
  a: ComplexNumber<R>,
  b: ComplexNumber<R>,
): ComplexNumber<R> {
  return isLess(b, a, a, b);
}

/** The second choice where one number is less than another. */
function isLess<R extends RealNumber<R>>(
  left: ComplexNumber<R>,
  right: ComplexNumber<R>,
  otherwise: ComplexNumber<R>,
  chosen: ComplexNumber<R>,
): ComplexNumber<R> {
  const isTied = left.re.is("EQ", right.re).and(left.im.is("LT", right.im));
  const less = left.re.is("LT", right.re).or(isTied);
  return pair(less.pick(chosen.re, otherwise.re), less.pick(chosen.im, otherwise.im));
}
