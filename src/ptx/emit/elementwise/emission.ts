/** What elementwise code is written with: where it goes, and which instructions the target has. */
import type { Target } from "../../../targets/target.ts";
import type { Code } from "../../function-builder.ts";

/** Every EmitContext is one. */
export interface Emission {
  readonly code: Code;
  readonly target: Target;
}
