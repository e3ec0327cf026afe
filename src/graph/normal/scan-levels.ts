/**
 * The levels of an unrolled scan, matched from the outermost inwards: each input of a level is told by its place in the expressions of the
 * first level, and every expression of every level has to be that of the function at the first.
 */
import type { GraphValue } from "../ops/node.ts";
import { typeOfValue } from "../transform/arithmetic.ts";
import { expressionOf, stretchOf } from "./scan-networks.ts";
import type { Anchor, Definitions, Expression, Leaf } from "./scan-networks.ts";

/** The function of an input, and which inputs its leaves are of. */
interface Template {
  readonly expression: Expression;
  readonly inputs: readonly number[];
}

export interface ScanNetwork {
  readonly axis: number;
  readonly extent: number;
  /** The arrays that are scanned together. */
  readonly inputs: readonly GraphValue[];
  /** How two elements combine, for each input; undefined where nobody asks for it. */
  readonly templates: readonly (Template | undefined)[];
  /** The ends of levels, the outermost first, each with the input it is of. */
  readonly levels: readonly (readonly { readonly anchor: Anchor; readonly input: number }[])[];
}

class Matcher {
  readonly #definition: Definitions;
  readonly #anchors: ReadonlyMap<GraphValue, Anchor>;
  readonly #axis: number;
  readonly #templates: (Template | undefined)[] = [];
  /** The inputs of each level as far as they are known, and how long they are. */
  readonly #bases: (GraphValue | undefined)[][] = [];
  readonly #lengths: number[] = [];

  constructor(anchors: ReadonlyMap<GraphValue, Anchor>, definition: Definitions, axis: number) {
    this.#anchors = anchors;
    this.#definition = definition;
    this.#axis = axis;
  }

  match(outermost: Anchor): ScanNetwork | undefined {
    const { axis, extent } = outermost;
    // Anchors of the first level by their odd elements, which expressions of others may be of.
    const others = new Map(
      [...this.#anchors.values()]
        .filter((each) => each.axis === axis && each.extent === extent)
        .map((each) => [each.odd, each]),
    );
    const first: (GraphValue | undefined)[] = [outermost.input];
    this.#bases.push(first);
    this.#lengths.push(extent);
    const anchored = new Map<number, Anchor>([[0, outermost]]);
    for (const [input, anchor] of anchored) {
      const leaves = this.#even(input, anchor, first, (odd) => {
        const other = others.get(odd);
        if (other === undefined) return undefined;
        const known = first.indexOf(other.input);
        const at = known < 0 ? first.push(other.input) - 1 : known;
        anchored.set(at, anchored.get(at) ?? other);
        return anchored.get(at) === other ? at : undefined;
      });
      if (leaves === undefined) return undefined;
    }
    const levels = [entries(anchored)];
    let current: ReadonlyMap<number, Anchor> | undefined = anchored;
    for (let length = Math.floor(extent / 2); length > 0; length = Math.floor(length / 2)) {
      current = this.#next(current, length);
      if (current === undefined) return undefined;
      if (current.size > 0) levels.push(entries(current));
    }
    const inputs = first.flatMap((each) => each ?? []);
    return { axis, extent, inputs, templates: this.#templates, levels };
  }

