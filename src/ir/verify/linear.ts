/**
 * Verifies that in-flight accumulators are linear: each is consumed exactly once, by the next wgmma, by
 * a wait, or by being carried into or around a loop, in the region that defines it. The accumulator can
 * then keep its registers from the first wgmma to the last wait.
 *
 *   %1 = accumulator
 *   %2 = wgmma %1, …        consumes %1
 *   %3 = loop …, %2 {       consumes %2
 *     (%i, %4)
 *     %5 = wgmma %4, …      consumes %4
 *     yield %5 }            consumes %5
 *   %8 = if %c {            consumes %3, as both branches do
 *     %7 = wgmma %3, …
 *     yield %7 } {
 *     yield %3 }
 *   %9 = wgmma_wait %8      consumes %8
 *
 * Branches are alternatives, of which each consumes the same accumulators from around them. A scoped body runs once, wherever it stands, and counts as part of the region around it. The
 * condition of a while loop sees the carries but leaves them to the body.
 */
import { noSlots } from "../make-op.ts";
import type { AnyOp, Kernel, Region, Value } from "../node.ts";
import { opName } from "../op-names.ts";
import { traitsOf } from "../traits.ts";
import { operandValues, regionList } from "../traverse.ts";
import { typeText } from "../types.ts";
import { reject } from "./report.ts";
import type { Definitions } from "./visibility.ts";
import { visitEach } from "../../support/visit-each.ts";

/** The in-flight values of one straight-line region, each with the op that consumed it. */
type Uses = Map<Value, AnyOp | undefined>;

function isInflight(value: Value): boolean {
  return value.type.kind === "inflight";
}

class LinearVerifier {
  readonly #definitions: Definitions;

  constructor(definitions: Definitions) {
    this.#definitions = definitions;
  }

  /** A region that runs on its own: what it defines it consumes, and nothing from outside. */
  verifyRegion(region: Region): void {
    const uses: Uses = new Map();
    this.#define(region.parameters, uses);
    this.#visitOps(region, uses);
    for (const [value, consumer] of uses) if (consumer === undefined) this.#rejectUnused(value);
  }

  #visitOps(region: Region, uses: Uses): void {
    visitEach(region.ops, (op) => {
      const operands = operandValues(op);
      for (let place = 0; place < operands.length; place += 1) {
        const value = operands[place] as Value;
        if (isInflight(value)) this.#consume(op, value, uses);
      }
      this.#visitRegions(op, uses);
      this.#define(op.results, uses);
    });
  }

  #visitRegions(op: AnyOp, uses: Uses): void {
    if (op.regions === noSlots) return;
    const { regions } = traitsOf(op);
    if (regions === "one of") return this.#visitBranches(op, uses);
    for (const inner of regionList(op))
      if (regions === "once") this.#visitOps(inner, uses);
      else if (op.kind === "while" && inner === op.regions.condition)
        this.verifyRegion({ parameters: [], ops: inner.ops });
      else this.verifyRegion(inner);
  }

  /** Regions of which one runs: what one consumes of those around it, every one does. */
  #visitBranches(op: AnyOp, uses: Uses): void {
    const branches = regionList(op).map((region) => {
      const inside: Uses = new Map(uses);
      this.#visitOps(region, inside);
      for (const [value, consumer] of inside)
        if (consumer === undefined && !uses.has(value)) this.#rejectUnused(value);
      return inside;
    });
    for (const [value, before] of uses) {
      if (before !== undefined) continue;
      const consumers = branches.map((inside) => inside.get(value));
      const consumer = consumers.find((each) => each !== undefined);
      if (consumer === undefined) continue;
      const without = consumers.indexOf(undefined);
      if (without >= 0) this.#rejectForgotten(op, value, consumer, without);
      uses.set(value, op);
    }
  }

  #define(values: readonly Value[], uses: Uses): void {
    for (let place = 0; place < values.length; place += 1) {
      const value = values[place] as Value;
      if (isInflight(value)) uses.set(value, undefined);
    }
  }

  #consume(op: AnyOp, value: Value, uses: Uses): void {
    if (!uses.has(value))
      reject(op, "TW2208", `${opName(op)} consumes ${typeText(value.type)} of a region around it`, {
        expected: "an accumulator of this region or one carried into it",
        found: "one from outside",
        notes: this.#definitionNote(value),
      });
    const before = uses.get(value);
    if (before !== undefined)
      reject(op, "TW2207", `${opName(op)} consumes ${typeText(value.type)} a second time`, {
        expected: "each accumulator in flight consumed once",
        found: `${opName(before)}, then ${opName(op)}`,
        notes: [
          ...this.#definitionNote(value),
          { message: `first consumed by ${opName(before)}`, location: before.location },
        ],
      });
    uses.set(value, op);
  }

  #definitionNote(value: Value) {
    return [{ message: "the accumulator is defined here", location: this.#definitions.get(value) }];
  }

  #rejectForgotten(op: AnyOp, value: Value, consumer: AnyOp, branch: number): never {
    return reject(
      op,
      "TW2096",
      `one branch of ${opName(op)} consumes an accumulator that another leaves`,
      {
        expected: `each branch to consume ${typeText(value.type)}, or to give it on`,
        found: `${opName(consumer)} in one, and nothing in ${branchText(op, branch)}`,
        notes: [
          ...this.#definitionNote(value),
          { message: `it is consumed by ${opName(consumer)} here`, location: consumer.location },
        ],
      },
    );
  }

  #rejectUnused(value: Value): never {
    const location = this.#definitions.get(value);
    if (location === undefined) throw new Error(`%${value.id} has no definition`);
    return reject({ location }, "TW2206", `${typeText(value.type)} is never waited for`, {
      expected: "wait() on it before its region ends",
      found: "none",
      notes: this.#definitionNote(value),
    });
  }
}

function branchText({ kind }: AnyOp, branch: number): string {
  if (kind === "switch") return `case ${branch}`;
  return branch === 0 ? "the first branch" : "the second branch, which may be missing";
}

export function verifyLinear(kernel: Kernel, definitions: Definitions): void {
  new LinearVerifier(definitions).verifyRegion(kernel.body);
}
