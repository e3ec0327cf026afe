/** What a derivative rule is given. */
import type { TilewrightError } from "../../support/diagnostics.ts";
import type { GraphBuilder } from "../infer/builder.ts";
import { isFloatElement } from "../ops/elements.ts";
import type { Literal } from "../ops/literal.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { isTensor } from "../ops/types.ts";
import { typeOfValue } from "./arithmetic.ts";
import type { LinearMap, LinearMode } from "./linear.ts";
import { addition } from "./maps.ts";

/** A tangent that may be zero. */
export type Tangent = GraphValue | undefined;

export class JvpContext {
  readonly builder: GraphBuilder;
  readonly mode: LinearMode;
  readonly #tangents: Map<GraphValue, GraphValue>;
  readonly #missing: Map<GraphValue, TilewrightError>;
  /** Constants that were met, which trip counts are read from. */
  readonly constants: Map<GraphValue, Literal>;

  constructor(builder: GraphBuilder, mode: LinearMode, outer?: JvpContext) {
    this.builder = builder;
    this.mode = mode;
    this.#tangents = new Map(outer === undefined ? [] : outer.#tangents);
    this.#missing = new Map(outer === undefined ? [] : outer.#missing);
    this.constants = new Map(outer === undefined ? [] : outer.constants);
  }

  /** The tangent of a value; throws where its op has no derivative. */
  tangent(value: GraphValue): Tangent {
    const error = this.#missing.get(value);
    if (error !== undefined) throw error;
    return this.#tangents.get(value);
  }

  hasTangent(value: GraphValue): boolean {
    return this.#tangents.has(value) || this.#missing.has(value);
  }

  setTangent(value: GraphValue, tangent: Tangent): void {
    if (tangent !== undefined && isDifferentiable(value)) this.#tangents.set(value, tangent);
  }

  /** The value's derivative does not exist here: an error once somebody needs it. */
  withhold(value: GraphValue, error: TilewrightError): void {
    if (isDifferentiable(value)) this.#missing.set(value, error);
  }

  /** A linear map of one tangent with one result; zero of zero. */
  map(tangent: Tangent, map: () => LinearMap): Tangent {
    return tangent === undefined ? undefined : this.mode.linear(map(), [tangent])[0];
  }

  /** The sum of tangents. */
  sum(tangents: readonly Tangent[]): Tangent {
    const present = tangents.filter((each) => each !== undefined);
    const [first] = present;
    if (first === undefined || present.length === 1) return first;
    return this.mode.linear(addition(typeOfValue(first), present.length), present)[0];
  }
}

/** Whether a value has tangents: floats do, integers and flags do not. */
export function isDifferentiable({ type }: GraphValue): boolean {
  return isTensor(type) && isFloatElement(type.element);
}

/** One tangent a result. */
export type JvpRule<K extends GraphOpKind> = (
  op: GraphOp<K>,
  context: JvpContext,
) => readonly Tangent[];

export type JvpRules<K extends GraphOpKind> = { readonly [N in K]: JvpRule<N> };
