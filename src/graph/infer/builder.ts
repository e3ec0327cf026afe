/**
 * Builds ops one after another, with inferred types: how recording, transforms and passes make graphs.
 *
 *   const builder = new GraphBuilder();
 *   const sum = builder.one("stablehlo.add", { lhs: x, rhs: y }, {});
 *   const total = builder.one("stablehlo.reduce", { inputs: [sum], init_values: [zero] }, { dimensions: [0] },
 *     { body: builder.region([scalar, scalar], (inner, [a, b]) => [inner.one(…)]) });
 */
import { unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { AttributeMap } from "../ops/attribute.ts";
import { graphOp, graphRegion, graphValue } from "../ops/node.ts";
import type { AnyGraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import type { GraphAttributes, GraphOpKind, GraphOperands, GraphRegions } from "../ops/table.ts";
import type { GraphType } from "../ops/types.ts";
import { inferTypes } from "./index.ts";

/** What ops are called and where they come from, until something else is said. */
export interface Origin {
  readonly name: string;
  readonly location: Location;
}

const noOrigin: Origin = Object.freeze({ name: "", location: unknownLocation });

/** What only some ops need. */
export interface OpDetails<K extends GraphOpKind> {
  readonly regions?: GraphRegions<K> | undefined;
  /** The types of results that operands do not say. */
  readonly types?: readonly GraphType[] | undefined;
  readonly extra?: AttributeMap | undefined;
}

export class GraphBuilder {
  readonly ops: AnyGraphOp[] = [];
  origin: Origin;

  constructor(origin: Origin = noOrigin) {
    this.origin = origin;
  }

  /** Appends an op and gives its results. */
  add<K extends GraphOpKind>(
    kind: K,
    operands: GraphOperands<K>,
    attributes: GraphAttributes<K>,
    details: OpDetails<K> = {},
  ): readonly GraphValue[] {
    const regions = details.regions ?? ({} as GraphRegions<K>);
    const { location, name } = this.origin;
    const declared = details.types ?? [];
    const types = inferTypes<K>({ kind, operands, attributes, regions, declared, location });
    const results = types.map((type) => graphValue(type));
    const { extra } = details;
    const op = graphOp(kind, { operands, attributes, regions, results, location, name, extra });
    this.ops.push(op as AnyGraphOp);
    return results;
  }

  /** Appends an op with one result. */
  one<K extends GraphOpKind>(
    kind: K,
    operands: GraphOperands<K>,
    attributes: GraphAttributes<K>,
    details: OpDetails<K> = {},
  ): GraphValue {
    const [result] = this.add(kind, operands, attributes, details);
    if (result === undefined) throw new Error(`${kind} has a result`);
    return result;
  }

  /** Appends an op that exists already, with its own results. */
  append(op: AnyGraphOp): void {
    this.ops.push(op);
  }

  /** A region whose body is built from its parameters. */
  region(
    types: readonly GraphType[],
    body: (inner: GraphBuilder, parameters: readonly GraphValue[]) => readonly GraphValue[],
  ): GraphRegion {
    const parameters = types.map((type) => graphValue(type));
    const inner = new GraphBuilder(this.origin);
    const results = body(inner, parameters);
    return graphRegion(parameters, inner.ops, results);
  }

  /** Runs `body` with ops named after another origin. */
  within<T>(origin: Origin, body: () => T): T {
    const outer = this.origin;
    this.origin = origin;
    try {
      return body();
    } finally {
      this.origin = outer;
    }
  }
}
