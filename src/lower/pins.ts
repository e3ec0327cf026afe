/**
 * Whether what the user states about layouts can be met, decided on the kernel as it was traced, without its dead code:
 *
 *   x.mul(2).layoutCast(A)   x.mul(2).layoutCast(B)      two tiles as traced, one tile once equal things are computed once
 *   wgmma(…).wait().mul(1).layoutCast(A)                 mul(1) may convert; once it is gone, wgmma fixes the layout
 *
 * Both are accepted. Where a statement holds for the traced kernel alone, the placement of the simplified one converts
 * (`pinsHold` of `layout/plan/place.ts`). Where it does not hold for the traced kernel it is refused, even if simplification would have
 * removed it.
 */
import type { Kernel } from "../ir/node.ts";
import { walkOps } from "../ir/traverse.ts";
import { pinsCanHold, placeWithRetry } from "../layout/plan/place.ts";
import { deadCode } from "../passes/dead-code.ts";
import { withoutMarks } from "../passes/profile-marks.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Coroutine } from "../support/coroutine.ts";
import type { Target } from "../targets/target.ts";
import { withoutMeanings } from "./strip-inline-ptx-reference.ts";

/** Codes of statements about layouts that cannot be met; others depend on room, which is that of the simplified kernel. */
const refusals: ReadonlySet<string> = new Set(["TW6101", "TW6102"]);

/** Kernels whose statements hold, by target. */
const holding = new WeakMap<Kernel, Set<Target>>();

/** Refuses a kernel as it was traced in which layouts are stated that cannot be met. */
export function* requirePins(traced: Kernel, target: Target): Coroutine<void> {
  const targets = holding.get(traced);
  if (targets?.has(target) === true || !statesLayouts(traced)) return;
  const refusal = yield* contradiction(traced, target);
  if (refusal !== undefined) throw refusal;
  holding.set(traced, new Set([...(targets ?? []), target]));
}

/** What statements about layouts, the user's or those of instructions, contradict each other in a kernel as it was traced. */
export function* contradiction(
  traced: Kernel,
  target: Target,
): Coroutine<TilewrightError | undefined> {
  const kernel = withoutMeanings(deadCode(withoutMarks(traced)));
  try {
    if (!(yield* pinsCanHold(kernel, target))) yield* placeWithRetry(kernel, target);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    if (refusals.has(error.code)) return error;
  }
  return undefined;
}

function statesLayouts({ body }: Kernel): boolean {
  let states = false;
  walkOps(body, (op) => {
    states ||= op.kind === "layout_cast" && op.attributes.hint !== true;
  });
  return states;
}