  /** The even elements of a level, as the function of odd ones and of what follows them. */
  #even(
    input: number,
    { rest, extent }: Anchor,
    bases: (GraphValue | undefined)[],
    inputOfOdd: (odd: GraphValue) => number | undefined,
  ): true | undefined {
    if (rest === undefined) return true;
    const count = Math.ceil(extent / 2) - 1;
    const odds = Math.floor(extent / 2);
    const expression = this.#expression(rest, (value) => {
      if (this.#extent(value) !== count) return undefined;
      // All odd elements, where no even one follows the last of them.
      if (count === odds && inputOfOdd(value) !== undefined) return { side: "before", base: value };
      const stretch = stretchOf(value, this.#axis, this.#definition);
      if (stretch === undefined) return undefined;
      const { base, start, stride } = stretch;
      const isStep = (step: number): boolean => stride === step || count === 1;
      if (start === 0 && isStep(1) && this.#extent(base) === odds && inputOfOdd(base) !== undefined)
        return { side: "before", base };
      return start === 2 && isStep(2) && this.#extent(base) === extent
        ? { side: "after", base }
        : undefined;
    });
    return this.#unify(input, expression, bases, ({ side, base }) =>
      side === "before" ? inputOfOdd(base) : undefined,
    );
  }

  /** The level below: its inputs are the function of neighbours. */
  #next(
    anchoredAbove: ReadonlyMap<number, Anchor>,
    extent: number,
  ): ReadonlyMap<number, Anchor> | undefined {
    const bases: (GraphValue | undefined)[] = [];
    const depth = this.#bases.push(bases) - 1;
    this.#lengths.push(extent);
    const anchored = new Map<number, Anchor>();
    const inputsOfOdds = new Map<GraphValue, number>();
    for (const [input, { odd }] of anchoredAbove) {
      const anchor = extent > 1 ? this.#anchors.get(odd) : undefined;
      if (extent > 1 && (anchor?.extent !== extent || anchor.axis !== this.#axis)) return undefined;
      bases[input] = anchor?.input ?? odd;
      if (anchor !== undefined) {
        anchored.set(input, anchor);
        inputsOfOdds.set(anchor.odd, input);
      }
    }
    for (const [input, anchor] of anchored)
      if (this.#even(input, anchor, bases, (odd) => inputsOfOdds.get(odd)) === undefined)
        return undefined;
    for (const [input, base] of bases.entries())
      if (base !== undefined && this.#neighbours(depth, input) === undefined) return undefined;
    return anchored;
  }

  /** An input of a level as the function of neighbours of the level above; inputs of that one that turn up so are looked at in turn. */
  #neighbours(depth: number, input: number): true | undefined {
    const above = this.#bases[depth - 1];
    const base = this.#bases[depth]?.[input];
    if (above === undefined || base === undefined) return true;
    const extent = this.#extent(base);
    const isKnown = above.map((each) => each !== undefined);
    const expression = this.#expression(base, (value) => {
      const stretch = stretchOf(value, this.#axis, this.#definition);
      if (stretch === undefined || this.#extent(value) !== extent) return undefined;
      const isStep = stretch.stride === 2 || extent === 1;
      const isOfLevel = this.#extent(stretch.base) === this.#lengths[depth - 1];
      if (!isStep || !isOfLevel || stretch.start > 1) return undefined;
      return { side: stretch.start === 0 ? "before" : "after", base: stretch.base };
    });
    if (this.#unify(input, expression, above, () => undefined) === undefined) return undefined;
    const isFine = above.every(
      (each, at) =>
        each === undefined || isKnown[at] === true || this.#neighbours(depth - 1, at) !== undefined,
    );
    return isFine ? true : undefined;
  }

  #extent(value: GraphValue): number {
    return typeOfValue(value).shape[this.#axis] ?? 0;
  }

  #expression(
    root: GraphValue,
    leafOf: (value: GraphValue) => Leaf | undefined,
  ): Expression | undefined {
    return expressionOf(root, this.#axis, this.#definition, leafOf);
  }

  /**
   * Whether an expression is the function of an input, whose first one is remembered. Leaves that no input is known for are inputs by their place
   * in that first expression, or new ones.
   */
  #unify(
    input: number,
    expression: Expression | undefined,
    bases: (GraphValue | undefined)[],
    known: (leaf: Leaf) => number | undefined,
  ): true | undefined {
    if (expression === undefined) return undefined;
    const template = this.#templates[input];
    const inputOf = (leaf: Leaf, at: number): number => {
      const own = known(leaf) ?? bases.indexOf(leaf.base);
      if (own >= 0) return own;
      const placed = template?.inputs[at];
      if (placed === undefined) return bases === this.#bases[0] ? bases.push(leaf.base) - 1 : -1;
      bases[placed] ??= leaf.base;
      return bases[placed] === leaf.base ? placed : -1;
    };
    const inputs = expression.leaves.map(inputOf);
    if (inputs.includes(-1)) return undefined;
    if (template === undefined) {
      this.#templates[input] = { expression, inputs };
      return true;
    }
    const isSame = template.inputs.every((each, at) => each === inputs[at]);
    return isSame && template.expression.text === expression.text ? true : undefined;
  }
}

function entries(anchored: ReadonlyMap<number, Anchor>) {
  return Array.from(anchored, ([input, anchor]) => ({ anchor, input }));
}

/** The scan that an anchor is the last of. */
export function scanNetwork(
  outermost: Anchor,
  anchors: ReadonlyMap<GraphValue, Anchor>,
  definition: Definitions,
): ScanNetwork | undefined {
  return new Matcher(anchors, definition, outermost.axis).match(outermost);
}
