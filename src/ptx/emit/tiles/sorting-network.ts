/**
 * The bitonic network of a sort, over the bits of the coordinate, whoever owns them. A comparator puts the lesser of
 * two carriers at the lower coordinate; merging two sorted runs begins with a comparison in mirror order, so that all
 * comparators point the same way and padding, which lies behind everything, stays where it is.
 *
 *   runs of 2 become runs of 4            coordinates that differ by
 *
 *   0 1 | 2 3      0 with 3, 1 with 2     11        mirrored
 *   0 1 | 2 3      0 with 1, 2 with 3     01
 *
 * Differences that are register bits alone compare within the lane; lane bits take a shuffle, and warp bits the op's
 * scratch.
 *
 * Where only the first p are wanted, runs of p are sorted, and two runs become one: of each carrier and the one at the
 * mirrored place of the other run only the lesser stays. These are the p least of both, first rising, then falling,
 * and log2 p comparisons sort them. Runs that lie in registers are joined first, so that little is left to move:
 *
 *   a1 ≤ a2 ≤ a3 ≤ a4      least of a1 b4, a2 b3, a3 b2, a4 b1
 *   b1 ≤ b2 ≤ b3 ≤ b4
 *
 * A run need not lie at neighbouring coordinates. Where a lane has p carriers of its own those are a run, no lane bit is
 * compared within it, and at the end every lane has all of the first p and takes those of its coordinates.
 */
