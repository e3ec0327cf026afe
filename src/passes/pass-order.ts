/** The passes that every kernel goes through, in order. */
import type { Kernel } from "../ir/node.ts";
import type { Settled } from "../ir/rewrite/engine.ts";
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
  /** Passes that are left out, for tests. */
  readonly without?: readonly PassName[];
}

export const passNames = [
  "foldConstants",
  "canonicalize",
  "commonSubexpressions",
  "hoistInvariants",
  "deadCode",
] as const;

export type PassName = (typeof passNames)[number];

/** What rewriting passes found settled in rounds before is handed to them again. */
export type Pass = (kernel: Kernel, settled?: Settled) => Kernel;

/** Each round only removes, moves outwards or simplifies; real kernels settle in two or three. */
const roundLimit = 50;

interface NamedPass {
  readonly name: PassName;
  readonly pass: Pass;
  /** Whether it finds nothing in what it made itself. */
  readonly settles: boolean;
}

const passes: readonly NamedPass[] = [
  // Constants first: they decide branches and trips, which canonicalisation then resolves.
  { name: "foldConstants", pass: foldConstants, settles: true },
  // One form for equal things, before equal things are looked for.
  { name: "canonicalize", pass: canonicalize, settles: true },
  // Before hoisting, so that a loop's copy of what is known outside does not move out beside it.
  { name: "commonSubexpressions", pass: commonSubexpressions, settles: true },
  // After branches are resolved: what was inside one may now be directly in a loop's body.
  { name: "hoistInvariants", pass: hoistInvariants, settles: true },
  // Last, because every pass above leaves ops behind that nothing uses any more; what only an operand that it dropped used
  // is one of them.
  { name: "deadCode", pass: deadCode, settles: false },
];

/** The kernel after all passes; running them again changes nothing. */
export function runPasses(kernel: Kernel, options: PassOptions = {}): Kernel {
  let current = kernel;
  const { without = [] } = options;
  const run = passes.filter(({ name }) => !without.includes(name));
  if (run.length === 0) return kernel;
  const settled = new Map<Pass, Settled>(run.map(({ pass }) => [pass, new Set()]));
  // Merged values make operands equal, and moved ops meet others: both may give new constants. It is over when no pass
  // would change the kernel.
  let idle = 0;
  for (let round = 0; round < roundLimit; round++)
    for (const each of run) {
      const after = runPass(each, current, settled.get(each.pass), options);
      if (after === current) idle += 1;
      else idle = each.settles ? 1 : 0;
      current = after;
      if (idle === run.length) return current;
    }
  throw new Error(`the passes over ${kernel.name} do not settle in ${roundLimit} rounds`);
}

function runPass(
  { name, pass }: NamedPass,
  kernel: Kernel,
  settled: Settled | undefined,
  options: PassOptions,
): Kernel {
  const after = pass(kernel, settled);
  if (after === kernel) return kernel;
  options.trace?.(name, after);
  if (options.verify === true) verifyKernel(after);
  return after;
}
