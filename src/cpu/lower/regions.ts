/**
 * Lowers the ops of a region one after the other. Tiles that one loop alone reads are computed in that loop; others are
 * computed where they stand, and their memory is given back behind their last use.
 */
import type { AnyOp, Region, Value } from "../../ir/node.ts";
import { opTable, ruleOf } from "../../ir/ops.ts";
import type { OpRules, SomeOpRules } from "../../ir/ops.ts";
import { operandValues, regionList, walkOps, yieldedValues } from "../../ir/traverse.ts";
import { regionUses } from "./analysis.ts";
import type { RegionUses, UseQuestions } from "./analysis.ts";
import { dtypeOf, elementwise, repeatsRows, shapeOf, unitAxes } from "./lazy.ts";
import type { Lowering } from "./lowering.ts";
import { requireUsable } from "./memory-faults.ts";
import { computeInto } from "./tiles.ts";
import type { Storage } from "./scratch.ts";

/** Whether it says that other blocks of the cluster see it, which run at another time here. */
function isOfCluster({ attributes }: AnyOp): boolean {
  return "scope" in attributes && attributes.scope === "cluster";
}

export type LoweringRules = OpRules<[Lowering, RegionLowering], void>;

/** Lowers regions by the rules, which know nothing of one another. */
export class RegionLowering {
  readonly lowering: Lowering;
  readonly #rules: LoweringRules;
  #lastUse: ReadonlyMap<Value, number> = new Map();
  #index = 0;
  #defined: ReadonlySet<Value> = new Set();
  /** Values of regions that are behind. */
  readonly #ended = new Set<Value>();

  constructor(lowering: Lowering, rules: LoweringRules) {
    this.lowering = lowering;
    this.#rules = rules;
  }

