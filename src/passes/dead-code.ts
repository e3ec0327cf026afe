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
import { noSlots } from "../ir/make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../ir/node.ts";
import { definingOps } from "../ir/rewrite/analysis.ts";
import { keepSlots, slotsOf } from "../ir/rewrite/slots.ts";
import type { Slot } from "../ir/rewrite/slots.ts";
import { withoutUnused } from "../ir/rewrite/unused-results.ts";
import { changeBody, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { breakFlag, operandValues, regionList, yieldedValues } from "../ir/traverse.ts";
import { hasEffect, repeats, reusedBy } from "../ir/traits.ts";
import { visitEach } from "../support/visit-each.ts";

export function deadCode(kernel: Kernel): Kernel {
  const liveness = new Liveness(definingOps(kernel.body));
  liveness.enter(kernel.body, undefined);
  liveness.mark();
  return changeBody(kernel, liveness.sweep(kernel.body));
}

class Liveness {
  readonly #liveValues = new Set<Value>();
  readonly #liveOps = new Set<AnyOp>();
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  /** The slot of a result or of a parameter that receives a carry. */
  readonly #slots = new Map<Value, Slot>();
  /** The op around the region that a parameter or op belongs to. */
  readonly #parents = new Map<Value | AnyOp, AnyOp>();
  readonly #pending: Value[] = [];
  readonly #roots: AnyOp[] = [];

  constructor(definitions: ReadonlyMap<Value, AnyOp>) {
    this.#definitions = definitions;
  }

  /** Notes what contains what, and the ops that have effects. */
  enter(region: Region, parent: AnyOp | undefined): void {
    if (parent !== undefined)
      region.parameters.forEach((parameter) => this.#parents.set(parameter, parent));
    visitEach(region.ops, (op) => {
      if (parent !== undefined) this.#parents.set(op, parent);
      const regions = regionList(op);
      if (regions.length === 0) {
        if (hasEffect(op)) this.#roots.push(op);
        return;
      }
      for (const slot of slotsOf(op)) {
        this.#slots.set(slot.result, slot);
        for (const parameter of slot.parameters) this.#slots.set(parameter, slot);
      }
      for (const inner of regions) this.enter(inner, op);
    });
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
    const carried = regionList(op).length > 0 ? reusedBy(op).length : 0;
    const operands = operandValues(op);
    const own = carried === 0 ? operands : operands.slice(0, operands.length - carried);
    visitEach(own, (value) => this.#markValue(value));
    if (op.kind === "while") yieldedValues(op.regions.condition).forEach((v) => this.#markValue(v));
    const breaks = repeats(op) ? breakFlag(op) : undefined;
    if (breaks !== undefined) this.#markValue(breaks);
    const parent = this.#parents.get(op);
    if (parent !== undefined) this.#markOp(parent);
  }

  #follow(value: Value): void {
    const op = this.#definitions.get(value) ?? this.#parents.get(value);
    if (op !== undefined) this.#markOp(op);
    const slot = this.#slots.get(value);
    if (slot === undefined) return;
    const { result, initial, parameters, yielded } = slot;
    this.#markValue(result);
    if (initial !== undefined) this.#markValue(initial);
    parameters.forEach((parameter) => this.#markValue(parameter));
    yielded.forEach((each) => this.#markValue(each));
  }

  /** The region with what is live. */
  sweep(region: Region): Region {
    const isLive = (value: Value): boolean => this.#liveValues.has(value);
    const isKept = ({ result }: Slot): boolean => isLive(result);
    const sweep = (inner: Region): Region => this.sweep(inner);
    const ops: AnyOp[] = [];
    visitEach(region.ops, (op) => {
      if (op.kind !== "yield" && !this.#liveOps.has(op)) return;
      const slim = op.regions === noSlots ? op : keepSlots(op, isKept);
      ops.push(changeRegions(withoutUnused(slim, isLive), sweep));
    });
    return changeOps(region, ops);
  }
}
