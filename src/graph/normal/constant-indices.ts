/**
 * Integers that a program computes from constants and counts alone, as numbers: the indices of a triangle, with negative ones wrapped and columns
 * joined as JAX prints them.
 *
 *   %j = concatenate(reshape(select(lt(%c, 0), add(%c, 27), %c)), …)      1 0 2 0 2 1 3 0 …
 */
import { evaluate, isTensorDatum } from "../evaluate/index.ts";
import { capturesOf, isPure } from "../ops/captures.ts";
import { elements } from "../ops/elements.ts";
import { graphRegion, moduleOf } from "../ops/node.ts";
import type { AnyGraphOp, GraphValue } from "../ops/node.ts";
import { operandsOf, regionsOf } from "../ops/traverse.ts";
import { isTensor, sizeOf } from "../ops/types.ts";
import type { Place } from "./rewriting.ts";

/** Larger tensors are not evaluated. */
const mostElements = 2 ** 20;
/** Nor what takes more ops. */
const mostOps = 256;

function isSmallInteger({ type }: GraphValue): boolean {
  if (!isTensor(type)) return false;
  const { kind } = elements[type.element];
  const isWhole = kind === "bool" || kind === "signed" || kind === "unsigned";
  return isWhole && sizeOf(type.shape) <= mostElements;
}

/** The ops that a value is computed by, each after those it uses; undefined where it depends on more than constants. */
function coneOfConstants(value: GraphValue, place: Place): readonly AnyGraphOp[] | undefined {
  const ops = new Set<AnyGraphOp>();
  const visit = (each: GraphValue): boolean => {
    const op = place.definition(each);
    if (op === undefined || !isSmallInteger(each)) return false;
    if (ops.has(op)) return true;
    const isClosed = regionsOf(op).every((region) => capturesOf(region).length === 0);
    const isText = op.kind === "stablehlo.constant" && "kind" in op.attributes.value;
    if (!isPure(op) || !isClosed || isText || op.results.length !== 1) return false;
    if (!operandsOf(op).every(visit) || ops.size >= mostOps) return false;
    ops.add(op);
    return true;
  };
  return visit(value) ? [...ops] : undefined;
}

const known = new WeakMap<GraphValue, readonly number[] | "unknown">();

/** The elements of a value in row-major order, where they are constant integers or truth values. */
export function constantNumbers(value: GraphValue, place: Place): readonly number[] | undefined {
  const before = known.get(value);
  if (before !== undefined) return before === "unknown" ? undefined : before;
  const ops = coneOfConstants(value, place);
  const [found] =
    ops === undefined
      ? []
      : evaluate(moduleOf(graphRegion([], ops, [value])), "main", []).filter(isTensorDatum);
  const numbers = found === undefined ? undefined : Array.from(found.data, Number);
  known.set(value, numbers ?? "unknown");
  return numbers;
}

/** Digits of a count, the last one fastest: how many there are of each, and how far one step of it goes. */
export interface Digit {
  readonly count: number;
  readonly stride: number;
}

/** A table as digits: `table[i]` is the first number plus, for each digit of i, so many strides; undefined where it is none such. */
export function digitsOf(table: readonly number[]): readonly Digit[] | undefined {
  const [first = 0] = table;
  const digits: Digit[] = [];
  let size = 1;
  while (size < table.length) {
    const stride = (table[size] ?? 0) - first;
    let count = 2;
    while (count * size < table.length && (table[count * size] ?? 0) - first === count * stride)
      count += 1;
    if (table.length % (count * size) !== 0) return undefined;
    digits.unshift({ count, stride });
    size *= count;
  }
  const isSo = table.every((number, i) => {
    let [rest, sum] = [i, first];
    for (const { count, stride } of digits.toReversed()) {
      sum += (rest % count) * stride;
      rest = Math.floor(rest / count);
    }
    return sum === number;
  });
  return isSo ? digits : undefined;
}
