/** Where `debugBreak` stops: a frame of its own, with only what the user wants to see in scope. */
import type { Decoded } from "./values.ts";

export function breakHere(
  values: { readonly [name: string]: Decoded | undefined },
  thread: string,
  block: readonly number[],
  iterations: readonly number[],
): void {
  // Naming them keeps them in scope for the debugger.
  void [values, thread, block, iterations];
  debugger;
}
