/**
 * Drops ops whose results nothing needs, and results and carries of ops with regions that nothing needs.
 *
 * Liveness is found optimistically, from what has an effect backwards: nothing is needed until
 * something needed uses it. So a carry that only computes itself goes away:
 *
 *   %r, %s = loop … initial(%a, %b) body(%i, %x, %y) {
 *     store %ref, %x                  has an effect: the loop and %x's slot are needed
 *     %n = binary %y, %y {fn = add}   needed only by slot 1, whose result %s nobody uses
 *     yield %x, %n
 *   }
 */
import type { AnyOp, Kernel, Region, Value } from "../ir/node.ts";
import { keepSlots, slotsOf } from "../ir/rewrite/slots.ts";
import type { Slot } from "../ir/rewrite/slots.ts";
import { withoutUnused } from "../ir/rewrite/unused-results.ts";
import { changeBody, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { operandValues, regionList, yieldedValues } from "../ir/traverse.ts";
import { hasEffect, reusedBy } from "../ir/traits.ts";

export function deadCode(kernel: Kernel): Kernel {
  const liveness = new Liveness();
  liveness.enter(kernel.body, undefined);
  liveness.mark();
  return changeBody(kernel, liveness.sweep(kernel.body));
}

class Liveness {
  readonly #liveValues = new Set<Value>();
  readonly #liveOps = new Set<AnyOp>();
  readonly #definitions = new Map<Value, AnyOp>();
  /** The slot of a result or of a parameter that receives a carry. */
  readonly #slots = new Map<Value, Slot>();
  /** The op around the region that a parameter or op belongs to. */
  readonly #parents = new Map<Value | AnyOp, AnyOp>();
  readonly #pending: Value[] = [];
  readonly #roots: AnyOp[] = [];

  /** Notes what defines and contains what, and the ops that have effects. */
  enter(region: Region, parent: AnyOp | undefined): void {
    if (parent !== undefined)
      for (const parameter of region.parameters) this.#parents.set(parameter, parent);
    for (const op of region.ops) {
      if (parent !== undefined) this.#parents.set(op, parent);
      for (const result of op.results) this.#definitions.set(result, op);
      for (const slot of slotsOf(op))
        for (const value of [slot.result, ...slot.parameters]) this.#slots.set(value, slot);
      const regions = regionList(op);
      if (regions.length === 0 && hasEffect(op)) this.#roots.push(op);
      for (const inner of regions) this.enter(inner, op);
    }
  }

  mark(): void {
    for (const op of this.#roots) this.#markOp(op);
    for (let value = this.#pending.pop(); value !== undefined; value = this.#pending.pop())
      this.#follow(value);
  }

  #markValue(value: Value): void {
    if (this.#liveValues.has(value)) return;
    this.#liveValues.add(value);
    this.#pending.push(value);
  }

  /** An op that runs needs its operands but for carries, which their slots need, and what contains it. */
  #markOp(op: AnyOp): void {
    if (this.#liveOps.has(op)) return;
    this.#liveOps.add(op);
    const carried = regionList(op).length > 0 ? reusedBy(op) : [];
    const operands = operandValues(op);
    for (const value of operands.slice(0, operands.length - carried.length)) this.#markValue(value);
    if (op.kind === "while") yieldedValues(op.regions.condition).forEach((v) => this.#markValue(v));
    const parent = this.#parents.get(op);
    if (parent !== undefined) this.#markOp(parent);
  }

  #follow(value: Value): void {
    const op = this.#definitions.get(value) ?? this.#parents.get(value);
    if (op !== undefined) this.#markOp(op);
    const slot = this.#slots.get(value);
    if (slot === undefined) return;
    const { result, initial, parameters, yielded } = slot;
    for (const needed of [result, initial ?? [], parameters, yielded].flat())
      this.#markValue(needed);
  }

  /** The region with what is live. */
  sweep(region: Region): Region {
    const isLive = (value: Value): boolean => this.#liveValues.has(value);
    const ops = region.ops
      .filter((op) => op.kind === "yield" || this.#liveOps.has(op))
      .map((op) => {
        const slim = withoutUnused(
          keepSlots(op, ({ result }) => isLive(result)),
          isLive,
        );
        return changeRegions(slim, (inner) => this.sweep(inner));
      });
    return changeOps(region, ops);
  }
}
