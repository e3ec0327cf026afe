/**
 * The inverse of the error function as JAX has it in single precision, after Giles: with w = -log(1 - x²), where x² is rounded
 * to f32 first, a polynomial times x. Kernels and array programs draw normal numbers by it, which are JAX's to a few units in
 * the last place; near ±1 a more exact function would be 90 units away from it.
 *
 *   w < 5     x · (central of w - 2.5)
 *   else      x · (outer of √w - 3)
 */
const central = [
  2.81022636e-8, 3.43273939e-7, -3.5233877e-6, -4.39150654e-6, 0.00021858087, -0.00125372503,
  -0.00417768164, 0.246640727, 1.50140941,
];
const outer = [
  -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
  0.00943887047, 1.00167406, 2.83297682,
];

/** Coefficients of both polynomials as f32, the highest power first. */
export const inverseErrorCoefficients: readonly (readonly [central: number, outer: number])[] =
  central.map((value, index) => [Math.fround(value), Math.fround(outer[index] ?? 0)]);
