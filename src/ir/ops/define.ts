/**
 * Keeps an op family's entries as literal types while checking their form; traits may name what their own op has
 * alone. Most ops begin with one of two sets of traits and say in what they differ:
 *
 *   transpose: { …, traits: computes }
 *   store: { …, traits: { ...acts, accesses: [lanes("write", "ref")] } }
 */
import type { Access, OpSchema, Traits } from "../schema.ts";

type Checked<T> = {
  readonly [K in keyof T]: T[K] extends { readonly operands: infer P; readonly attributes: infer A }
    ? OpSchema<keyof P & string, keyof A & string>
    : OpSchema;
};

export function defineOps<const T extends { readonly [kind: string]: OpSchema }>(
  entries: T & Checked<T>,
): T {
  return Object.freeze(entries);
}

/** An op that depends on its operands alone and makes a value of its own. */
export const computes = {
  accesses: [],
  results: "new",
  elements: "mixed",
  synchronizes: [],
  releases: "nobody",
  acquires: "nobody",
  scratch: "never",
  stands: "anywhere",
  regions: "none",
  ends: "always",
  unrolls: "freely",
  may: "anything",
} as const satisfies Traits<never, never>;

/** An op that computes element by element. */
export const computesEach = { ...computes, elements: "each" } as const;

/** An op that is there for what it does. */
export const acts = { ...computes, results: "none", may: "nothing" } as const;

/** An op that makes memory, barriers or counters. */
export const allocates = { ...computes, results: "memory", stands: "body", may: "drop" } as const;

/** All lanes access the operand's memory themselves. */
export function lanes<const O extends string>(mode: Access["mode"], of: O) {
  return { of, mode, actor: "threads", proxy: "generic", done: "at once" } as const;
}
