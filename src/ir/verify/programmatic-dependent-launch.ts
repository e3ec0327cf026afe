/**
 * Verifies that a kernel under programmatic dependent launch accesses no global memory until it has waited for the kernel before it:
 *
 *   grid_dependency {action = wait}
 *   %3 = load %2                        %2 may be what the kernel before writes
 *
 * The placed kernel is verified by the same rule (`lower/verify/programmatic-dependent-launch.ts`).
 */
import { dependentLaunchOf } from "../programmatic-dependent-launch.ts";
import type { AccessBeforeWait } from "../programmatic-dependent-launch.ts";
import type { Kernel } from "../node.ts";
import { opName } from "../op-names.ts";
import { reject } from "./report.ts";

export function verifyDependentLaunch(kernel: Kernel): void {
  const { wait, settled, beforeWait, waitsBeforeEnd } = dependentLaunchOf(kernel);
  if (wait === undefined) return;
  const inputs = kernel.parameters.filter(
    ({ role, value }) => role === "input" && value.type.kind === "ref",
  );
  const unknown = settled.find((name) => !inputs.some((input) => input.name === name));
  if (unknown !== undefined)
    reject(wait, "TW2224", `${unknown} is said to be independent, which is no input array`, {
      expected: inputs.map(({ name }) => name).join(", ") || "nothing: there are no input arrays",
      found: unknown,
    });
  const [first] = beforeWait;
  const notes = [{ message: "it is waited for here", location: wait.location }];
  if (first !== undefined)
    reject(first.op, "TW2223", `${accessText(first)} before the kernel before has ended`, {
      expected: "waitForPreviousKernel() before it, on every way that leads here",
      found: `a way of ${threadsText(kernel, first)} without it`,
      notes,
    });
  if (!waitsBeforeEnd)
    reject(wait, "TW2223", "a block may end before the kernel before has ended", {
      expected: "a wait on every way through the kernel, in one of its threads",
      found: "a way without one, on which the kernel after this would not wait for that one either",
    });
}

/** What an access before the wait does, for a message. */
export function accessText({ op, array }: AccessBeforeWait): string {
  if (array === undefined) return `${opName(op)} touches global memory`;
  return `${opName(op)} ${array.isRead ? "reads" : "writes"} ${array.name ?? "scratch memory"}`;
}

function threadsText({ threads }: Kernel, { threads: late }: AccessBeforeWait): string {
  if (threads.length === 1) return "the kernel";
  return late.map((thread) => threads[thread]).join(", ");
}
