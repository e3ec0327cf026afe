/**
 * Which loops the compiler pipelines, and what of them: a loop with a `dot` in a kernel of one program thread, and those
 * of its loads whose windows follow from the index alone, so that they are known steps ahead.
 *
 *   loop %0, %steps, %1 initial(%zeros) body(%k, %sum) {
 *     %a = load (slice_ref %left …, %k · 64)        copied ahead: an input, 16 bytes at a time
 *     %b = load (slice_ref %right %k · 64, …)       copied ahead
 *     %t = load (slice_ref %table, %n)              stays: the same in every step
 *     %next = dot %a, %b accumulator(%sum)          in flight: the sum is touched by nothing else, and not promoted
 *     yield %next
 *   }
 *
 * Nothing else may happen in the loop that others see, so that the order of steps and copies does not matter; inputs
 * are not written while the kernel runs.
 */
import { copyGrain } from "../../ir/infer/asynchronous.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../../ir/node.ts";
import { countUses } from "../../ir/rewrite/analysis.ts";
import { chosenAmong, hasEffect, onlyComputes } from "../../ir/traits.ts";
import { operandValues, regionList, walkOps, yieldedValues, refOf } from "../../ir/traverse.ts";
import type { RefType } from "../../ir/types.ts";
import { contiguousAxis, globalAlignment } from "../../layout/model/access-cost.ts";
import {
  isPromoted,
  tensorShapeProblem,
  wgmmaShapeProblem,
} from "../../layout/model/product-instructions.ts";
import { windowsOf } from "../../layout/model/windows.ts";
import type { Windows } from "../../layout/model/windows.ts";
import { unmarked } from "../../passes/profile-marks.ts";
import { packedBytes } from "../../formats/dtype.ts";
import type { ProductMemory } from "../../targets/product-instructions.ts";
import type { Target } from "../../targets/target.ts";

/** What a block of a loop may be to be copied ahead: a window that one tensor copy takes as it is. */
const mostAxes = 5;
const longest = 256;

/** A load whose blocks are copied ahead. */
export interface CopiedLoad {
  readonly load: Op<"load">;
  /** What its array is called. */
  readonly name: string;
  /** The window that is copied: what is loaded, before it is transposed. */
  readonly window: Value;
  readonly type: RefType;
  /** How the block in shared memory is turned to be what is loaded. */
  readonly transposes: readonly Op<"transpose_ref">[];
  /** What computes the window from the index, in order. */
  readonly address: readonly AnyOp[];
  readonly bytes: number;
}

/** A product whose sum stays in flight from step to step. */
export interface FlyingProduct {
  readonly dot: Op<"dot">;
  /** Which of the loop's carries is the sum. */
  readonly carry: number;
  /** Where it is added up. */
  readonly sums: ProductMemory;
  /** Factors that are computed, and stored in shared memory for an instruction that reads them there. */
  readonly stored: readonly Value[];
}

export interface LoopPlan {
  readonly loop: Op<"loop">;
  readonly step: number;
  readonly copies: readonly CopiedLoad[];
  readonly products: readonly FlyingProduct[];
}

/** The loops that gain from copies ahead, outermost first; none lies within another. */
export function planLoops(kernel: Kernel, target: Target): readonly LoopPlan[] {
  return kernel.threads.length === 1 ? new Planner(kernel, target).region(kernel.body) : [];
}

/** Why a loop that the compiler has left as it is cannot have copies ahead. */
export function whyNotPlanned(kernel: Kernel, target: Target, loop: Op<"loop">): string {
  if (kernel.threads.length > 1) return "the kernel has several program threads";
  const plan = new Planner(kernel, target).plan(loop);
  return typeof plan === "string"
    ? plan
    : "it runs in single warps, or within a loop that has them";
}

class Planner {
  readonly #target: Target;
  readonly #warps: number;
  readonly #windows: Windows;
  readonly #uses: ReadonlyMap<Value, number>;
  /** Inputs, by what they are called. */
  readonly #inputs: Map<Value, string>;

