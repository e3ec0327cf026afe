/**
 * The complementary error function of x from 0 on as a product, of which every factor keeps its digits:
 *
 *   erfc(x) = P(q) / (1 + 2x) · e^(-x²)      q = (x - c) / (x + c), which is between -1 and 1
 *
 * P is near (1 + 2x)·e^(x²)·erfc(x), which goes from 1 by 1.28 to 2/√π. By width: the coefficients in ascending order, up to where the
 * result is zero. Weighted least squares in 45 digits, the coefficients rounded one after the other. 2^-25.9, 2^-54.5.
 */
interface ComplementaryError {
  readonly center: number;
  readonly curve: readonly number[];
  /** From here on the function rounds to zero. */
  readonly zero: number;
}

export const complementaryError: { readonly [W in 32 | 64]: ComplementaryError } = {
  32: {
    center: 2,
    curve: [
      1.2769783735275269, -0.09276391565799713, -0.16603094339370728, 0.16405460238456726,
      -0.05420765280723572, -0.008058033883571625, 0.008640888147056103, 0.0013144264230504632,
      -0.001238707802258432, -0.0004051074502058327,
    ],
    zero: 10.1,
  },
  64: {
    center: 4,
    curve: [
      1.2329951186255526, -0.13962111684056253, 0.015379652102610112, 0.0680970542546952,
      -0.10103906603585848, 0.0937328349983048, -0.06633036582117326, 0.03716751553679309,
      -0.01619773395994838, 0.0050319700030782765, -0.0007577739358304893, -0.00019925697575893552,
      0.00015062440811690743, -2.4397541011378807e-5, -1.122951865432047e-5, 5.7037538173286225e-6,
      3.068929708274206e-7, -8.121697500392048e-7, 6.115807226094836e-8, 9.216728890138059e-8,
      -1.1690580510174004e-8, -6.324590238971799e-10, 2.7151858754431806e-9, -3.080565047287512e-9,
      -1.4665924636625343e-9,
    ],
    zero: 27.3,
  },
};
