/** What the words of an opcode promise about its access: whether it is strong, acquires or releases, and how far it reaches. */
import { scopeOf } from "../../happens-before/memory-scopes.ts";
import type { Scope } from "../../happens-before/memory-scopes.ts";

export interface AccessSemantics {
  /** Whether it may meet others of its kind without an order between them. */
  readonly strong: boolean;
  readonly acquires: boolean;
  readonly releases: boolean;
  readonly reads: boolean;
  readonly writes: boolean;
  /** Whether what it writes follows from what was there, as an atomic's does. */
  readonly updates: boolean;
  readonly scope: Scope;
}

const strongModifiers = ["relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"];

export function semanticsOf(opcode: string): AccessSemantics {
  const [root = "", ...modifiers] = opcode.split(".");
  const isAtomic = root === "atom" || root === "red";
  return {
    strong: isAtomic || modifiers.some((modifier) => strongModifiers.includes(modifier)),
    acquires: modifiers.includes("acquire") || modifiers.includes("acq_rel"),
    releases: modifiers.includes("release") || modifiers.includes("acq_rel"),
    reads: root !== "st" && root !== "red",
    writes: root !== "ld" && root !== "ldu",
    updates: isAtomic,
    scope: scopeOf(modifiers),
  };
}
