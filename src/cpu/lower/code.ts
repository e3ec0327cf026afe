/** Where expressions of lanes go, and what the engine offers. */
import type { FunctionBuilder } from "../loops/builder.ts";

export interface Code {
  readonly builder: FunctionBuilder;
  /** Whether relaxed SIMD may be used. */
  readonly relaxed: boolean;
}
