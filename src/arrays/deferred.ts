/**
 * Runs of the evaluator that wait until somebody reads. They hold what they need from the moment they are asked for, so that
 * arrays may be disposed of meanwhile:
 *
 *   f = jit(…, { signal })     f(x), f(f(x))     two runs, the second over a result of the first
 *   await y.read()             runs both, yielding to the event loop, so that the signal can be aborted
 */
import { evaluate, evaluateWithBreaks, isTensorDatum } from "../graph/evaluate/index.ts";
import type { Tensor } from "../graph/evaluate/index.ts";
import { moduleOf } from "../graph/ops/node.ts";
import type { GraphRegion } from "../graph/ops/node.ts";
import type { RunLimits } from "../support/run-limits.ts";

export interface DeferredRun {
  readonly graph: GraphRegion;
  readonly inputs: readonly (Tensor | DeferredResult)[];
  readonly limits: RunLimits;
  results?: readonly Tensor[];
}

export interface DeferredResult {
  readonly run: DeferredRun;
  readonly index: number;
}

/** The runs that a result takes, each after those it needs itself. */
function runsFor({ run }: DeferredResult): readonly DeferredRun[] {
  const runs: DeferredRun[] = [];
  const seen = new Set<DeferredRun>();
  const pending: { readonly next: DeferredRun; readonly isReady: boolean }[] = [
    { next: run, isReady: false },
  ];
  for (let each = pending.pop(); each !== undefined; each = pending.pop()) {
    const { next, isReady } = each;
    if (isReady) {
      runs.push(next);
      continue;
    }
    if (next.results !== undefined || seen.has(next)) continue;
    seen.add(next);
    pending.push({ next, isReady: true });
    for (const input of next.inputs)
      if ("run" in input) pending.push({ next: input.run, isReady: false });
  }
  return runs;
}

function tensorOf(input: Tensor | DeferredResult): Tensor {
  if (!("run" in input)) return input;
  const found = input.run.results?.[input.index];
  if (found === undefined) throw new Error("a run has no such result");
  return found;
}

/** A result, computed at once where it is not there yet. */
export function computeNow(result: DeferredResult): Tensor {
  for (const run of runsFor(result))
    run.results = evaluate(
      moduleOf(run.graph),
      "main",
      run.inputs.map(tensorOf),
      run.limits,
    ).filter(isTensorDatum);
  return tensorOf(result);
}

/** The same yielding to the event loop. */
export async function computeWithBreaks(result: DeferredResult): Promise<Tensor> {
  for (const run of runsFor(result)) {
    const inputs = run.inputs.map(tensorOf);
    const results = await evaluateWithBreaks(moduleOf(run.graph), "main", inputs, run.limits);
    run.results = results.filter(isTensorDatum);
  }
  return tensorOf(result);
}
