/**
 * How two threads that share tiles end them. Left alone, both end at the same time, and tensor cores have nothing to do while both finish what
 * they have summed. So the second one waits with the last steps of a tile until the first has begun all of its own: tensor cores
 * are as busy with one thread's products as with both's, and what each does besides is done while the other multiplies.
 *
 *   slots     … n-3  n-2  n-1 │ 0  1  2 of the next tile
 *   first     multiplies them, finishes the tile, multiplies 0  1  2
 *   second    waits           multiplies n-3  n-2  n-1, finishes the tile, multiplies 0  1  2
 *
 * The second still has the slot before them when it waits, so that all others may be filled for the first.
 */
import { when } from "../../lang/index.ts";
import type { Scalar } from "../../lang/index.ts";
import type { PersistentForm, Work } from "./persistent.ts";

/** Steps at the end of a tile that the second thread waits with. */
function lastSteps({ configuration: { stages } }: Pick<PersistentForm, "configuration">): number {
  return stages - 1;
}

/** The second thread waits before the first of a tile's last steps. */
export function letFirstEnd(
  { ahead, form }: Work,
  index: Scalar<"i32">,
  step: Scalar<"i32">,
  steps: Scalar<"i32">,
): void {
  if (ahead === undefined) return;
  when(index.eq(1).and(step.eq(steps.sub(lastSteps(form)))), () => {
    ahead.wait();
  });
}

/** The first thread has begun all steps of a tile. */
export function letSecondEnd({ ahead }: Work, index: Scalar<"i32">): void {
  if (ahead === undefined) return;
  when(index.eq(0), () => {
    ahead.arrive();
  });
}
