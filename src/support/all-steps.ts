/**
 * Steps that are all to be taken, whatever becomes of the others, as when everything is given back: the first
 * failure is thrown once the last step has had its turn.
 */
export function takeAllSteps(steps: Iterable<() => void>): void {
  let failure: { readonly error: unknown } | undefined;
  for (const step of steps)
    try {
      step();
    } catch (error) {
      failure ??= { error };
    }
  if (failure !== undefined) throw failure.error;
}
