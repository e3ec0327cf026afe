/**
 * Products of sm_100a and its relatives: one lane of a thread starts them, and tensor memory holds what they add up.
 *
 *   tcgen05Mma(sums, a, b, { adds: step.gt(0) })     the first product takes the place of what is there
 *   tcgen05Commit(done)                              arrives when all of them are over
 *   done.wait()
 *   sums.load()
 *
 * Products of a thread that add up in one place follow each other; whatever else touches their operands or sums waits for them. What one thread does
 * by itself, the compiler orders; between threads a barrier does. Two blocks of a cluster can make a product together, of twice the rows (`pair`).
 */
import type { DTypeName } from "../formats/dtype.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { barrierOperands } from "./barriers.ts";
import type { Barrier } from "./barriers.ts";
import { constant } from "./create.ts";
import { bool } from "../formats/dtype.ts";
import { Scalar } from "./elementwise.ts";
import { Ref } from "./ref.ts";
import { multicastAxes } from "./multicast.ts";
import { emit } from "./trace.ts";
import { useValue, wrongKind } from "./traced.ts";

/** Options of what one block of a pair does for both. */
export interface PairOptions {
  /** Both blocks do it, each with its own memory, at the same places. */
  readonly pair?: boolean;
}

/** The attribute that says so. */
export function pairOf(
  name: string,
  { pair = false }: PairOptions,
  location: Location,
): { readonly pair?: true } {
  if (typeof pair !== "boolean") wrongKind(`pair of ${name}`, "true or false", pair, location);
  return pair ? { pair } : {};
}

/** Options of `tcgen05Mma`. */
export interface Tcgen05MmaOptions {
  /** Where it is false, the product takes the place of what is in `sums` instead of being added to it. */
  readonly adds?: Scalar<"bool"> | boolean;
  /** Scales of narrow factors in tensor memory, for each block along k: of the rows of a, and of the columns of b. */
  readonly scales?: readonly [aScales: Ref, bScales: Ref];
  /** Elements along k that share a scale: 32 with scales of f8e8m0fnu, and 16 with those of f8e4m3fn, unless given. */
  readonly block?: 16 | 32;
  /**
   * A product of two blocks of a cluster: each has its own rows of a and of the sums, and half of the columns of b. One of them starts it, for both.
   */
  readonly pair?: boolean;
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
  requireKnownOptions(
    "tcgen05Mma",
    options,
    ["adds", "scales", "block", "pair"],
    "TW1033",
    location,
  );
  const { adds = true, scales, block } = options;
  const pair = pairOf("tcgen05Mma", options, location);
  requireScales(options, location);
  if (typeof adds !== "boolean" && !(adds instanceof Scalar))
    wrongKind("adds of tcgen05Mma", "true, false or a bool scalar", adds, location);
  const condition = typeof adds === "boolean" ? (adds ? undefined : constant(bool, false)) : adds;
  const operands = {
    sums: useValue(sums, location),
    a: useValue(a, location),
    b: useValue(b, location),
    adds: condition && useValue(condition, location),
    aScales: scales && useValue(scales[0], location),
    bScales: scales && useValue(scales[1], location),
  };
  const attributes = { ...pair, ...(block !== undefined && { block }) };
  emit("tcgen05_mma", operands, attributes, location);
}

function requireScales({ scales, block }: Tcgen05MmaOptions, location: Location): void {
  const isPair = Array.isArray(scales) && scales.length === 2;
  if (scales !== undefined && !(isPair && scales.every((each) => each instanceof Ref)))
    wrongKind("scales of tcgen05Mma", "two windows, of a and of b", scales, location);
  const isBlock = scales !== undefined && (block === 16 || block === 32);
  if (block !== undefined && !isBlock)
    wrongKind("block of tcgen05Mma", "16 or 32, with scales", block, location);
}

/**
 * Starts a copy of scales from shared memory, [rows / 128, blocks / 4, 32, 16], to tensor memory, [rows, blocks]: atoms of 128 rows by 4 blocks, as
 * cuBLAS and XLA have them. Products that this thread starts behind it find them there; everybody else waits for a commit.
 */
export function tcgen05Copy<D extends DTypeName>(
  source: Ref<D>,
  destination: Ref<D>,
  options: PairOptions = {},
): void {
  const location = captureLocation();
  requireKnownOptions("tcgen05Copy", options, ["pair"], "TW1033", location);
  const pair = pairOf("tcgen05Copy", options, location);
  for (const [role, ref] of Object.entries({ source, destination }))
    if (!(ref instanceof Ref)) wrongKind(`the ${role} of tcgen05Copy`, "a window", ref, location);
  const operands = {
    source: useValue(source, location),
    destination: useValue(destination, location),
  };
  emit("tcgen05_copy", operands, pair, location);
}

/** Options of `tcgen05Commit`. */
export interface Tcgen05CommitOptions {
  /** The axis of the cluster, or the axes, along which the barrier of every block is arrived at. */
  readonly multicast?: string | readonly string[];
}

/** Arrives on a barrier once all products that this thread has started before are over. */
export function tcgen05Commit(barrier: Barrier, options: Tcgen05CommitOptions = {}): void {
  const location = captureLocation();
  requireKnownOptions("tcgen05Commit", options, ["multicast"], "TW1033", location);
  const axes = multicastAxes(options.multicast, location);
  const attributes = axes.length === 0 ? {} : { multicast: [...axes] };
  emit("tcgen05_commit", barrierOperands(barrier, location), attributes, location);
}
