/** Series of the gamma function and its derivatives, for the evaluator and for tiles alike. */

/**
 * The logarithm of the gamma function around 2, where it is 0 and the series of large numbers leaves no digits:
 *
 *   log Γ(2 + z) = z · (1 - γ + Σ (-1)^k · (ζ(k) - 1) / k · z^(k-1)),   k from 2 on
 *
 * For |z| up to 1/4 these terms are exact to f64. log Γ(1 + z) is less by log(1 + z).
 */
export const logGammaAroundTwo: readonly number[] = [
  0.42278433509846713, 0.3224670334241132, -0.0673523010531981, 0.020580808427784546,
  -0.007385551028673986, 0.0028905103307415234, -0.001192753911703261, 0.0005096695247430425,
  -0.00022315475845357939, 9.945751278180853e-5, -4.492623673813314e-5, 2.050721277567069e-5,
  -9.439488275268397e-6, 4.374866789907488e-6, -2.039215753801366e-6, 9.55141213040742e-7,
  -4.492469198764566e-7, 2.1207184805554665e-7, -1.0043224823968099e-7, 4.7698101693639804e-8,
  -2.2711094608943164e-8, 1.0838659214896955e-8, -5.183475041970047e-9,
];

/** What log Γ(x) is beyond (x - 1/2)·log x - x + log(2π)/2, over 1/x, by 1/x². */
export const stirling: readonly number[] = [
  1 / 12,
  -1 / 360,
  1 / 1260,
  -1 / 1680,
  1 / 1188,
  -691 / 360360,
  1 / 156,
  -3617 / 122400,
];

/** What digamma x is short of log x - 1/(2x), over 1/x², by 1/x². */
export const digammaSeries: readonly number[] = [
  1 / 12,
  -1 / 120,
  1 / 252,
  -1 / 240,
  1 / 132,
  -691 / 32760,
  1 / 12,
  -3617 / 8160,
];

/** (2k)! / B(2k), the divisors of Euler–Maclaurin's correction of sums of powers. */
export const zetaDivisors: readonly number[] = [
  12, -720, 30240, -1209600, 47900160, -1.8924375803183791606e9, 7.47242496e10,
  -2.950130727918164224e12, 1.1646782814350067249e14, -4.5979787224074726105e15,
  1.8152105401943546773e17, -7.1661652561756670113e18,
];

/** -digamma 1. */
export const eulerGamma = 0.5772156649015329;
