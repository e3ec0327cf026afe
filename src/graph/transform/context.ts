/** What a derivative rule is given. */
import type { TilewrightError } from "../../support/diagnostics.ts";
import type { GraphBuilder } from "../infer/builder.ts";
import { isComplexElement, isFloatElement } from "../ops/elements.ts";
import type { Literal } from "../ops/literal.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { isTensor } from "../ops/types.ts";
import { typeOfValue } from "./arithmetic.ts";
import { ReverseMode } from "./linear.ts";
import type { LinearMap, LinearMode } from "./linear.ts";
import { addition } from "./maps.ts";

/** A tangent that may be zero. */
export type Tangent = GraphValue | undefined;

/** New results of an op, and their tangents. */
export interface Replacement {
  readonly results: readonly GraphValue[];
  readonly tangents: readonly Tangent[];
}

/** Adds the tangent ops of a list of ops to a context; gives what the results have become. */
export type RunOps = (
  context: JvpContext,
  ops: readonly AnyGraphOp[],
  results: readonly GraphValue[],
) => readonly GraphValue[];

export class JvpContext {
  readonly builder: GraphBuilder;
  readonly mode: LinearMode;
  readonly #tangents: Map<GraphValue, GraphValue>;
  readonly #missing: Map<GraphValue, TilewrightError>;
  /** Constants that were met, which trip counts are read from. */
  readonly constants: Map<GraphValue, Literal>;
  readonly #runOps: RunOps;

  constructor(builder: GraphBuilder, mode: LinearMode, runOps: RunOps, outer?: JvpContext) {
    this.#runOps = runOps;
    this.builder = builder;
    this.mode = mode;
    this.#tangents = new Map(outer === undefined ? [] : outer.#tangents);
    this.#missing = new Map(outer === undefined ? [] : outer.#missing);
    this.constants = new Map(outer === undefined ? [] : outer.constants);
  }

  /** A context for a region: it knows the tangents of what is around it. */
  inner(builder: GraphBuilder, mode: LinearMode): JvpContext {
    return new JvpContext(builder, mode, this.#runOps, this);
  }

  /** Adds ops with their tangents; gives what the results have become. */
  run(ops: readonly AnyGraphOp[], results: readonly GraphValue[]): readonly GraphValue[] {
    return this.#runOps(this, ops, results);
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

  /** Arrays without elements have none: nothing depends on them, and rules need not think of them. */
  setTangent(value: GraphValue, tangent: Tangent): void {
    if (tangent !== undefined && isDifferentiable(value) && !isEmpty(value))
      this.#tangents.set(value, tangent);
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

/** The mode of a context that goes backwards. */
export function reverseOf({ mode }: JvpContext): ReverseMode {
  if (mode instanceof ReverseMode) return mode;
  throw new Error("the context is in reverse mode");
}

/** Whether a value has tangents: real and complex numbers do, integers and flags do not. */
export function isDifferentiable({ type }: GraphValue): boolean {
  return isTensor(type) && (isFloatElement(type.element) || isComplexElement(type.element));
}

/** Whether a value is an array without elements. */
export function isEmpty({ type }: GraphValue): boolean {
  return isTensor(type) && type.shape.includes(0);
}

/** One tangent a result. */
export type JvpRule<K extends GraphOpKind> = (
  op: GraphOp<K>,
  context: JvpContext,
) => readonly Tangent[];

export type JvpRules<K extends GraphOpKind> = { readonly [N in K]: JvpRule<N> };