  constructor(kernel: Kernel, target: Target) {
    this.#target = target;
    this.#warps = kernel.warps;
    this.#windows = windowsOf(kernel);
    this.#uses = countUses(kernel.body);
    const inputs = kernel.parameters.filter(({ role }) => role === "input");
    this.#inputs = new Map(inputs.map(({ value, name }) => [value, name]));
    walkOps(kernel.body, (op) => {
      const [chosen] = op.results;
      const names = chosenAmong(op).map((array) => this.#inputs.get(array));
      const [name] = names;
      if (chosen !== undefined && name !== undefined && !names.includes(undefined))
        this.#inputs.set(chosen, name);
    });
  }

  region({ ops }: Region): readonly LoopPlan[] {
    return ops.flatMap((op) => {
      if (op.kind === "warps") return [];
      const plan = op.kind === "loop" ? this.plan(op) : "no loop";
      return typeof plan === "string"
        ? regionList(op).flatMap((region) => this.region(region))
        : [plan];
    });
  }

  /** What of the loop is copied ahead, or why nothing is. */
  plan(loop: Op<"loop">): LoopPlan | string {
    const { facts } = this.#windows;
    const { body } = loop.regions;
    const step = facts.constant(loop.operands.step);
    if (!body.ops.some(({ kind }) => kind === "dot")) return "it has no dot";
    if (loop.attributes.depth === 1) return "it asks for none";
    if (loop.attributes.breaks === true) return "it may break";
    if (hasEffect(unmarked(loop))) return "it stores, waits or does something else that others see";
    if (step === undefined || step < 1 || facts.of(loop.operands.lower).least < 0n)
      return "it does not count up by a known step from a number that is known not to be negative";
    const loads = body.ops.flatMap((op) => (op.kind === "load" ? [this.#copied(op, body)] : []));
    const copies = loads.flatMap((load) => (typeof load === "string" ? [] : [load]));
    if (copies.length === 0)
      return loads.find((load) => typeof load === "string") ?? "it loads nothing";
    return { loop, step, copies, products: this.#flying(loop, copies) };
  }

  /** A load whose blocks are copied ahead, or why they are not. */
  #copied(load: Op<"load">, body: Region): CopiedLoad | string {
    const { indices, where, fill } = load.operands;
    if (indices.length > 0 || where !== undefined || fill !== undefined)
      return "it loads elements one by one, or under a condition";
    const transposes: Op<"transpose_ref">[] = [];
    let window = load.operands.ref;
    for (;;) {
      const op = this.#windows.definitions.get(window);
      if (op?.kind !== "transpose_ref") break;
      transposes.unshift(op);
      window = op.operands.ref;
    }
    const type = refOf(window);
    const address = this.#address(window, body);
    const name = this.#inputs.get(this.#windows.of(window).root);
    if (address === undefined) return "where it loads from does not follow from its index alone";
    if (name === undefined) return "what it loads is no input, so that somebody may write it";
    if (!this.#isCopyable(window, type))
      return `rows of ${name} are not known to begin at multiples of 16 bytes`;
    const bytes = packedBytes(
      type.dtype,
      type.shape.reduce<number>((all, n) => all * Number(n), 1),
    );
    return { load, name, window, type, transposes, address, bytes };
  }

  /** The ops of the body that compute the window; undefined where more than the index, or none of it, decides. */
  #address(window: Value, body: Region): readonly AnyOp[] | undefined {
    const [index, ...carries] = body.parameters;
    const needed = new Set<Value>([window]);
    const ops = body.ops.toReversed().filter((op) => {
      if (!op.results.some((result) => needed.has(result))) return false;
      for (const value of operandValues(op)) needed.add(value);
      return true;
    });
    const known = ops.every((op) => onlyComputes(op) && regionList(op).length === 0);
    const moves = index !== undefined && needed.has(index);
    return known && moves && !carries.some((carry) => needed.has(carry))
      ? ops.toReversed()
      : undefined;
  }

  /** Whether rows are copied 16 bytes at a time, by TMA or by lanes. */
  #isCopyable(ref: Value, { space, dtype, shape }: RefType): boolean {
    if (space !== "gmem" || dtype.bits < 8) return false;
    const window = this.#windows.of(ref);
    if (window.space !== "gmem") return false;
    const bytes = dtype.bits / 8;
    return (
      shape.every((extent) => typeof extent === "number" && extent <= longest) &&
      shape.length <= mostAxes &&
      (Number(shape.at(-1) ?? 0) * bytes) % copyGrain === 0 &&
      contiguousAxis(window) === shape.length - 1 &&
      globalAlignment(window) * bytes >= copyGrain
    );
  }

  /** What a factor is the transpose of, where that is used for nothing else. */
  #turnedSource(value: Value, once: (value: Value) => boolean): Value | undefined {
    const op = this.#windows.definitions.get(value);
    if (op?.kind !== "transpose" || op.attributes.permutation.join() !== "1,0") return undefined;
    return once(op.operands.source) ? op.operands.source : undefined;
  }

  /** Products that wgmma or tcgen05 makes of copied blocks, onto a carry that is used for nothing else. */
  #flying({ regions: { body } }: Op<"loop">, copies: readonly CopiedLoad[]): FlyingProduct[] {
    const copied = new Set(copies.flatMap(({ load }) => load.results));
    const [, ...carries] = body.parameters;
    const once = (value: Value | undefined): value is Value =>
      value !== undefined && this.#uses.get(value) === 1;
    return body.ops.flatMap((op) => {
      if (op.kind !== "dot") return [];
      const inRegisters =
        !isPromoted(op) && wgmmaShapeProblem(op, this.#target, this.#warps) === undefined;
      const inTensorMemory = tensorShapeProblem(op, this.#target, this.#warps) === undefined;
      if (!inRegisters && !inTensorMemory) return [];
      const sums = inRegisters ? "registers" : "tensor";
      const { left, right, accumulator } = op.operands;
      const carry = accumulator === undefined ? -1 : carries.indexOf(accumulator);
      const [result] = op.results;
      const alone = once(accumulator) && once(result) && yieldedValues(body)[carry] === result;
      if (!alone) return [];
      if (!inRegisters) {
        const isCopied = (value: Value): boolean =>
          once(value) && copied.has(this.#turnedSource(value, once) ?? value);
        const stored = [left, right].filter((value) => !isCopied(value));
        return [{ dot: op, carry, sums, stored }];
      }
      if (!copied.has(right) || !once(right) || (copied.has(left) && !once(left))) return [];
      return [{ dot: op, carry, sums, stored: [] }];
    });
  }
}
