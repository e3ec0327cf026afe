/** The passes that every kernel goes through, in order. */
import type { Kernel } from "../ir/node.ts";
import { verifyKernel } from "../ir/verify/index.ts";
import { canonicalize } from "./canonicalize/index.ts";
import { commonSubexpressions } from "./common-subexpressions.ts";
import { deadCode } from "./dead-code.ts";
import { foldConstants } from "./fold-constants.ts";
import { hoistInvariants } from "./hoist-invariants.ts";

export interface PassOptions {
  /** Verify the kernel after each pass. */
  readonly verify?: boolean;
  /** Called with the kernel after each pass that changed it. */
  readonly trace?: (passName: string, kernel: Kernel) => void;
}

export type Pass = (kernel: Kernel) => Kernel;

/** Each round only removes, moves outwards or simplifies; real kernels settle in two or three. */
const roundLimit = 50;

const passes: readonly (readonly [name: string, pass: Pass])[] = [
  // Constants first: they decide branches and trips, which canonicalisation then resolves.
  ["foldConstants", foldConstants],
  // One form for equal things, before equal things are looked for.
  ["canonicalize", canonicalize],
  // Before hoisting, so that a loop's copy of what is known outside does not move out beside it.
  ["commonSubexpressions", commonSubexpressions],
  // After branches are resolved: what was inside one may now be directly in a loop's body.
  ["hoistInvariants", hoistInvariants],
  // Last, because every pass above leaves ops behind that nothing uses any more.
  ["deadCode", deadCode],
];

/** The kernel after all passes; running them again changes nothing. */
export function runPasses(kernel: Kernel, options: PassOptions = {}): Kernel {
  let current = kernel;
  // Merged values make operands equal, and moved ops meet others: both may give new constants. It is over when every pass
  // has left the kernel as it is.
  let unchanged = 0;
  for (let round = 0; round < roundLimit; round++)
    for (const [name, pass] of passes) {
      const before = current;
      current = runPass(name, pass, before, options);
      unchanged = current === before ? unchanged + 1 : 0;
      if (unchanged === passes.length) return current;
    }
  throw new Error(`the passes over ${kernel.name} do not settle in ${roundLimit} rounds`);
}

function runPass(name: string, pass: Pass, kernel: Kernel, options: PassOptions): Kernel {
  const after = pass(kernel);
  if (after === kernel) return kernel;
  options.trace?.(name, after);
  if (options.verify === true) verifyKernel(after);
  return after;
}
