/**
 * Derivatives of unrolled scans. Going backwards through the levels gives another network of slices, pads and additions, whose text depends on
 * how it was differentiated; what it computes does not: of a linear recurrence, and of a running product, it is a recurrence from the end.
 *
 *   h[t] = a[t]·h[t−1] + b[t]       g[t] = y[t] + a[t+1]·g[t+1]       the derivative by b is g, by a[t] it is g[t]·h[t−1]
 *
 * So values are told by what they are: the part of the program between a, b, y and them is evaluated over whole numbers modulo 2³², of which
 * sums and products are exact, for numbers drawn at random, along the axis alone since nothing else mixes other axes.
 */
import { Random } from "../../support/random.ts";
import type { AnyGraphOp, GraphOp, GraphRegion, GraphValue } from "../ops/node.ts";
import type { GraphOpKind } from "../ops/table.ts";
import { sameType } from "../ops/types.ts";
import { typeOfValue } from "../transform/arithmetic.ts";
import type { ScanNetwork } from "./scan-levels.ts";
import { stretchOf } from "./scan-networks.ts";
import type { Definitions } from "./scan-networks.ts";

/** A recurrence among the functions of a scan: its factors, what is added, and its running values. */
export interface Recurrence {
  readonly axis: number;
  readonly factors: GraphValue;
  /** Undefined of running products, whose factors are all there is. */
  readonly terms: GraphValue | undefined;
  readonly running: GraphValue;
}

/** The values of a program that are derivatives of a recurrence by one cotangent. */
export interface RecurrenceGradient {
  readonly recurrence: Recurrence;
  readonly cotangent: GraphValue;
  readonly byTerms: ReadonlySet<GraphValue>;
  readonly byFactors: ReadonlySet<GraphValue>;
}

/** Longer ones would take long to evaluate. */
const mostElements = 2 ** 21;

export function recurrencesOf({
  axis,
  extent,
  inputs,
  templates,
  levels,
}: ScanNetwork): readonly Recurrence[] {
  const [outermost = []] = levels;
  if (extent > mostElements) return [];
  return outermost.flatMap(({ anchor, input }): readonly Recurrence[] => {
    const template = templates[input];
    if (template === undefined) return [];
    const leaves = template.expression.leaves.map(({ side }, at) => ({
      side,
      of: template.inputs[at] ?? 0,
    }));
    const shape = template.expression.text
      .replaceAll(/\{[^}]*\}\w+/g, "")
      .replaceAll("stablehlo.", "")
      .replaceAll(/before|after/g, "x");
    const own = { axis, running: anchor.value };
    const isPair = leaves.length === 2 && leaves[0]?.side !== leaves[1]?.side;
    const self = inputs[input];
    if (
      shape === "multiply(x,x)" &&
      isPair &&
      leaves.every(({ of }) => of === input) &&
      self !== undefined
    )
      return [{ ...own, factors: self, terms: undefined }];
    const [term, ...product] =
      shape === "add(multiply(x,x),x)"
        ? [leaves[2], leaves[0], leaves[1]]
        : shape === "add(x,multiply(x,x))"
          ? [leaves[0], leaves[1], leaves[2]]
          : [];
    const before = product.find((each) => each?.side === "before");
    const factor = product.find((each) => each?.side === "after");
    const isOwn = term?.side === "after" && term.of === input && before?.of === input;
    const factors = factor === undefined || factor.of === input ? undefined : inputs[factor.of];
    return isOwn && factors !== undefined && self !== undefined
      ? [{ ...own, factors, terms: self }]
      : [];
  });
}

type Numbers = Int32Array;

/** Values along an axis, over whole numbers modulo 2³². */
class AlongAxis {
  readonly #axis: number;
  readonly #definition: Definitions;
  readonly #known = new Map<GraphValue, Numbers | undefined>();

  constructor(axis: number, definition: Definitions, given: ReadonlyMap<GraphValue, Numbers>) {
    this.#axis = axis;
    this.#definition = definition;
    for (const [value, numbers] of given) this.#known.set(value, numbers);
  }

  of(value: GraphValue): Numbers | undefined {
    if (this.#known.has(value)) return this.#known.get(value);
    const op = this.#definition(value);
    const made = op === undefined ? undefined : this.#make(op, value);
    this.#known.set(value, made);
    return made;
  }

  /** The numbers of an op's result. */
  #make(op: AnyGraphOp, value: GraphValue): Numbers | undefined {
    return rules[op.kind]?.(op as never, value, this);
  }

  get axis(): number {
    return this.#axis;
  }

