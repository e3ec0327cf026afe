/** Floats that compute in f32: widening is exact, narrowing rounds to the nearest. */
import { f32 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { convertParts } from "../convert/index.ts";
import type { FunctionBuilder } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import { keepLanes, vectorOf } from "./lanes.ts";
import type { Lanes } from "./lanes.ts";

/** Whether numbers of the format are f32, or are computed as f32 and rounded. */
export function computesInSingle({ name }: DType): boolean {
  return name === "f32" || name === "f16" || name === "bf16";
}

/** The numbers as f32. */
export function widenFloats(builder: FunctionBuilder, lanes: Lanes): Expression {
  if (lanes.dtype === f32) return vectorOf(lanes);
  const [part] = convertParts({ builder, relaxed: false }, lanes.dtype, f32, lanes.parts);
  if (part === undefined) throw new Error("a conversion without a result");
  return builder.keep(part);
}

/** Numbers of f32 rounded to the format. */
export function narrowFloats(builder: FunctionBuilder, dtype: DType, value: Expression): Lanes {
  if (dtype === f32) return keepLanes(builder, dtype, value);
  const parts = [builder.keep(value)];
  return keepLanes(builder, dtype, ...convertParts({ builder, relaxed: false }, f32, dtype, parts));
}
