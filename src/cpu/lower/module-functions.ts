/** Functions of a kernel's module that several of its ops call: products of a shape, sorts of a format. */
import type { Callee } from "../loops/ir.ts";
import type { Lowering } from "./lowering.ts";

const functions = new WeakMap<Lowering, Map<string, Callee>>();

/** A function that is defined where it is first wanted, known by its key. */
export function definedOnce(lowering: Lowering, key: string, define: () => Callee): Callee {
  const known = functions.get(lowering) ?? new Map<string, Callee>();
  functions.set(lowering, known);
  const found = known.get(key) ?? define();
  known.set(key, found);
  return found;
}
