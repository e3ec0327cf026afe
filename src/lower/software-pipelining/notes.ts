/** Notes of loops that ask for copies ahead and have none. */
import type { Kernel, Op } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
import { codes } from "../../support/diagnostic-codes/index.ts";
import type { Target } from "../../targets/target.ts";
import { whyNotPlanned } from "./plan.ts";

/** What is to be said of a kernel whose loops have been pipelined: those that ask for a depth still have been left alone. */
export function depthNotes(kernel: Kernel, target: Target): readonly PerformanceNote[] {
  const asking: Op<"loop">[] = [];
  walkOps(kernel.body, (op) => {
    if (op.kind === "loop" && (op.attributes.depth ?? 1) > 1) asking.push(op);
  });
  return asking.map((loop) => ({
    code: "TW7509",
    message: `this loop has no copies ahead, although it asks for a depth of ${loop.attributes.depth}`,
    because: whyNotPlanned(kernel, target, loop),
    remedy: codes.TW7509.remedy,
    position: loop.location.position,
  }));
}