import type { AnyOp } from "../../../ir/node.ts";
import { lanesPerWarp } from "../../../layout/algebra/index-bits.ts";
import type { IntegerOperand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { Carrier } from "./combining.ts";
import { shuffleWord } from "./relayout.ts";
import type { WorkingAxis } from "./scan.ts";
import { tradeValues } from "./exchange-through-shared.ts";

/** How carriers compare. */
export interface Comparison {
  /** The first registers of a carrier that is behind all others. */
  readonly last: readonly IntegerOperand[];
  before(left: Carrier, right: Carrier): Register;
}

/** Who owns a bit of the coordinate: a bit of the thread index, or a bit of the cell's number. */
type Owner = { readonly thread: number } | { readonly cell: number };

/** A carrier, or nothing where the layout has no register: what would lie there is behind all others. */
type Cell = Carrier | undefined;

export class SortingNetwork {
  readonly #context: EmitContext;
  readonly #op: AnyOp;
  readonly #comparison: Comparison;
  readonly #owners: readonly Owner[];
  /** The cell of each register. */
  readonly #places: readonly number[];
  #cells: Cell[];

  constructor(
    context: EmitContext,
    op: AnyOp,
    working: WorkingAxis,
    carriers: readonly Carrier[],
    comparison: Comparison,
  ) {
    this.#context = context;
    this.#op = op;
    this.#comparison = comparison;
    const { owners, places, cells } = cellsOf(working, carriers.length);
    this.#owners = owners;
    this.#places = places;
    this.#cells = Array.from({ length: cells }, () => undefined);
    places.forEach((cell, register) => {
      this.#cells[cell] = carriers[register];
    });
  }

  /** All in their order. */
  sorted(): readonly Carrier[] {
    this.#sortRuns(this.#owners.map((_, bit) => bit));
    return this.#places.map((cell) => present(this.#cells[cell]));
  }

  /** The first `count`, a power of two, over and over. */
  first(count: number): readonly Carrier[] {
    const run = this.#runOf(Math.log2(count));
    this.#sortRuns(run);
    const others = this.#owners.flatMap((_, bit) => (run.includes(bit) ? [] : [bit]));
    for (const bit of this.#nearestFirst(others)) this.#joinRuns(run, bit);
    return this.#placed(run, others);
  }

  /** The bits of a run: those of cells where there are enough, else the lowest. */
  #runOf(count: number): readonly number[] {
    const cells = this.#owners.flatMap((owner, bit) => ("cell" in owner ? [bit] : []));
    return cells.length >= count ? cells.slice(0, count) : [...this.#owners.keys()].slice(0, count);
  }

  /** Bits of cells, then of lanes, then of warps. */
  #nearestFirst(bits: readonly number[]): readonly number[] {
    const distance = (bit: number): number => {
      const owner = this.#owners[bit];
      return owner === undefined || "cell" in owner ? -1 : owner.thread;
    };
    return bits.toSorted((left, right) => distance(left) - distance(right));
  }

  #sortRuns(run: readonly number[]): void {
    for (let size = 1; size <= run.length; size += 1) {
      this.#compare(run.slice(0, size));
      for (let bit = size - 2; bit >= 0; bit -= 1) this.#compare(run.slice(bit, bit + 1));
    }
  }

  /** Of runs that differ in a bit, the first half of both together. */
  #joinRuns(run: readonly number[], bit: number): void {
    const { cells, threads } = this.#masks([...run, bit]);
    const owner = this.#owners[bit];
    // Of cells that differ in the bit the upper ones are not needed any more.
    const dropped = owner !== undefined && "cell" in owner ? owner.cell : 0;
    const others = this.#partners(cells, threads, (cell) => (cell & dropped) === 0);
    this.#cells = this.#cells.map((own, cell) => {
      const other = others[cell];
      if ((cell & dropped) !== 0) return undefined;
      if (own === undefined || other === undefined) return own ?? other;
      return this.#ordered(own, other)[0];
    });
    for (const each of run.toReversed()) this.#compare([each]);
  }

  /** Every register with the carrier of its coordinate, where all runs are the same one. */
  #placed(run: readonly number[], others: readonly number[]): readonly Carrier[] {
    const dropped = this.#masks(others).cells;
    const isLowest = run.every((bit, index) => bit === index);
    if (isLowest) return this.#places.map((cell) => present(this.#cells[cell & ~dropped]));
    const known = new Map<string, Carrier>();
    return this.#places.map((cell) => {
      const outside = cell & ~this.#masks([...run, ...others]).cells;
      const lowest = this.#owners.slice(0, run.length);
      const bits = lowest.map((owner) =>
        "cell" in owner ? (cell & owner.cell) !== 0 : owner.thread,
      );
      const key = `${outside} ${bits.join()}`;
      const found = known.get(key) ?? this.#chosen(run, outside, bits);
      known.set(key, found);
      return found;
    });
  }

  /** The carrier of a run whose number has these bits: known ones, or those of the lane's index. */
  #chosen(run: readonly number[], outside: number, bits: readonly (boolean | number)[]): Carrier {
    const pick = (position: number, cell: number): Carrier => {
      const bit = bits[position];
      if (bit === undefined) return present(this.#cells[cell]);
      const step = this.#masks(run.slice(position, position + 1)).cells;
      if (typeof bit === "boolean") return pick(position + 1, bit ? cell | step : cell);
      const [low, high] = [pick(position + 1, cell), pick(position + 1, cell | step)];
      return this.#choose(this.#context.numbers.bit(bit), high, low);
    };
    return pick(0, outside);
  }

  #masks(bits: readonly number[]): { readonly cells: number; readonly threads: number } {
    let [cells, threads] = [0, 0];
    for (const bit of bits) {
      const owner = this.#owners[bit];
      if (owner === undefined) continue;
      if ("cell" in owner) cells |= owner.cell;
      else threads |= 1 << owner.thread;
    }
    return { cells, threads };
  }

  /** Compares every coordinate with the one that differs from it in these bits. */
  #compare(bits: readonly number[]): void {
    const top = this.#owners[bits.at(-1) ?? -1];
    if (top === undefined) return;
    const { cells, threads } = this.#masks(bits);
    if (threads === 0) this.#compareCells(cells);
    else this.#compareElements(cells, threads, top);
  }

  #compareCells(mask: number): void {
    const top = 2 ** Math.floor(Math.log2(mask));
    this.#cells.forEach((carrier, cell) => {
      const other = this.#cells[cell ^ mask];
      if ((cell & top) !== 0 || other === undefined) return;
      const [lower, upper] = carrier === undefined ? [other] : this.#ordered(carrier, other);
      this.#cells[cell] = lower;
      this.#cells[cell ^ mask] = upper;
    });
  }

  #compareElements(mask: number, threads: number, top: Owner): void {
    const received = this.#partners(mask, threads, () => true);
    const { code, numbers } = this.#context;
    this.#cells = this.#cells.map((cell, index) => {
      const other = received[index];
      // Behind the last copy of the layout there is nothing but padding.
      if (other === undefined) return cell;
      const own = cell ?? this.#padding(other);
      if ("cell" in top) return this.#ordered(own, other)[(index & top.cell) === 0 ? 0 : 1];
      const before = this.#comparison.before(other, own);
      const taken = code.make("pred", "xor.pred", before, numbers.bit(top.thread));
      return this.#choose(taken, other, own);
    });
  }

  /** A carrier behind all others, in registers like those of another. */
  #padding(like: Carrier): Carrier {
    const { code } = this.#context;
    return like.map((register, index) => {
      const last = this.#comparison.last[index];
      if (last === undefined) return register;
      const type = register.type === "b64" ? "b64" : "b32";
      return code.make(type, `mov.${type}`, last);
    });
  }

  /** For each cell that asks, the one whose number differs by the mask, of the lane whose index differs by the other. */
  #partners(mask: number, threads: number, asks: (cell: number) => boolean): readonly Cell[] {
    const context = this.#context;
    const partners = this.#cells.map((_, cell) =>
      asks(cell) ? this.#cells[cell ^ mask] : undefined,
    );
    if (threads === 0) return partners;
    if (threads < lanesPerWarp)
      return partners.map((carrier) =>
        carrier?.map((each) => shuffleWord(context, each, "bfly", integer(threads))),
      );
    const sent = partners.flatMap((carrier) => carrier ?? []);
    const traded = tradeValues(context, this.#op, sent, [threads])[0] ?? [];
    let next = 0;
    return partners.map((carrier) => {
      if (carrier === undefined) return undefined;
      const start = next;
      next += carrier.length;
      return traded.slice(start, next);
    });
  }

  /** The lesser of two, and the other; what is not used costs nothing. */
  #ordered(left: Carrier, right: Carrier): readonly [Carrier, Carrier] {
    const [own, other] = [left[0], right[0]];
    if (left.length === 1 && own !== undefined && other !== undefined) {
      const { code } = this.#context;
      const width = own.type === "b64" ? 64 : 32;
      const extreme = (fn: "min" | "max"): Carrier => [
        code.make(`b${width}`, `${fn}.u${width}`, own, other),
      ];
      return [extreme("min"), extreme("max")];
    }
    const swapped = this.#comparison.before(right, left);
    return [this.#choose(swapped, right, left), this.#choose(swapped, left, right)];
  }

  #choose(condition: Register, ifTrue: Carrier, ifFalse: Carrier): Carrier {
    const { code } = this.#context;
    return ifTrue.map((register, index) => {
      const type = register.type === "b64" ? "b64" : "b32";
      return code.make(type, `selp.${type}`, register, ifFalse[index] ?? register, condition);
    });
  }
}

