/**
 * Runs every step, even when others throw, as for releasing resources: the first
 * failure is thrown after the last step.
 */
export function runEach(steps: Iterable<() => void>): void {
  let failure: { readonly error: unknown } | undefined;
  for (const step of steps)
    try {
      step();
    } catch (error) {
      failure ??= { error };
    }
  if (failure !== undefined) throw failure.error;
}

/** What all of them give once the last has ended; where some fail, the first failure, with what the others gave handed to `giveBack`. */
export async function allOrNone<T>(
  works: readonly Promise<T>[],
  giveBack: (results: readonly T[]) => void = () => undefined,
): Promise<readonly T[]> {
  const settled = await Promise.allSettled(works);
  const results = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  const failed = settled.find((each) => each.status === "rejected");
  if (failed === undefined) return results;
  giveBack(results);
  throw failed.reason;
}
