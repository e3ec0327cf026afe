/**
 * Products of sm_100a and its relatives: one lane of a thread starts them, and tensor memory holds what they add up.
 *
 *   tcgen05Mma(sums, a, b, { adds: step.gt(0) })     the first product takes the place of what is there
 *   tcgen05Commit(done)                              arrives when all of them are over
 *   done.wait()
 *   sums.load()
 *
 * Products of a thread that add up in one place follow each other; whatever else touches their operands or sums waits for them. What one thread does
 * by itself, the compiler orders; between threads a barrier does.
 */
import type { DTypeName } from "../formats/dtype.ts";
import { captureLocation } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { barrierOperands } from "./barriers.ts";
import type { Barrier } from "./barriers.ts";
import { constant } from "./create.ts";
import { bool } from "../formats/dtype.ts";
import { Scalar } from "./elementwise.ts";
import { Ref } from "./ref.ts";
import { emit } from "./trace.ts";
import { useValue, wrongKind } from "./traced.ts";

/** Options of `tcgen05Mma`. */
export interface Tcgen05MmaOptions {
  /** Where it is false, the product takes the place of what is in `sums` instead of being added to it. */
  readonly adds?: Scalar<"bool"> | boolean;
}

/**
 * Starts adding the product of `a`, [m, k], and `b`, [k, n], to `sums` in tensor memory, [m, n]. `a` lies in shared or tensor memory, `b` in shared
 * memory; neither may change before a commit has told that the product is over.
 */
export function tcgen05Mma<D extends DTypeName>(
  sums: Ref<D>,
  a: Ref,
  b: Ref,
  options: Tcgen05MmaOptions = {},
): void {
  const location = captureLocation();
  for (const [role, ref] of Object.entries({ sums, a, b }))
    if (!(ref instanceof Ref)) wrongKind(`${role} of tcgen05Mma`, "a window", ref, location);
  requireKnownOptions("tcgen05Mma", options, ["adds"], "TW1033", location);
  const { adds = true } = options;
  if (typeof adds !== "boolean" && !(adds instanceof Scalar))
    wrongKind("adds of tcgen05Mma", "true, false or a bool scalar", adds, location);
  const condition = typeof adds === "boolean" ? (adds ? undefined : constant(bool, false)) : adds;
  const operands = {
    sums: useValue(sums, location),
    a: useValue(a, location),
    b: useValue(b, location),
    adds: condition && useValue(condition, location),
  };
  emit("tcgen05_mma", operands, {}, location);
}

/** Arrives on a barrier once all products that this thread has started before are over. */
export function tcgen05Commit(barrier: Barrier): void {
  const location = captureLocation();
  emit("tcgen05_commit", barrierOperands(barrier, location), {}, location);
}