  extentOf(value: GraphValue): number {
    return typeOfValue(value).shape[this.#axis] ?? 1;
  }

  stretchOf(value: GraphValue) {
    return stretchOf(value, this.#axis, this.#definition);
  }

  both(
    { lhs, rhs }: { readonly lhs: GraphValue; readonly rhs: GraphValue },
    combine: (left: number, right: number) => number,
  ): Numbers | undefined {
    const left = this.of(lhs);
    const right = left === undefined ? undefined : this.of(rhs);
    return right === undefined ? undefined : left?.map((each, i) => combine(each, right[i] ?? 0));
  }

  zeros(value: GraphValue, from: GraphValue): Numbers | undefined {
    return this.isZero(from) ? new Int32Array(this.extentOf(value)) : undefined;
  }

  isZero(value: GraphValue): boolean {
    const op = this.#definition(value);
    return (
      op?.kind === "stablehlo.constant" &&
      "data" in op.attributes.value &&
      op.attributes.value.data.every((lane) => Number(lane) === 0)
    );
  }
}

type Rules = {
  readonly [K in GraphOpKind]?: (
    op: GraphOp<K>,
    value: GraphValue,
    of: AlongAxis,
  ) => Numbers | undefined;
};

/** What differentiated scans are made of; anything else is not looked into. */
const rules: Rules = {
  "stablehlo.add": ({ operands }, _, of) => of.both(operands, (left, right) => (left + right) | 0),
  "stablehlo.subtract": ({ operands }, _, of) =>
    of.both(operands, (left, right) => (left - right) | 0),
  "stablehlo.multiply": ({ operands }, _, of) => of.both(operands, Math.imul),
  "stablehlo.negate": ({ operands }, _, of) => of.of(operands.operand)?.map((each) => -each | 0),
  "stablehlo.constant": (_, value, of) => of.zeros(value, value),
  "stablehlo.broadcast_in_dim": ({ operands }, value, of) => of.zeros(value, operands.operand),
  "stablehlo.slice": (_, value, of) => {
    const stretch = of.stretchOf(value);
    const from = stretch === undefined ? undefined : of.of(stretch.base);
    if (stretch === undefined || from === undefined) return undefined;
    const { start, stride } = stretch;
    return Int32Array.from(
      { length: of.extentOf(value) },
      (__, i) => from[start + i * stride] ?? 0,
    );
  },
  "stablehlo.concatenate": ({ operands, attributes }, value, of) => {
    const joined = new Int32Array(of.extentOf(value));
    let start = 0;
    for (const input of operands.inputs) {
      const part = of.of(input);
      if (part === undefined || attributes.dimension !== of.axis) return undefined;
      joined.set(part, start);
      start += part.length;
    }
    return joined;
  },
  "stablehlo.pad": ({ operands, attributes }, value, of) => {
    const { edge_padding_low: low, edge_padding_high: high, interior_padding: holes } = attributes;
    const isAlone = low.every(
      (each, at) => at === of.axis || (each === 0 && high[at] === 0 && holes[at] === 0),
    );
    const from = of.of(operands.operand);
    if (!isAlone || from === undefined || !of.isZero(operands.padding_value)) return undefined;
    const padded = new Int32Array(of.extentOf(value));
    const [first, step] = [low[of.axis] ?? 0, (holes[of.axis] ?? 0) + 1];
    for (const [i, each] of from.entries()) {
      const at = first + i * step;
      if (at >= 0 && at < padded.length) padded[at] = each;
    }
    return padded;
  },
};

function drawn(random: Random, length: number): Numbers {
  return Int32Array.from({ length }, () => Math.floor(random.uniform() * 2 ** 32) | 0);
}

function isSame(one: Numbers | undefined, other: Numbers): boolean {
  return (
    one !== undefined && one.length === other.length && one.every((each, i) => each === other[i])
  );
}

/** Values of which every other element along an axis is asked for, from the second on. */
function halved(
  region: GraphRegion,
  axis: number,
  like: GraphValue,
  definition: Definitions,
): ReadonlySet<GraphValue> {
  const found = new Set<GraphValue>();
  for (const op of region.ops) {
    const [result] = op.results;
    const isCut =
      (op.kind === "stablehlo.pad" && (op.attributes.edge_padding_low[axis] ?? 0) < 0) ||
      (op.kind === "stablehlo.slice" &&
        result !== undefined &&
        stretchOf(result, axis, definition)?.start === 1);
    const operand = isCut && "operand" in op.operands ? op.operands.operand : undefined;
    if (operand !== undefined && sameType(operand.type, like.type)) found.add(operand);
  }
  return found;
}

/** The derivatives of a recurrence that a region has. */
export function gradientsOf(
  region: GraphRegion,
  recurrence: Recurrence,
  definition: Definitions,
): readonly RecurrenceGradient[] {
  const { axis, factors, terms, running } = recurrence;
  const extent = typeOfValue(running).shape[axis] ?? 0;
  const random = new Random(extent);
  const given = new Map([[factors, drawn(random, extent)]]);
  if (terms !== undefined) given.set(terms, drawn(random, extent));
  const a = given.get(factors) ?? new Int32Array(extent);
  const b = terms === undefined ? undefined : given.get(terms);
  const h = new Int32Array(extent);
  for (let t = 0; t < extent; t++) {
    const carried = t === 0 ? (b === undefined ? 1 : 0) : (h[t - 1] ?? 0);
    h[t] = (Math.imul(a[t] ?? 0, carried) + (b?.[t] ?? 0)) | 0;
  }
  const inputs = new Set([factors, terms, running]);
  return [...halved(region, axis, running, definition)].flatMap((cotangent) => {
    if (inputs.has(cotangent)) return [];
    const y = drawn(random, extent);
    const values = new AlongAxis(axis, definition, new Map([...given, [cotangent, y]]));
    const g = Int32Array.from(y);
    for (let t = extent - 2; t >= 0; t--)
      g[t] = ((y[t] ?? 0) + Math.imul(a[t + 1] ?? 0, g[t + 1] ?? 0)) | 0;
    const before = (t: number): number => (t > 0 ? (h[t - 1] ?? 0) : b === undefined ? 1 : 0);
    const byFactor = g.map((each, t) => Math.imul(each, before(t)));
    const sums = region.ops
      .filter(({ kind }) => kind === "stablehlo.add" || kind === "stablehlo.multiply")
      .flatMap(({ results }) => results.filter(({ type }) => sameType(type, running.type)));
    const byTerms = new Set(sums.filter((value) => isSame(values.of(value), g)));
    const byFactors = new Set(sums.filter((value) => isSame(values.of(value), byFactor)));
    return byTerms.size + byFactors.size === 0
      ? []
      : [{ recurrence, cotangent, byTerms, byFactors }];
  });
}
