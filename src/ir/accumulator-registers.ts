/**
 * Which accumulators of wgmma have the same registers. A product, a wait and a loop leave an accumulator where it is; so do branches
 * that all give the same one, whatever each adds to it. Branches that give different ones move their sums into registers of the result:
 *
 *   %2 = wgmma %1, …                       %2: %1
 *   %4 = if %c { %3 = wgmma %2, …          %3: %1
 *     yield %3 } { yield %2 }              %4: %1
 *   %6 = if %c { %5 = accumulator          %5: %5
 *     yield %5 } { … }                     %6: %6
 */
import { noSlots } from "./make-op.ts";
import type { AnyOp, Region, Value } from "./node.ts";
import { slotsOf } from "./rewrite/slots.ts";
import { repeats, traitsOf } from "./traits.ts";
import { regionList } from "./traverse.ts";
import { visitEach } from "../support/visit-each.ts";

/** The accumulator that first had the registers of each. */
export class AccumulatorRegisters {
  readonly #first = new Map<Value, Value>();

  constructor(body: Region) {
    this.#enter(body);
  }

  of(value: Value): Value {
    return this.#first.get(value) ?? value;
  }

  #enter({ ops }: Region): void {
    visitEach(ops, (op) => {
      if (op.kind === "wgmma" || op.kind === "wgmma_wait")
        this.#keep(op.operands.accumulator, op.results[0]);
      else if (op.regions !== noSlots) this.#regions(op);
    });
  }

  #regions(op: AnyOp): void {
    const slots = slotsOf(op).filter(({ result }) => result.type.kind === "inflight");
    if (repeats(op))
      for (const { initial, parameters, result } of slots)
        for (const value of [...parameters, result])
          if (initial !== undefined) this.#keep(initial, value);
    for (const region of regionList(op)) this.#enter(region);
    const { regions } = traitsOf(op);
    if (regions !== "one of" && regions !== "once") return;
    for (const { yielded, result } of slots) {
      const [first, ...others] = yielded.map((value) => this.of(value));
      // What a case by itself gives is made in it, perhaps.
      const isOuter = regions === "once" || others.length > 0;
      if (first !== undefined && isOuter && others.every((other) => other === first))
        this.#keep(first, result);
    }
  }

  #keep(from: Value, to: Value | undefined): void {
    if (to?.type.kind === "inflight") this.#first.set(to, this.of(from));
  }
}
