/**
 * Functions of floats whose results on a GPU may differ from the simulator's, by the bounds that they declare; and by type the others, so that a
 * table of references of these asks for each.
 */
import type { BinaryIn, UnaryIn } from "../../src/formats/arithmetic/functions.ts";
import { mathBounds } from "../../src/ptx/math/index.ts";

/** Functions that have a bound; that of `rem` is 0. */
type BoundedFunction = Exclude<keyof typeof mathBounds.f32, "rem">;

/** Functions of one float, and of two, that give one number on every device. */
export type ExactUnary = Exclude<UnaryIn<"float" | "number">, BoundedFunction>;
export type ExactBinary = Exclude<BinaryIn<"float" | "number">, BoundedFunction>;
/** Functions of one float of which GPUs have a bound. */
export type BoundedUnary = Extract<UnaryIn<"float" | "number">, BoundedFunction>;

export const inexactFunctions: ReadonlySet<string> = new Set(
  Object.entries(mathBounds.f32).flatMap(([fn, { ulp }]) => (ulp > 0 ? [fn] : [])),
);
