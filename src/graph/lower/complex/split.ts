/**
 * What rules use while complex values become pairs: the values that stand for those of the program. A region is
 * rewritten as a whole; a complex parameter becomes two, and so does a complex result.
 */
import { GraphBuilder } from "../../infer/builder.ts";
import { graphRegion, graphValue } from "../../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { rebuildOp } from "../../ops/rebuild.ts";
import { operandsOf } from "../../ops/traverse.ts";
import { isComplexType, partType } from "./parts.ts";
import type { Parts } from "./parts.ts";

/** What a result of an op became. */
export type Split = GraphValue | Parts;

/** The results of an op with complex numbers among its values. */
export type ComplexRule = (op: AnyGraphOp, split: Splitter) => readonly Split[];

function isParts(value: Split): value is Parts {
  return "re" in value;
}

export class Splitter {
  readonly builder: GraphBuilder;
  readonly #rule: ComplexRule;
  readonly #known: Map<GraphValue, Split>;

  constructor(
    rule: ComplexRule,
    builder = new GraphBuilder(),
    known = new Map<GraphValue, Split>(),
  ) {
    this.#rule = rule;
    this.builder = builder;
    this.#known = known;
  }

  set(value: GraphValue, split: Split): void {
    this.#known.set(value, split);
  }

  isComplex({ type }: GraphValue): boolean {
    return isComplexType(type);
  }

  /** The value that stands for a real one. */
  real(value: GraphValue): GraphValue {
    const found = this.#known.get(value) ?? value;
    if (isParts(found)) throw new Error("the value is complex");
    return found;
  }

  /** The parts of a complex value. */
  parts(value: GraphValue): Parts {
    const found = this.#known.get(value);
    if (found === undefined || !isParts(found)) throw new Error("the value is not complex");
    return found;
  }

  /** The real value itself, or one part of a complex one. */
  part(value: GraphValue, which: keyof Parts): GraphValue {
    return this.isComplex(value) ? this.parts(value)[which] : this.real(value);
  }

  /** The one or two values that stand for a value. */
  flat(value: GraphValue): readonly GraphValue[] {
    if (!this.isComplex(value)) return [this.real(value)];
    const { re, im } = this.parts(value);
    return [re, im];
  }

  /** Gives values of two times as many as complex ones back their pairs. */
  gather(values: readonly GraphValue[], like: readonly GraphValue[]): readonly Split[] {
    let next = 0;
    const take = (): GraphValue => {
      const found = values[next++];
      if (found === undefined) throw new Error("there are too few values");
      return found;
    };
    return like.map((value) => (this.isComplex(value) ? { re: take(), im: take() } : take()));
  }

  /** A region over the same outer values, with pairs for what is complex. */
  region(region: GraphRegion): GraphRegion {
    const inner = new Splitter(this.#rule, new GraphBuilder(), new Map(this.#known));
    const parameters = region.parameters.flatMap((value): readonly GraphValue[] => {
      if (!isComplexType(value.type)) {
        const copy = graphValue(value.type);
        inner.set(value, copy);
        return [copy];
      }
      const re = graphValue(partType(value.type));
      const im = graphValue(partType(value.type));
      inner.set(value, { re, im });
      return [re, im];
    });
    inner.ops(region.ops);
    return graphRegion(
      parameters,
      inner.builder.ops,
      region.results.flatMap((value) => inner.flat(value)),
    );
  }

  ops(ops: readonly AnyGraphOp[]): void {
    for (const op of ops) this.#op(op);
  }

  #op(op: AnyGraphOp): void {
    const values = [...operandsOf(op), ...op.results];
    if (values.some((value) => this.isComplex(value))) {
      const results = this.builder.within(op, () => this.#rule(op, this));
      for (const [i, value] of op.results.entries()) {
        const found = results[i];
        if (found !== undefined) this.set(value, found);
      }
      return;
    }
    const results = op.results.map(({ type }) => graphValue(type));
    this.builder.append(
      rebuildOp(op, {
        operand: (value) => this.real(value),
        region: (region) => this.region(region),
        results,
      }),
    );
    for (const [i, value] of op.results.entries()) this.set(value, results[i] as GraphValue);
  }
}
