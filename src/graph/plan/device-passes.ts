/** The passes that a program goes through before kernels are made of it, and what they are told. */
import { applyRule } from "../lower/kernel-of.ts";
import { associativeScansPass } from "../normal/associative-scans.ts";
import { splitComplexPass } from "../lower/complex/pass.ts";
import { keepsHoles } from "../lower/convolution/lowering.ts";
import { expandPass } from "../lower/expand/pass.ts";
import { scaledProductsPass } from "../lower/scaled-products/pass.ts";
import {
  constantPicksPass,
  gatheredProductsPass,
  scatteredProductsPass,
  matmulPrecisionPass,
  normalProductsPass,
  patchesPass,
  patchesPassFor,
  rowConvolutionsPass,
  turnProductsPass,
  withoutHolesPass,
} from "../normal/pass.ts";
import { cpuPatches } from "../normal/convolutions.ts";
import type { Target, TargetName } from "../../targets/target.ts";
import type { MatmulPrecision } from "../ops/matmul-precision.ts";
import { csePass } from "../passes/cse.ts";
import { dcePass } from "../passes/dce.ts";
import { inlinePass } from "../passes/inline.ts";
import { loopCarriesPass } from "../passes/loop-carries.ts";
import { hoistPass, unrollPass } from "../passes/loops.ts";
import type { GraphPass } from "../passes/pass.ts";
import { simplifyPass } from "../passes/simplify.ts";

/** What a program leaves to who runs it. */
export interface CompileOptions {
  /**
   * How products and convolutions of f32 are multiplied that ask for no precision: `"f32"`, which is the default and no less exact than sums of
   * f32 are, or `"tf32"`, as JAX does on GPUs.
   */
  readonly matmulPrecision?: MatmulPrecision;
  /** The GPU that it is planned for: sm_90a unless told otherwise. No GPU is needed. */
  readonly target?: Target | TargetName;
}

/** What devices are given is not folded: what a program computes from constants, it computes there. */
export function devicePasses(
  name: string,
  precision: MatmulPrecision,
  { caches }: Pick<Target, "caches"> = {},
): readonly GraphPass[] {
  return [
    inlinePass,
    associativeScansPass(applyRule),
    dcePass,
    simplifyPass,
    csePass,
    constantPicksPass,
    scatteredProductsPass,
    gatheredProductsPass,
    withoutHolesPass(keepsHoles),
    ...(caches === undefined ? [patchesPass] : [rowConvolutionsPass, patchesPassFor(cpuPatches)]),
    expandPass,
    inlinePass,
    splitComplexPass(name),
    unrollPass,
    simplifyPass,
    scaledProductsPass,
    dcePass,
    expandPass,
    simplifyPass,
    turnProductsPass,
    simplifyPass,
    matmulPrecisionPass(precision, caches === undefined),
    normalProductsPass,
    simplifyPass,
    loopCarriesPass,
    hoistPass,
    csePass,
    simplifyPass,
    dcePass,
  ];
}
