/**
 * GELU, x · Φ(x), by what it differs from relu: with s = |x|
 *
 *   x · Φ(x) = max(x, 0) - s · Φ(-s)
 *
 * Φ(-s) is a power of two whose exponent a polynomial gives: ten instructions for that one, and one for the power. The form by
 * the error function, x · (1 + erf(x / √2)) / 2, takes twice as many in f32, and cancels where x is negative: of -5 it has one
 * digit left. For results of 16 bits a polynomial of five instructions suffices. In the epilogue of a product each instruction costs
 * 0.2 to 0.9% of 4096³, also where tensor cores multiply meanwhile.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { Accuracy, Tile } from "../../lang/index.ts";

/** log2 Φ(-s) = c0 + c1·s + … for s up to 5.8, most exactly where Φ is greatest; behind that less than -28, and falling. */
const exponent = [
  -0.9999999403953552, -1.1511080265045166, -0.4591871500015259, -0.052547745406627655,
  0.007108054589480162, -0.00013303995365276933, -0.00021559665037784725, 5.799838254461065e-5,
  -7.838326382625382e-6, 5.713781092708814e-7, -1.7802046059500753e-8,
] as const;
/**
 * Likewise, everywhere as exactly: Φ(-s) is off by less than 2^-12.5 of itself for s up to 5, and falls faster behind that, where s · Φ(-s) is
 * less than 2^-19: f16 has no more than five bits there.
 */
const approximateExponent = [
  -1.0002282857894897, -1.1477888822555542, -0.4669073820114136, -0.0463193878531456,
  0.005297360476106405, -0.00026991876075044274,
] as const;
/** Where Φ(-s) is zero in f32. Infinity times zero would be no number. */
const isZero = 16;

export function gelu(x: Tile<"f32">, { approximate = false }: Accuracy = {}): Tile<"f32"> {
  // Tiles of f64 come here, too.
  if (!Object.is(x.dtype, dtypes.f32)) return x.mul(0.5).mul(x.mul(Math.SQRT1_2).erf().add(1)); // great x stay finite
  // Assemblers read |x| and -s as operands.
  const size = x.abs().minimum(isZero);
  const coefficients = approximate ? approximateExponent : exponent;
  const [greatest = 0, second = 0, ...rest] = coefficients.toReversed();
  const power = rest.reduce<Tile<"f32">>(
    (inner, coefficient) => size.fma(inner, coefficient),
    size.fma(greatest, second),
  );
  return size.neg().fma(power.exp2({ approximate: true }), x.maximum(0));
}
