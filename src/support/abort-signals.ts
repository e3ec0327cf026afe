/**
 * Listening to signals. Many runs may share one signal, of which a page has one for all it does; Node warns of a signal
 * that more than ten listen to, so that each signal is listened to once, on behalf of all.
 *
 *   signal ──one listener──▶ run 1, run 2, … run 500
 */

/** Who waits for a signal, and what ends listening to it. */
interface Audience {
  readonly callbacks: Set<() => void>;
  readonly leave: () => void;
}

const audiences = new WeakMap<AbortSignal, Audience>();

function audienceOf(signal: AbortSignal): Audience {
  const known = audiences.get(signal);
  if (known !== undefined) return known;
  const callbacks = new Set<() => void>();
  const hear = (): void => {
    for (const callback of [...callbacks]) callback();
  };
  signal.addEventListener("abort", hear);
  const leave = (): void => {
    signal.removeEventListener("abort", hear);
    audiences.delete(signal);
  };
  const made = { callbacks, leave };
  audiences.set(signal, made);
  return made;
}

/** Calls back when a signal is aborted, at once where it is already; gives what stops listening. */
export function onAbort(signal: AbortSignal, callback: () => void): () => void {
  if (signal.aborted) {
    callback();
    return () => undefined;
  }
  // Each listener counts once, even where the same function listens twice.
  const own = (): void => {
    callback();
  };
  const { callbacks, leave } = audienceOf(signal);
  callbacks.add(own);
  return () => {
    if (callbacks.delete(own) && callbacks.size === 0) leave();
  };
}
