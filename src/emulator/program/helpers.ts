/** What the generated JavaScript may call, by the names it uses. */
import { fusedMultiplyAdd } from "../../formats/arithmetic/fused.ts";
import * as bits from "../arithmetic/bits.ts";
import * as convert from "../arithmetic/convert.ts";
import * as exact from "../../formats/arithmetic/exact.ts";
import * as floats from "../arithmetic/floats.ts";
import * as nans from "../arithmetic/nans.ts";
import * as narrow from "../arithmetic/narrow.ts";
import * as video from "../arithmetic/video.ts";
import * as wide from "../arithmetic/wide.ts";

export const helpers: { readonly [name: string]: unknown } = Object.freeze({
  ...bits,
  ...convert,
  ...exact,
  ...floats,
  ...nans,
  ...narrow,
  ...video,
  ...wide,
  fusedMultiplyAdd,
  fround: Math.fround,
  SI: wide.pairResult,
  SF: wide.singleResult,
  SD: wide.doubleResult,
  HN: floats.halfNumbers,
  BN: floats.bfloatNumbers,
});
