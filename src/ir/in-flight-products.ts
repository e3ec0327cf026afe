/**
 * Which products of tensor cores may be in flight at each point of a program thread. Products complete in the order in
 * which they were started, so a count is enough: how many were started since the last one of an accumulator.
 *
 *   %1 = wgmma %0, …                     %1: 0
 *   %3 = wgmma %2, …                     %1: 1   %3: 0
 *   %4 = wgmma_wait %1 {pending = 1}     over    %3: 0      all with a count of 1 or more
 *   %5 = wgmma_wait %3 {pending = 0}             over
 *
 * Where paths join, branches too, the smaller count holds, since a wait then leaves more of them in flight. A loop is
 * followed until the counts of its carried values no longer shrink.
 */
import { AccumulatorRegisters } from "./accumulator-registers.ts";
import { noSlots } from "./make-op.ts";
import type { AnyOp, Op, Region, Value } from "./node.ts";
import { slotsOf } from "./rewrite/slots.ts";
import { repeats, traitsOf } from "./traits.ts";
import { regionList, yieldedValues } from "./traverse.ts";
import { visitEach } from "../support/visit-each.ts";
import { isInFlight } from "../targets/product-instructions.ts";

/** Nothing of the accumulator's runs. */
export const over = Infinity;

/** Products started since the last one of each accumulator, or `over`. */
type Counts = Map<Value, number>;

/** Where registers of an accumulator are touched, each with the count that it has then: `over` if all is well. */
export interface InFlightEvents {
  /** They become a tile's. */
  readonly lands?: (op: Op<"wgmma_wait">, count: number) => void;
  /** A round or a branch yields an accumulator whose sums move into the registers of the carry or of the result. */
  readonly moves?: (yielding: AnyOp, count: number) => void;
}

/** Follows all accumulators of a body. */
export function followInFlightProducts(body: Region, events: InFlightEvents): void {
  new Flights(body, events).follow(body, new Map());
}

class Flights {
  readonly #events: InFlightEvents;
  readonly #registers: AccumulatorRegisters;

  constructor(body: Region, events: InFlightEvents) {
    this.#events = events;
    this.#registers = new AccumulatorRegisters(body);
  }

  follow({ ops }: Region, counts: Counts): void {
    visitEach(ops, (op) => this.#step(op, counts));
  }

  #step(op: AnyOp, counts: Counts): void {
    if (op.kind === "accumulator") set(counts, op.results, [over]);
    else if (op.kind === "wgmma") start(op, counts);
    else if (op.kind === "wgmma_wait") this.#wait(op, counts);
    else if (op.kind === "products_wait") settle(counts, op.attributes.pending);
    else if (op.kind === "dot" && isInFlight(op.attributes.instruction)) settle(counts, 0);
    else this.#regions(op, counts);
  }

  #wait(op: Op<"wgmma_wait">, counts: Counts): void {
    const { pending, gives } = op.attributes;
    const before = take(counts, op.operands.accumulator);
    settle(counts, pending);
    const count = before >= pending ? over : before;
    if (gives === "tile") {
      this.#events.lands?.(op, count);
      return;
    }
    set(counts, op.results, [count]);
  }

  #regions(op: AnyOp, counts: Counts): void {
    if (op.regions === noSlots) return;
    if (repeats(op)) return this.#loop(op, counts);
    const { regions } = traitsOf(op);
    if (regions === "one of") return this.#branches(op, counts);
    for (const region of regionList(op)) {
      if (regions === "once") this.follow(region, counts);
      // Code that may be left out changes nothing for what runs around it: waits in it may not happen.
      else this.follow(region, new Map());
    }
    if (op.kind === "scoped") this.#hand(counts, yieldedValues(op.regions.body), op.results);
  }

  /** The ways through branches join in what each gives, and in what none of them consumes. */
  #branches(op: AnyOp, counts: Counts): void {
    const ways = regionList(op).map((region) => {
      const inside: Counts = new Map(counts);
      this.follow(region, inside);
      return { region, inside };
    });
    const slots = slotsOf(op).filter(({ result }) => result.type.kind === "inflight");
    const given = slots.map(({ result, yielded }) => {
      const each = ways.map(({ region, inside }, way) => {
        const value = yielded[way];
        const count = take(inside, value);
        if (value !== undefined && this.#registers.of(value) !== this.#registers.of(result))
          this.#moved(region, count);
        return count;
      });
      return [result, Math.min(...each)] as const;
    });
    for (const value of [...counts.keys()]) {
      const each = ways.map(({ inside }) => inside.get(value));
      if (each.includes(undefined)) counts.delete(value);
      else counts.set(value, Math.min(...each.map((count) => count ?? over)));
    }
    for (const [result, count] of given) counts.set(result, count);
  }

  #loop(op: Op<"loop"> | Op<"while">, counts: Counts): void {
    const { body } = op.regions;
    const parameters = body.parameters.slice(op.kind === "loop" ? 1 : 0);
    const yielded = yieldedValues(body);
    const carries = op.operands.initial.flatMap((initial, position) => {
      const [carry, next, result] = [parameters[position], yielded[position], op.results[position]];
      if (initial.type.kind !== "inflight" || !carry || !next || !result) return [];
      return [{ initial, carry, next, result, count: take(counts, initial) }];
    });
    for (let shrunk = true; shrunk;) {
      const inside: Counts = new Map(carries.map(({ carry, count }) => [carry, count]));
      if (op.kind === "while") this.follow(op.regions.condition, inside);
      this.follow(body, inside);
      shrunk = false;
      for (const each of carries) {
        const count = take(inside, each.next);
        if (this.#registers.of(each.next) !== this.#registers.of(each.carry))
          this.#moved(body, count);
        shrunk ||= count < each.count;
        each.count = Math.min(count, each.count);
      }
    }
    for (const { result, count } of carries) counts.set(result, count);
  }

  #moved({ ops }: Region, count: number): void {
    const yielding = ops.at(-1);
    if (yielding !== undefined) this.#events.moves?.(yielding, count);
  }

  #hand(counts: Counts, from: readonly Value[], to: readonly Value[]): void {
    from.forEach((value, index) => {
      const result = to[index];
      if (value.type.kind !== "inflight" || result === undefined) return;
      counts.set(result, take(counts, value));
    });
  }
}

/** One more product runs behind all others. */
function start(op: Op<"wgmma">, counts: Counts): void {
  counts.delete(op.operands.accumulator);
  for (const [value, count] of counts) counts.set(value, count + 1);
  set(counts, op.results, [0]);
}

function settle(counts: Counts, pending: number): void {
  for (const [value, count] of counts) if (count >= pending) counts.set(value, over);
}

/** The count of an accumulator that goes by another name from here on. */
function take(counts: Counts, value: Value | undefined): number {
  const count = value && counts.get(value);
  if (value === undefined || count === undefined) throw new Error("an accumulator from elsewhere");
  counts.delete(value);
  return count;
}

function set(counts: Counts, values: readonly Value[], given: readonly number[]): void {
  values.forEach((value, index) => counts.set(value, given[index] ?? 0));
}
