/**
 * What a target would refuse of a kernel that is only simulated: layouts that cannot all hold, and tiles that do not fit in registers. The
 * simulator knows nothing of layouts, so that such a kernel would come out right there and fail to compile later.
 *
 *   layouts are stated, of tiles or buffers, or only TMA will do     whether they can hold, as the compiler decides it
 *   a tile has more elements than a thread has registers              the kernel is placed
 *   neither                                                            nothing: most kernels cost one walk over their ops
 */
import type { AnyOp, Kernel, Region } from "../ir/node.ts";
import { regionList } from "../ir/traverse.ts";
import { needsEngine } from "../layout/model/copy-methods.ts";
import { fitsRegisters } from "../layout/plan/register-limit.ts";
import { runToCompletion } from "../support/coroutine.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Target } from "../targets/target.ts";
import { contradiction } from "./pins.ts";
import { place } from "./stages.ts";

const known = new WeakMap<Kernel, Map<Target, TilewrightError | undefined>>();

/** Why the target would not take the kernel, as far as layouts and registers go; found once for each kernel. */
export function refusalOf(kernel: Kernel, target: Target): TilewrightError | undefined {
  const found = known.get(kernel) ?? new Map<Target, TilewrightError | undefined>();
  known.set(kernel, found);
  if (!found.has(target)) found.set(target, findRefusal(kernel, target));
  return found.get(target);
}

function findRefusal(kernel: Kernel, target: Target): TilewrightError | undefined {
  const { states, isLarge } = doubtsOf(kernel.body, kernel.warps);
  try {
    const refusal = states ? runToCompletion(contradiction(kernel, target)) : undefined;
    if (refusal === undefined && isLarge) place(kernel, target);
    return refusal;
  } catch (error) {
    // Whatever else is wrong is the compiler's to say: a simulation does not fail for it.
    return error instanceof TilewrightError && error.code === "TW6106" ? error : undefined;
  }
}

interface Doubts {
  readonly states: boolean;
  readonly isLarge: boolean;
}

/** What there is to decide of the ops of a region that `warps` warps run together. */
function doubtsOf({ ops }: Region, warps: number): Doubts {
  let [states, isLarge] = [false, false];
  for (const op of ops) {
    states ||= statesLayout(op);
    isLarge ||= op.results.some(({ type }) => type.kind === "tile" && !fitsRegisters(type, warps));
    for (const region of regionList(op)) {
      const inner = doubtsOf(region, op.kind === "warps" ? 1 : warps);
      states ||= inner.states;
      isLarge ||= inner.isLarge;
    }
  }
  return { states, isLarge };
}

function statesLayout(op: AnyOp): boolean {
  if (op.kind === "layout_cast") return op.attributes.hint !== true;
  if (op.kind === "alloc" || op.kind === "union_member") return op.attributes.layout !== undefined;
  return op.kind === "copy_async" && needsEngine(op) !== undefined;
}