function present(cell: Cell): Carrier {
  if (cell === undefined) throw new Error("a register without a carrier");
  return cell;
}

/** Bits of a coordinate below the extent. */
export function bitsOf(extent: number): number {
  return Math.ceil(Math.log2(Math.max(1, extent)));
}

interface Cells {
  readonly owners: readonly Owner[];
  readonly places: readonly number[];
  readonly cells: number;
}

/**
 * Registers by numbers whose lowest bits are those that they have along the axis, so that every digit along it has a power
 * of two of cells, of which some may be empty; registers that differ otherwise are numbered above.
 */
function cellsOf({ along, axis, digits }: WorkingAxis, registers: number): Cells {
  const owners: Owner[] = [];
  const own: { readonly stride: number; readonly radix: number; readonly weight: number }[] = [];
  let weight = 1;
  for (const { thread, stride, radix } of digits)
    if (thread === undefined) {
      own.push({ stride, radix, weight });
      for (let step = 1; step < radix; step *= 2) owners.push({ cell: step * weight });
      weight *= 2 ** bitsOf(radix);
    } else owners.push({ thread });
  const others = new Map<number, number>();
  const places = Array.from({ length: registers }, (_, register) => {
    let [rest, cell] = [register, 0];
    for (const digit of own) {
      const value = Math.floor(register / digit.stride) % digit.radix;
      rest -= value * digit.stride;
      cell += value * digit.weight;
    }
    const other = others.get(rest) ?? others.size;
    others.set(rest, other);
    return other * weight + cell;
  });
  const extent = along.expansion.shape[axis] ?? 1;
  return { owners: owners.slice(0, bitsOf(extent)), places, cells: others.size * weight };
}
