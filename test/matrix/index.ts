/**
 * The whole matrix of cases: every op with every format that it takes, several shapes and every axis.
 *
 *   cast f32 to bf16, [3, 40]      a kernel, its inputs, and what float64 says of its results
 */
import { featureCases } from "../features/index.ts";
import { accumulationCases } from "./accumulations.ts";
import { arrangingCases } from "./arranging.ts";
import type { MatrixCase } from "./case.ts";
import { clusterProductCases } from "./cluster-products.ts";
import { combiningCases } from "./combining.ts";
import { customCombiningCases } from "./custom-combining.ts";
import { elementwiseCases } from "./elementwise.ts";
import { meetingCases } from "./meeting.ts";
import { nanBitCases } from "./nan-bits.ts";
import { orderingCases } from "./ordering.ts";
import { pickingCases } from "./picking.ts";
import { productCases } from "./products.ts";
import { rearrangingCases } from "./rearranging.ts";
import { sizesOfThreadsCases } from "./sizes-of-threads.ts";
import { smallCopyCases } from "./small-copies.ts";
import { sparseProductCases } from "./sparse-products.ts";
import { turnCases } from "./turns.ts";
import { updatingCases } from "./updating.ts";
import { writtenCases } from "./written.ts";

export function matrixCases(): readonly MatrixCase[] {
  return [
    ...elementwiseCases(),
    ...nanBitCases(),
    ...rearrangingCases(),
    ...combiningCases(),
    ...customCombiningCases(),
    ...productCases(),
    ...accumulationCases(),
    ...updatingCases(),
    ...pickingCases(),
    ...arrangingCases(),
    ...orderingCases(),
    ...meetingCases(),
    ...turnCases(),
    ...sizesOfThreadsCases(),
    ...writtenCases(),
    ...smallCopyCases(),
    ...clusterProductCases(),
    ...sparseProductCases(),
    ...featureCases(),
  ];
}
