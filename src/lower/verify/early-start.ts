/**
 * Whether a kernel that starts early still waits before it touches memory, once loads have been merged, loops unrolled and copies made
 * ahead. Whether it is started early is decided by the same `startOf` (`ptx/emit/early-start.ts`), so that none is without this.
 */
import { startOf } from "../../ir/early-start.ts";
import type { Kernel } from "../../ir/node.ts";
import { earlyText } from "../../ir/verify/early-start.ts";
import { reject } from "../../ir/verify/report.ts";

export function verifyEarlyStart(kernel: Kernel): void {
  const { wait, early, waitsInEnd } = startOf(kernel);
  const [first] = early;
  if (first !== undefined)
    reject(first.op, "TW6211", `${earlyText(first)} before the kernel before has ended`, {
      expected: "grid_dependency {action = wait} before it, on every way",
      found: "a way without it",
    });
  if (wait !== undefined && !waitsInEnd)
    reject(wait, "TW6211", "a block may end before the kernel before has ended", {
      expected: "grid_dependency {action = wait} on every way to the end",
      found: "a way without it",
    });
}
