/** The whole matrix of cases. */
import type { MatrixCase } from "./case.ts";
import { combiningCases } from "./combining.ts";
import { castCases, functionCases } from "./elementwise.ts";
import { orderingCases } from "./ordering.ts";
import { productCases } from "./products.ts";
import { rearrangingCases } from "./rearranging.ts";
import { updatingCases } from "./updating.ts";

export function matrixCases(): readonly MatrixCase[] {
  return [
    ...functionCases(),
    ...castCases(),
    ...rearrangingCases(),
    ...combiningCases(),
    ...productCases(),
    ...updatingCases(),
    ...orderingCases(),
  ];
}
