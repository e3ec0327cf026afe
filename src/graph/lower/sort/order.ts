/**
 * What a comparator orders by, where it is an order by keys: expressions of one element each, that are compared one after the
 * other. Such a sort is one by numbers, which the library does by digits, whatever the keys are.
 *
 *   left < right, as JAX prints it for floats                       key: x with zeros and NaNs made equal, in the total order
 *   a < b or (a = b and c > d)                                      keys: a ascending, c descending
 *
 * A comparator is given its elements in turn (left 0, right 0, left 1, right 1 …). It compares a key where both sides are the same
 * expression, one of left elements and one of right ones.
 */
import { isElementwise } from "../../ops/elementwise-kinds.ts";
import { floatOrders } from "../../ops/elementwise.ts";
import type { FloatOrder } from "../../ops/elementwise.ts";
import { elements } from "../../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../../ops/node.ts";
import { operandsOf } from "../../ops/traverse.ts";
import { isTensor } from "../../ops/types.ts";
import { mergeEqualOps } from "../../passes/cse.ts";
import { opText } from "../../passes/structure.ts";

export interface SortKey {
  /** The expression of left elements, within the comparator that was looked at. */
  readonly value: GraphValue;
  readonly isDescending: boolean;
  readonly order: FloatOrder;
  /** Whether later keys are left out of account where this one is NaN, since NaN equals nothing. */
  readonly endsAtNan: boolean;
}

export interface SortOrder {
  /** The comparator, equal ops merged. */
  readonly comparator: GraphRegion;
  readonly keys: readonly SortKey[];
}

/** Whose elements an expression is of. */
type Side = "left" | "right" | "neither";
type Comparison = GraphOp<"stablehlo.compare">;

class Reader {
  readonly #definitions: ReadonlyMap<GraphValue, AnyGraphOp>;
  readonly #places: ReadonlyMap<GraphValue, number>;

  constructor({ parameters, ops }: GraphRegion) {
    this.#definitions = new Map(ops.flatMap((op) => op.results.map((value) => [value, op])));
    this.#places = new Map(parameters.map((value, place) => [value, place]));
  }

  /** The keys of a truth value, the first one first. */
  keys(value: GraphValue): readonly SortKey[] | undefined {
    const op = this.#definitions.get(value);
    if (op?.kind === "stablehlo.compare") {
      const key = this.#key(op);
      return key === undefined ? undefined : [key];
    }
    if (op?.kind === "stablehlo.or") {
      const { lhs, rhs } = op.operands;
      return this.#firstOr(lhs, rhs) ?? this.#firstOr(rhs, lhs);
    }
    if (op?.kind === "stablehlo.select") {
      const { pred, on_true: rest, on_false: first } = op.operands;
      return this.#followed(first, pred, rest);
    }
    return undefined;
  }

  /** `first or (equal and rest)`. */
  #firstOr(first: GraphValue, others: GraphValue): readonly SortKey[] | undefined {
    const both = this.#definitions.get(others);
    if (both?.kind !== "stablehlo.and") return undefined;
    const { lhs, rhs } = both.operands;
    return this.#followed(first, lhs, rhs) ?? this.#followed(first, rhs, lhs);
  }

  /** A key, and others where what it compares is equal. */
  #followed(
    first: GraphValue,
    equal: GraphValue,
    rest: GraphValue,
  ): readonly SortKey[] | undefined {
    const [comparison, equality] = [this.#definitions.get(first), this.#definitions.get(equal)];
    if (comparison?.kind !== "stablehlo.compare" || equality?.kind !== "stablehlo.compare")
      return undefined;
    const [compared, equated] = [new Set(operandsOf(comparison)), new Set(operandsOf(equality))];
    const isSame =
      [...compared].every((value) => equated.has(value)) && compared.size === equated.size;
    if (equality.attributes.comparison_direction !== "EQ" || !isSame) return undefined;
    const key = this.#key(comparison);
    const later = this.keys(rest);
    if (key === undefined || later === undefined) return undefined;
    return [{ ...key, endsAtNan: isFloat(key.value) && orderOf(equality) === "ieee" }, ...later];
  }

  #key(comparison: Comparison): SortKey | undefined {
    const { lhs, rhs } = comparison.operands;
    const { comparison_direction: direction } = comparison.attributes;
    const side = this.#side(lhs, rhs);
    if ((direction !== "LT" && direction !== "GT") || side === undefined || side === "neither")
      return undefined;
    const isLeft = side === "left";
    return {
      value: isLeft ? lhs : rhs,
      isDescending: isLeft === (direction === "GT"),
      order: orderOf(comparison),
      endsAtNan: false,
    };
  }

  /** Whose elements `one` is of, where `other` is the same expression of the other's. */
  #side(one: GraphValue, other: GraphValue): Side | undefined {
    const place = this.#places.get(one);
    if (place !== undefined) {
      if (this.#places.get(other) !== (place ^ 1)) return undefined;
      return place % 2 === 0 ? "left" : "right";
    }
    const [left, right] = [this.#definitions.get(one), this.#definitions.get(other)];
    if (left === undefined || right === undefined) return one === other ? "neither" : undefined;
    if (!isPlain(left) || opText(left) !== opText(right)) return undefined;
    const others = operandsOf(right);
    let side: Side = "neither";
    for (const [i, value] of operandsOf(left).entries()) {
      const own = this.#side(value, others[i] as GraphValue);
      if (own === undefined || (own !== "neither" && side !== "neither" && own !== side))
        return undefined;
      if (own !== "neither") side = own;
    }
    return side;
  }
}

/** Ops that work on whole arrays as they do on numbers. */
function isPlain({ kind, results }: AnyGraphOp): boolean {
  const isAlone = results.every(({ type }) => isTensor(type) && type.shape.length === 0);
  return isAlone && (kind === "stablehlo.constant" || isElementwise(kind));
}

function isFloat({ type }: GraphValue): boolean {
  return isTensor(type) && elements[type.element].kind === "float";
}

function orderOf({ attributes }: Comparison): FloatOrder {
  return floatOrders[attributes.compare_type ?? "NOTYPE"];
}

/** The order of a comparator; undefined where it is none by keys. */
export function orderOfComparator(comparator: GraphRegion): SortOrder | undefined {
  const merged = mergeEqualOps(comparator);
  const [result] = merged.results;
  const keys = result === undefined ? undefined : new Reader(merged).keys(result);
  return keys === undefined ? undefined : { comparator: merged, keys };
}
