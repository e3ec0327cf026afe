/** Windows that must not be used, reported where they are. */
import type { AnyOp, Value } from "../../ir/node.ts";
import type { Lowering } from "./lowering.ts";

/** Ends the block where a window must not be accessed: an index that is not there, a window that leaves shared memory. */
export function requireUsable(lowering: Lowering, op: AnyOp, value: Value): void {
  const ref = lowering.ref(value);
  if (ref.fault === undefined) return;
  const number = lowering.fault("bounds", `a window outside of ${ref.name}`, op.location);
  lowering.failIf(lowering.b, ref.fault, number);
}
