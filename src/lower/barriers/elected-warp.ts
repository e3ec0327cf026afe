/**
 * Loops that only wait and start copies run in one elected warp of the program thread. One thread starts a copy anyway; with all four warps in
 * the loop each would wait too, and they would need a barrier in every iteration, lest one falls behind the phases that the copies complete:
 *
 *   loop … {                                warps body(%w) {
 *     barrier_wait %empty index(%slot)        %first = compare %w, %zero {predicate = eq}
 *     lane_barrier                            if %first then {
 *     copy_async … barrier(%full)               loop … { barrier_wait …  copy_async … }
 *   }                                       } }
 *
 * The warps synchronize before and after the whole loop, and agree on the phases that were waited for.
 */
import { isEngineCopy } from "../../ir/ops/asynchronous.ts";
import { bool, i32 } from "../../formats/dtype.ts";
import { noSlots, nothing, opOf, regionOf } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../../ir/node.ts";
import type { OpKind } from "../../ir/ops.ts";
import { countUses, nextValueId } from "../../ir/rewrite/analysis.ts";
import { changeBody, changeEachOp, changeRegions } from "../../ir/rewrite/substitute.ts";
import { onlyComputes, traitsOf } from "../../ir/traits.ts";
import { regionList, walkOps } from "../../ir/traverse.ts";
import { scalarType } from "../../ir/types.ts";

export function electCopies(kernel: Kernel): Kernel {
  return changeBody(kernel, new Elector(kernel).region(kernel.body));
}

class Elector {
  readonly #uses: ReadonlyMap<Value, number>;
  #nextId: number;

  constructor(kernel: Kernel) {
    this.#uses = countUses(kernel.body);
    this.#nextId = nextValueId(kernel);
  }

  region(region: Region): Region {
    return changeEachOp(region, (op) => {
      if (traitsOf(op).regions === "each warp") return op;
      if (this.#isLeftToOne(op)) return this.#elect(op);
      return changeRegions(op, (inner) => this.region(inner));
    });
  }

  /** A loop that waits and copies and does nothing else, and whose results nobody needs. */
  #isLeftToOne(op: AnyOp): boolean {
    if (traitsOf(op).regions !== "repeat") return false;
    if (op.results.some((result) => this.#uses.has(result))) return false;
    const kinds = new Set<OpKind>();
    let others = false;
    for (const region of regionList(op))
      walkOps(region, (inner) => {
        kinds.add(inner.kind);
        others ||= !mayBeLeft(inner);
      });
    return !others && kinds.has("barrier_wait") && kinds.has("copy_async");
  }

  #elect(loop: AnyOp): AnyOp {
    const { location } = loop;
    const make = <K extends OpKind>(kind: K, parts: Partial<Op<K>>): AnyOp =>
      opOf(
        {
          kind,
          operands: parts.operands ?? noSlots,
          attributes: parts.attributes ?? noSlots,
          regions: parts.regions ?? noSlots,
          location,
        } as unknown as AnyOp,
        parts.results ?? nothing,
      ) as unknown as AnyOp;
    const region = (ops: readonly AnyOp[], parameters: readonly Value[] = nothing): Region => {
      const end = make("yield", { operands: Object.freeze({ values: nothing }) });
      return regionOf({ parameters, ops: Object.freeze([...ops, end]) });
    };
    const [warp, zero] = [this.#value(scalarType(i32)), this.#value(scalarType(i32))];
    const first = this.#value(scalarType(bool));
    return make("warps", {
      regions: Object.freeze({
        body: region(
          [
            make("constant", {
              attributes: Object.freeze({ value: 0, dtype: i32, shape: Object.freeze([]) }),
              results: Object.freeze([zero]),
            }),
            make("compare", {
              operands: Object.freeze({ left: warp, right: zero }),
              attributes: Object.freeze({ predicate: "eq" }),
              results: Object.freeze([first]),
            }),
            make("if", {
              operands: Object.freeze({ condition: first }),
              regions: Object.freeze({ then: region([loop]), otherwise: region([]) }),
            }),
          ],
          Object.freeze([warp]),
        ),
      }),
    });
  }

  #value(type: Value["type"]): Value {
    return Object.freeze({ id: this.#nextId++, type });
  }
}

/** Whether one warp may do it for all: it waits, or one lane does it anyway, or it computes a number. */
function mayBeLeft(op: AnyOp): boolean {
  if (op.kind === "barrier_wait") return true;
  if (op.kind === "copy_async")
    return isEngineCopy(op.attributes) && op.operands.barrier !== undefined;
  const numbers = op.results.every(({ type }) => type.kind === "scalar" || type.kind === "ref");
  const { regions } = traitsOf(op);
  if (regions === "repeat" || regions === "one of" || op.kind === "yield") return numbers;
  return onlyComputes(op) && numbers;
}
