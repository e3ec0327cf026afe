/** What a batching rule is given: which values have the batch in front, and ways to get there. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { GraphBuilder } from "../infer/builder.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import { graphOpTable } from "../ops/table.ts";
import type { GraphAttributes, GraphOpKind, GraphOperands, GraphRegions } from "../ops/table.ts";
import { isTensor, tensorType } from "../ops/types.ts";
import type { GraphType } from "../ops/types.ts";
import { broadcastInDim, typeOfValue } from "./arithmetic.ts";
import { range } from "./product-transpose-rules.ts";

export interface Batched {
  readonly value: GraphValue;
  /** Whether axis 0 is the batch. */
  readonly batched: boolean;
}

export type BatchRule<K extends GraphOpKind> = (
  op: GraphOp<K>,
  context: BatchContext,
) => readonly Batched[];

export type BatchRules<K extends GraphOpKind> = { readonly [N in K]: BatchRule<N> };

/** What changes of an op that is built again over batched operands. */
interface Changes<K extends GraphOpKind> {
  readonly operands?: Partial<GraphOperands<K>>;
  readonly attributes?: Partial<GraphAttributes<K>>;
  readonly regions?: GraphRegions<K>;
}

/** Adds batched ops to a context. */
export type RunBatched = (context: BatchContext, ops: readonly AnyGraphOp[]) => void;

export class BatchContext {
  readonly builder: GraphBuilder;
  readonly size: number;
  readonly #known: Map<GraphValue, Batched>;

  readonly #runOps: RunBatched;

  constructor(builder: GraphBuilder, size: number, runOps: RunBatched, outer?: BatchContext) {
    this.#runOps = runOps;
    this.builder = builder;
    this.size = size;
    this.#known = new Map(outer === undefined ? [] : outer.#known);
  }

  /** A context for a region: it knows what is around it. */
  inner(builder = new GraphBuilder(this.builder.origin)): BatchContext {
    return new BatchContext(builder, this.size, this.#runOps, this);
  }

  run(ops: readonly AnyGraphOp[]): void {
    this.#runOps(this, ops);
  }

  /** An op as other ops that compute the same. */
  through(
    op: { readonly results: readonly GraphValue[] },
    build: (builder: GraphBuilder) => readonly GraphValue[],
  ): readonly Batched[] {
    const scratch = new GraphBuilder(this.builder.origin);
    const results = build(scratch);
    this.run(scratch.ops);
    return op.results.map((_, i) => this.get(results[i] as GraphValue));
  }

  set(value: GraphValue, batched: Batched): void {
    this.#known.set(value, batched);
  }

  /** What a value has become; a value that nothing was said of is as it was. */
  get(value: GraphValue): Batched {
    return this.#known.get(value) ?? { value, batched: false };
  }

  isBatched(value: GraphValue): boolean {
    return this.get(value).batched;
  }

  /** The value with the batch in front, repeated where it has none. */
  full(value: GraphValue): GraphValue {
    const found = this.get(value);
    if (found.batched) return found.value;
    const { shape } = typeOfValue(found.value);
    return broadcastInDim(this.builder, found.value, [this.size, ...shape], range(1, shape.length));
  }

  type(type: GraphType): GraphType {
    return isTensor(type) ? tensorType(type.element, [this.size, ...type.shape]) : type;
  }

  /** The op over other operands and attributes, its results with the batch in front. */
  again<K extends GraphOpKind>(op: GraphOp<K>, changes: Changes<K> = {}): readonly Batched[] {
    const given = Object.keys(changes.operands ?? {});
    const filled = mapOperands(op, given, (value) => this.full(value));
    const results = this.builder.add<K>(
      op.kind,
      { ...filled, ...changes.operands },
      { ...op.attributes, ...changes.attributes },
      {
        regions: changes.regions ?? op.regions,
        types: op.results.map(({ type }) => this.type(type)),
        extra: op.extra,
      },
    );
    return results.map((value) => ({ value, batched: true }));
  }
}

/** The operands mapped, without those that are given otherwise. */
function mapOperands<K extends GraphOpKind>(
  op: GraphOp<K>,
  given: readonly string[],
  map: (value: GraphValue) => GraphValue,
): GraphOperands<K> {
  const slots = op.operands as {
    readonly [name: string]: GraphValue | readonly GraphValue[] | undefined;
  };
  const names = Object.keys(graphOpTable[op.kind].operands).filter((name) => !given.includes(name));
  const mapped = names.map((name) => {
    const slot = slots[name];
    if (slot === undefined) return [name, undefined];
    return [name, Array.isArray(slot) ? slot.map(map) : map(slot as GraphValue)];
  });
  return Object.fromEntries(mapped) as GraphOperands<K>;
}

/** An op that has no rule for batched operands. */
export function unbatchable(op: object): never {
  const { kind, location, name } = op as AnyGraphOp;
  throw new TilewrightError({
    code: "TW9203",
    message: `${kind} cannot be batched here`,
    location,
    expected: "an op with a rule for batched operands",
    found: name === "" ? kind : name,
  });
}

export function next(axes: readonly number[]): readonly number[] {
  return axes.map((axis) => axis + 1);
}
