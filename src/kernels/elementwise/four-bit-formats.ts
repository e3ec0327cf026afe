/**
 * Formats of 4 bits, widened to 8 bits. Two elements share a byte, and no thread can store one alone, so operations whose blocks or threads
 * divide a byte work on copies in a format of 8 bits that represents all their numbers.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import type { TensorSpec } from "../../lang/index.ts";
import type { OperationStep } from "../support/compose.ts";
import { cast } from "./cast.ts";

const wider: { readonly [N in DTypeName]?: DType } = {
  i4: dtypes.i8,
  u4: dtypes.u8,
  f4e2m1fn: dtypes.f8e4m3fn,
};

/** The format of 8 bits that stands for one of 4; undefined for those that need none. */
export function widened({ name }: DType): DType | undefined {
  return wider[name];
}

/** The step that converts one array of the whole into another. */
export function casting(
  from: TensorSpec,
  out: DType,
  source: string,
  target: string,
): OperationStep {
  return {
    operation: cast({ x: from, out }),
    dimensions: {},
    arrays: { x: source, out: target },
  };
}
