/**
 * Builds regions op by op. Each op's result types are inferred, and thereby checked, when it is added,
 * so a mistake is reported on the line that makes it.
 *
 *   builder.openRegion([types])    -> the new region's parameters
 *   builder.add("binary", …)       -> results; appends to the innermost open region
 *   builder.closeRegion(values)    -> the finished region, ended by a yield
 */
import type { Location } from "../support/location.ts";
import { inferResults } from "./infer/index.ts";
import type { InferContext } from "./infer/index.ts";
import { noSlots, nothing, opOf, regionOf } from "./make-op.ts";
import type { AnyOp, Region, Value } from "./node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "./ops.ts";
import { operandValues, regionList } from "./traverse.ts";
import type { Type } from "./types.ts";

interface OpenRegion {
  readonly parameters: readonly Value[];
  readonly ops: AnyOp[];
}

/** A frozen copy whose lists are frozen copies too, so that no caller can change them later. */
function freezeSlots<T extends object>(slots: T): T {
  if (slots === noSlots) return slots;
  const copy = { ...slots } as { [name: string]: unknown };
  let isEmpty = true;
  for (const name in copy) {
    isEmpty = false;
    const item = copy[name];
    if (Array.isArray(item) && !Object.isFrozen(item))
      copy[name] = Object.freeze((item as readonly unknown[]).slice());
  }
  return isEmpty ? (noSlots as T) : Object.freeze(copy as T);
}

export class Builder {
  readonly #context: InferContext;
  readonly #open: OpenRegion[] = [];
  #nextId: number;

  /** `firstId` is above the ids of all values that there are already. */
  constructor(context: InferContext, firstId = 0) {
    this.#context = context;
    this.#nextId = firstId;
  }

  /** How many regions are open; values are usable while their region is. */
  get depth(): number {
    return this.#open.length;
  }

  /** How many ops the innermost open region has so far. */
  get position(): number {
    return this.#open.at(-1)?.ops.length ?? 0;
  }

  /** The ops of the innermost open region from a position on. */
  opsSince(position: number): readonly AnyOp[] {
    return this.#open.at(-1)?.ops.slice(position) ?? [];
  }

  /** Whether the value is computed from the result of such an op, as far as regions that are open show. */
  dependsOn(value: Value, kind: OpKind): boolean {
    const makers = new Map<Value, AnyOp>();
    for (const { ops } of this.#open)
      for (const op of ops) for (const result of op.results) makers.set(result, op);
    const seen = new Set<AnyOp>();
    const reaches = (op: AnyOp | undefined): boolean => {
      if (op === undefined || seen.has(op)) return false;
      seen.add(op);
      return (
        op.kind === kind ||
        operandValues(op).some((operand) => reaches(makers.get(operand))) ||
        regionList(op).some(({ ops }) => ops.some(reaches))
      );
    };
    return reaches(makers.get(value));
  }

  /** The op that made a value in one of the open regions; nothing for their parameters. */
  madeBy(value: Value): AnyOp | undefined {
    for (let depth = this.#open.length - 1; depth >= 0; depth -= 1) {
      const made = this.#open[depth]?.ops.findLast(({ results }) => results.includes(value));
      if (made !== undefined) return made;
    }
    return undefined;
  }

  /** What `make` adds, apart from the innermost region: to be appended elsewhere. */
  aside<T>(make: () => T): { readonly made: T; readonly ops: readonly AnyOp[] } {
    const ops: AnyOp[] = [];
    this.#open.push({ parameters: nothing, ops });
    try {
      return { made: make(), ops };
    } finally {
      this.#open.pop();
    }
  }

  value<T extends Type>(type: T): Value<T> {
    return Object.freeze({ id: this.#nextId++, type });
  }

  /** By `push`: what `map` makes has other elements, to V8, once this is optimised, and every walk over ops reads their results. */
  #values(types: readonly Type[]): readonly Value[] {
    if (types.length === 0) return nothing;
    const values: Value[] = [];
    for (let place = 0; place < types.length; place += 1)
      values.push(this.value(types[place] as Type));
    return Object.freeze(values);
  }

  openRegion(types: readonly Type[]): readonly Value[] {
    const parameters = this.#values(types);
    this.#open.push({ parameters, ops: [] });
    return parameters;
  }

  closeRegion(values: readonly Value[], location: Location): Region {
    this.add("yield", { values }, {}, {}, location);
    return this.#finish();
  }

  /** Leaves the innermost region unfinished, after an error in it. */
  abandonRegion(): void {
    this.#open.pop();
  }

  add<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
    location: Location,
  ): readonly Value[] {
    const op = this.#made(kind, operands, attributes, regions, location);
    this.append(op);
    return op.results;
  }

  /** Adds counters at the start of the outermost region: they are there for all of the kernel. */
  addCounters(attributes: OpAttributes<"alloc_semaphore">, location: Location): readonly Value[] {
    const op = this.#made("alloc_semaphore", {}, attributes, {}, location);
    this.#open[0]?.ops.unshift(op);
    return op.results;
  }

  #made<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
    location: Location,
  ): AnyOp {
    const draft = {
      kind,
      operands: freezeSlots(operands),
      attributes: freezeSlots(attributes),
      regions: freezeSlots(regions),
      location,
    };
    const types = inferResults(draft, this.#context);
    const results = this.#values(types);
    // An Op<K> is one of the union's members, which TypeScript cannot see for a generic K.
    return opOf(draft, results) as unknown as AnyOp;
  }

  /** Adds an op that has its results already. */
  append(op: AnyOp): void {
    const open = this.#open.at(-1);
    if (open === undefined) throw new Error(`no region is open for ${op.kind}`);
    open.ops.push(op);
  }

  #finish(): Region {
    const open = this.#open.pop();
    if (open === undefined) throw new Error("no region is open");
    return regionOf({ parameters: open.parameters, ops: Object.freeze(open.ops) });
  }
}
