/** The whole matrix of cases. */
import type { MatrixCase } from "./case.ts";
import { combiningCases } from "./combining.ts";
import { elementwiseCases } from "./elementwise.ts";
import { productCases } from "./products.ts";
import { rearrangingCases } from "./rearranging.ts";

export function matrixCases(): readonly MatrixCase[] {
  return [...elementwiseCases(), ...rearrangingCases(), ...combiningCases(), ...productCases()];
}