  /**
   * Whether nothing reads the value's memory behind the op that is lowered, under any name, so that the op may change it: of
   * values of this region alone, since what is around may come again.
   */
  isLastUse(value: Value): boolean {
    const storage = this.lowering.storages.get(value);
    if (storage === undefined || !this.#defined.has(value)) return false;
    for (const [other, own] of this.lowering.storages) {
      if (own !== storage) continue;
      if (other !== value && !this.#defined.has(other) && !this.#ended.has(other)) return false;
      if ((this.#lastUse.get(other) ?? -1) > this.#index) return false;
    }
    return true;
  }

  /** Whether the regions of an op read a storage, which the op then may not change between their rounds. */
  readsWithin(op: AnyOp, storage: Storage): boolean {
    const { values, storages } = this.lowering;
    const seen = new Set<Value>();
    const pending: Value[] = [];
    for (const region of regionList(op))
      walkOps(region, (inner) => pending.push(...operandValues(inner)));
    for (let value = pending.pop(); value !== undefined; value = pending.pop()) {
      if (seen.has(value)) continue;
      seen.add(value);
      if (storages.get(value) === storage) return true;
      const held = values.get(value);
      if (held?.kind === "lazy") pending.push(...operandValues(held.op));
    }
    return false;
  }

  /** Keeps a storage, which a rule has taken for the results of its op, from ending inside of the op's regions. */
  during(storages: readonly Storage[], lower: () => void): void {
    const added = storages.filter((storage) => !this.#live.has(storage));
    for (const storage of added) this.#live.add(storage);
    lower();
    for (const storage of added) this.#live.delete(storage);
  }

  /**
   * Lowers all ops of the region but its yield, for which `finish` stands. With `ownsParameters` the region may change the tiles of
   * its parameters, which are made anew each time.
   */
  lower(
    region: Region,
    finish: (yielded: readonly Value[]) => void,
    { ownsParameters = false } = {},
  ): void {
    const { lowering } = this;
    const outer = {
      lastUse: this.#lastUse,
      index: this.#index,
      defined: this.#defined,
      temporaries: lowering.temporaries,
    };
    const defined = new Set<Value>(ownsParameters ? region.parameters : []);
    for (const { results } of region.ops) for (const result of results) defined.add(result);
    const uses = regionUses(region, questions);
    const yielded = yieldedValues(region);
    /** Storages that end with this region or before, and the last op that reads each. */
    const owned = new Map<Storage, number>();
    for (const [index, op] of region.ops.entries()) {
      this.#lastUse = uses.lastUse;
      this.#defined = defined;
      this.#index = index;
      lowering.temporaries = [];
      if (op.kind === "yield") finish(yielded);
      else this.#op(op, uses);
      for (const storage of lowering.temporaries) lowering.scratch.give(storage);
      for (const result of op.results) {
        const storage = lowering.storages.get(result);
        const known = storage && owned.get(storage);
        // Another name for a storage of a region around does not end it.
        if (storage === undefined || (known === undefined && this.#live.has(storage))) continue;
        owned.set(storage, Math.max(known ?? -1, uses.lastUse.get(result) ?? -1));
        this.#live.add(storage);
      }
      for (const [storage, last] of owned) if (last <= index) this.#end(storage, owned);
    }
    for (const storage of owned.keys()) this.#end(storage, owned);
    for (const value of [...defined, ...region.parameters]) this.#ended.add(value);
    this.#lastUse = outer.lastUse;
    this.#index = outer.index;
    this.#defined = outer.defined;
    lowering.temporaries = outer.temporaries;
  }

  #end(storage: Storage, owned: Map<Storage, number>): void {
    this.lowering.scratch.give(storage);
    owned.delete(storage);
    this.#live.delete(storage);
  }

  readonly #live = new Set<Storage>();

  #op(op: AnyOp, uses: RegionUses): void {
    const { lowering } = this;
    if (op.kind === "load") requireUsable(lowering, op, op.operands.ref);
    if (isOfCluster(op)) lowering.refuse(op, "a cluster of blocks");
    if (uses.inline.has(op)) {
      for (const result of op.results) lowering.hold(result, { kind: "lazy", op });
      return;
    }
    if (isLazy(op)) {
      for (const result of op.results) {
        lowering.hold(result, { kind: "lazy", op });
        this.#materialise(result);
      }
      return;
    }
    ruleOf(this.#rules, op)(op, lowering, this);
    lowering.failIfNoted();
  }

  #materialise(value: Value): void {
    const { lowering } = this;
    const held = lowering.held(value);
    const tile = lowering.allocateTile(value, dtypeOf(value), shapeOf(value));
    lowering.hold(value, held);
    computeInto(lowering, value, tile);
    lowering.hold(value, tile);
  }
}

/** Whether the op's one result is a tile that can be computed element by element. */
function isLazy(op: AnyOp): boolean {
  const [result] = op.results;
  if (result?.type.kind !== "tile") return false;
  if (elementwise(op) !== undefined) return true;
  return ruleOf(lazyRules, op)?.(op) ?? false;
}

const always = (): boolean => true;

/** Ops that are not elementwise, and yet computed where they are used. */
const lazyRules: SomeOpRules<[], boolean> = {
  constant: always,
  broadcast: always,
  slice: always,
  transpose: always,
  layout_cast: always,
  convert_layout: always,
  iota: always,
  load: always,
  reshape: ({ operands: { source }, attributes: { shape } }) =>
    source.type.kind === "tile" && unitAxes(shapeOf(source), shape) !== undefined,
};

function isCheap(op: AnyOp): boolean {
  if (op.kind === "constant" || op.kind === "iota") return isLazy(op);
  return op.kind === "broadcast" && op.operands.source.type.kind === "scalar";
}

/** Ops whose loops compute their operands as they go. */
function fuses(op: AnyOp, operand: Value): boolean {
  if (op.kind === "broadcast") return isLazy(op) && repeatsRows(op);
  if (isLazy(op)) return true;
  if (op.kind === "store" || op.kind === "reduce") return operand.type.kind === "tile";
  return false;
}

/** Ops that write memory or let others write, themselves or in their regions. */
function acts(op: AnyOp): boolean {
  const { traits } = opTable[op.kind];
  if (traits.may === "nothing" && op.kind !== "yield") return true;
  if (traits.synchronizes.length > 0) return true;
  let found = false;
  for (const region of regionList(op)) walkOps(region, (inner) => (found ||= acts(inner)));
  return found;
}

const questions: UseQuestions = {
  isLazy,
  isCheap,
  fuses,
  disturbs(op, load, isRoot) {
    if (!isRoot) return acts(op);
    if (op.kind !== "store") return acts(op) && !isLazy(op);
    if (load.kind !== "load") return true;
    // Element by element the same window may be read and written.
    const picks = op.operands.indices.length > 0 || load.operands.indices.length > 0;
    const same = !picks && isSameWindow(op.operands.ref, load.operands.ref);
    return !same && mayMeet(op.operands.ref, load.operands.ref);
  },
};

const definitions = new WeakMap<Value, AnyOp>();

/** Which op made a window, of a kernel that is about to be lowered. */
export function noteDefinitions(region: Region): void {
  walkOps(region, (op) => {
    for (const result of op.results) definitions.set(result, op);
  });
}

/** What a window was cut from. */
function rootOf(ref: Value): Value {
  const op = definitions.get(ref);
  if (op === undefined) return ref;
  if (op.kind === "slice_ref" || op.kind === "transpose_ref" || op.kind === "reshape_ref")
    return rootOf(op.operands.ref);
  return op.kind === "union_member" ? op.operands.union : ref;
}

/** Windows of one memory, or of memories that are not known. */
function mayMeet(left: Value, right: Value): boolean {
  const [a, b] = [rootOf(left), rootOf(right)];
  if (a === b) return true;
  return [a, b].some((root) => {
    const kind = definitions.get(root)?.kind;
    return kind === "select_ref" || kind === "peer_ref";
  });
}

function isSameWindow(left: Value, right: Value): boolean {
  if (left === right) return true;
  const [a, b] = [definitions.get(left), definitions.get(right)];
  if (a?.kind !== "slice_ref" || b?.kind !== "slice_ref") return false;
  return (
    isSameWindow(a.operands.ref, b.operands.ref) &&
    a.operands.offsets.every((offset, axis) => offset === b.operands.offsets[axis]) &&
    JSON.stringify(a.attributes.sizes) === JSON.stringify(b.attributes.sizes) &&
    a.attributes.dropped.join() === b.attributes.dropped.join()
  );
}
