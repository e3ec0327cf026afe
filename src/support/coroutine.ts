/** Work that is done piece by piece: between two pieces whoever goes through them may do something else. */
export type Pieces<T> = Generator<void, T>;

/** Goes through all of them, and gives the result. */
export function finished<T>(work: Pieces<T>): T {
  let { done, value } = work.next();
  while (done !== true) ({ done, value } = work.next());
  return value as T;
}
