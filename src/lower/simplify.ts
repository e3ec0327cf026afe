/** The first stage, apart from the others: a simulation loads neither placement nor PTX. */
import type { Kernel } from "../ir/node.ts";
import { runPasses } from "../passes/pass-order.ts";
import type { PassName } from "../passes/pass-order.ts";
import { withoutMarks } from "../passes/profile-marks.ts";

export interface SimplifyOptions {
  /** Called with the kernel after each step that changed it. */
  readonly observe?: (step: string, kernel: Kernel) => void;
  /** Passes that are left out, for tests. */
  readonly without?: readonly PassName[];
}

/** The kernel as the simulator runs it: nothing in it is left to be simplified. */
export function simplify(traced: Kernel, { observe, without }: SimplifyOptions = {}): Kernel {
  return runPasses(withoutMarks(traced), {
    ...(observe && { trace: observe }),
    ...(without && { without }),
  });
}
