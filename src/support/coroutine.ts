/** Work in steps: it yields between them, and whoever drives it may do something else before it goes on. */
export type Coroutine<T> = Generator<void, T>;

/** Runs it to its end, and returns the result. */
export function runToCompletion<T>(work: Coroutine<T>): T {
  let { done, value } = work.next();
  while (done !== true) ({ done, value } = work.next());
  return value as T;
}
