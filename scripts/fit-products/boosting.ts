/**
 * Trees fitted to numbers by boosting: each tree is fitted to what those before it left over, and gives a part of that, so that the next one is
 * fitted to a little less. A tree grows where that leaves least over, a leaf at a time.
 *
 * What examples of one group have in common decides nothing among them, so that it is taken off before each tree, and a tree is grown with some of the groups:
 *
 *   left over of a shape's choices   0.31   0.35   0.27        taken as   0   0.04   −0.04
 */
import {
  digits,
  leafOf,
  mostLeaf,
  placeOf,
  placesOf,
  readTrees,
  treeText,
  unit,
} from "../../src/kernels/matmul/cost/learned/trees.ts";
import type { TreeNode, Trees } from "../../src/kernels/matmul/cost/learned/trees.ts";
import { Random } from "../../src/support/random.ts";

export interface Example {
  /** Which examples are compared with each other, counted from 0 and in that order. */
  readonly group: number;
  readonly numbers: readonly number[];
  readonly value: number;
  readonly weight: number;
}

export interface Boosting {
  readonly trees: number;
  /** Leaves of a tree, and examples of a leaf at least. */
  readonly leaves: number;
  readonly examples: number;
  /** The part of what is left over that a tree gives. */
  readonly rate: number;
  /** Weight of examples without anything left over that every leaf has besides. */
  readonly calm: number;
  /** The parts of the groups and of the numbers that a tree is grown with. */
  readonly drawn: { readonly groups: number; readonly numbers: number };
  readonly seed: number;
}

/** Thresholds of a number at most: their places are digits. */
const mostThresholds = digits - 1;

/** Thresholds between values, such that about as many examples lie between any two. */
function thresholdsOf(values: readonly number[]): readonly number[] {
  const sorted = Float64Array.from(values).sort();
  const found = new Set<number>();
  for (let each = 1; each <= mostThresholds; each += 1) {
    const value = sorted[Math.floor((each * sorted.length) / (mostThresholds + 1))] ?? 0;
    // Above is what is greater, so the greatest value is no threshold.
    if (value < (sorted.at(-1) ?? 0)) found.add(Number(value.toPrecision(6)));
  }
  return [...found];
}

interface Split {
  readonly asked: number;
  readonly place: number;
  readonly gain: number;
}

/** A leaf while a tree grows, which becomes a node with two once it is split. */
interface Growing {
  readonly examples: Int32Array;
  readonly value: number;
  readonly split: Split | undefined;
  children: readonly [Growing, Growing] | undefined;
}

const none = new Uint8Array();

/** Examples by number, and what trees have left over of their values. */
class Ensemble {
  readonly #boosting: Boosting;
  readonly #random: Random;
  readonly thresholds: readonly (readonly number[])[];
  readonly #places: readonly Uint8Array[];
  readonly #columns: readonly Uint8Array[];
  readonly #left: Float64Array;
  readonly #weights: Float64Array;
  /** Where examples of each group begin, and where the last ones end. */
  readonly #begins: readonly number[];

