/**
 * Which formats matrix products take and in which they accumulate. What `dot` takes is stated beside the
 * arithmetic; `wgmma` takes the operands that its instruction has, with the same accumulators.
 */
import { acceptsDot } from "../../formats/arithmetic/dot.ts";
import { dtypeNames, dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";

const wgmmaOperands: readonly DTypeName[] = [
  "f16",
  "bf16",
  "tf32",
  "f8e4m3fn",
  "f8e5m2",
  "i8",
  "u8",
];

/** The formats `dot` can accumulate in; none where the operands do not multiply. */
export function dotAccumulators(left: DType, right: DType): readonly DTypeName[] {
  return dtypeNames.filter((name) => acceptsDot(left, right, dtypes[name]));
}

/** The formats `wgmma` can accumulate in; none where it does not take the operands. */
export function wgmmaAccumulators(left: DType, right: DType): readonly DTypeName[] {
  return wgmmaOperands.includes(left.name) ? dotAccumulators(left, right) : [];
}