  constructor(examples: readonly Example[], boosting: Boosting) {
    this.#boosting = boosting;
    this.#random = new Random(boosting.seed);
    const count = examples[0]?.numbers.length ?? 0;
    this.thresholds = Array.from({ length: count }, (_, index) =>
      thresholdsOf(examples.map(({ numbers }) => numbers[index] ?? 0)),
    );
    this.#places = examples.map(({ numbers }) => placesOf(this.thresholds, numbers));
    this.#columns = this.thresholds.map((thresholds, index) =>
      Uint8Array.from(examples, ({ numbers }) => placeOf(thresholds, numbers[index] ?? 0)),
    );
    this.#left = Float64Array.from(examples, ({ value }) => value);
    this.#weights = Float64Array.from(examples, ({ weight }) => weight);
    const begins = examples.flatMap(({ group }, index) =>
      group === examples[index - 1]?.group ? [] : index,
    );
    this.#begins = [...begins, examples.length];
  }

  /** Another tree, as text. */
  tree(): string {
    const text = treeText(nodeOf(this.#grown()));
    const read = readTrees({ thresholds: this.thresholds, text });
    const [begin = 0] = read.begins;
    for (const [index, each] of this.#places.entries())
      this.#left[index] = (this.#left[index] ?? 0) - unit * leafOf(read, begin, each);
    return text;
  }

  /** Some of the first so many. */
  #drawn(count: number, part: number): readonly number[] {
    return Array.from({ length: count }, (_, index) => index).filter(
      () => this.#random.uniform() < part,
    );
  }

  #grown(): Growing {
    const { drawn, leaves: most } = this.#boosting;
    this.#center();
    const numbers = this.#drawn(this.#columns.length, drawn.numbers);
    const groups = this.#drawn(this.#begins.length - 1, drawn.groups);
    const taken = Int32Array.from(groups.flatMap((group) => this.#examplesOf(group)));
    const root = this.#growing(taken, numbers);
    const leaves = [root];
    while (leaves.length < most) {
      const widest = leaves.reduce((best, each) =>
        (each.split?.gain ?? 0) > (best.split?.gain ?? 0) ? each : best,
      );
      if (widest.split === undefined) break;
      const { asked, place } = widest.split;
      const column = this.#columns[asked] ?? none;
      const isAbove = (example: number): boolean => (column[example] ?? 0) > place;
      const below = widest.examples.filter((example) => !isAbove(example));
      widest.children = [
        this.#growing(below, numbers),
        this.#growing(widest.examples.filter(isAbove), numbers),
      ];
      leaves.splice(leaves.indexOf(widest), 1, ...widest.children);
    }
    return root;
  }

  #examplesOf(group: number): readonly number[] {
    const begin = this.#begins[group] ?? 0;
    return Array.from({ length: (this.#begins[group + 1] ?? 0) - begin }, (_, at) => begin + at);
  }

  /** Takes off what examples of a group have in common. */
  #center(): void {
    for (let group = 0; group + 1 < this.#begins.length; group += 1) {
      const examples = this.#examplesOf(group);
      const { sum, mass } = this.#totals(examples);
      for (const each of examples) this.#left[each] = (this.#left[each] ?? 0) - sum / mass;
    }
  }

  /** A leaf of such examples, and the split of it that leaves least over. */
  #growing(examples: Int32Array, numbers: readonly number[]): Growing {
    const { rate, calm } = this.#boosting;
    const { sum, mass } = this.#totals(examples);
    const split = numbers
      .flatMap((asked) => this.#splitBy(examples, asked) ?? [])
      .reduce<Split | undefined>(
        (best, each) => (each.gain > (best?.gain ?? 0) ? each : best),
        undefined,
      );
    return { examples, value: (rate * sum) / (mass + calm), split, children: undefined };
  }

  /** What is left over of examples, weighted, and their weight. */
  #totals(examples: Iterable<number>): { readonly sum: number; readonly mass: number } {
    let sum = 0;
    let mass = 0;
    for (const example of examples) {
      sum += (this.#weights[example] ?? 0) * (this.#left[example] ?? 0);
      mass += this.#weights[example] ?? 0;
    }
    return { sum, mass };
  }

  /** The best split of examples by one number. */
  #splitBy(examples: Int32Array, asked: number): Split | undefined {
    const column = this.#columns[asked] ?? none;
    const count = (this.thresholds[asked]?.length ?? 0) + 1;
    const [sums, masses] = [new Float64Array(count), new Float64Array(count)];
    const counts = new Int32Array(count);
    for (const example of examples) {
      const place = column[example] ?? 0;
      const weight = this.#weights[example] ?? 0;
      sums[place] = (sums[place] ?? 0) + weight * (this.#left[example] ?? 0);
      masses[place] = (masses[place] ?? 0) + weight;
      counts[place] = (counts[place] ?? 0) + 1;
    }
    return this.#bestSplit(asked, { sums, masses, counts });
  }

  /** The best split of what lies at each place: of so many examples, of so much weight, with so much left over. */
  #bestSplit(
    asked: number,
    places: {
      readonly sums: Float64Array;
      readonly masses: Float64Array;
      readonly counts: Int32Array;
    },
  ): Split | undefined {
    const { calm, examples: least } = this.#boosting;
    const total = (of: Iterable<number>): number => [...of].reduce((sum, each) => sum + each, 0);
    const [sum, mass, count] = [total(places.sums), total(places.masses), total(places.counts)];
    const gained = (part: number, weight: number): number => part ** 2 / (weight + calm);
    let best: Split | undefined;
    let [below, belowMass, belowCount] = [0, 0, 0];
    for (let place = 0; place + 1 < places.sums.length; place += 1) {
      below += places.sums[place] ?? 0;
      belowMass += places.masses[place] ?? 0;
      belowCount += places.counts[place] ?? 0;
      if (belowCount < least || count - belowCount < least) continue;
      const gain = gained(below, belowMass) + gained(sum - below, mass - belowMass);
      if (gain - gained(sum, mass) > (best?.gain ?? 1e-12))
        best = { asked, place, gain: gain - gained(sum, mass) };
    }
    return best;
  }
}

export function boosted(examples: readonly Example[], boosting: Boosting): Trees {
  const ensemble = new Ensemble(examples, boosting);
  const texts = Array.from({ length: boosting.trees }, () => ensemble.tree());
  return { thresholds: ensemble.thresholds, text: texts.join("") };
}

/** A tree's nodes. Values are rounded here, so that trees after it are fitted to what that leaves over. */
function nodeOf({ split, children, value }: Growing): TreeNode {
  if (split === undefined || children === undefined)
    return { leaf: Math.max(-mostLeaf, Math.min(mostLeaf, Math.round(value / unit))) };
  const [below, above] = children;
  return { asked: split.asked, place: split.place, below: nodeOf(below), above: nodeOf(above) };
}
