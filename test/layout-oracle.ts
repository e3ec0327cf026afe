/**
 * What layouts mean, computed one place at a time from their spelling, and random spellings to try it
 * on. Nothing here uses the algebra it checks, but for its constructors.
 */
import { axesLayout, flatLayout } from "../src/layout/algebra/register-layout.ts";
import type { DistributedLayout } from "../src/layout/algebra/register-layout.ts";
import type { Random } from "../src/support/random.ts";

/** A layout as somebody wrote it: the names of the bits of each axis, not canonical. */
export interface Spelling {
  readonly kind: "axes" | "flat";
  readonly axes: readonly (readonly string[])[];
}

export function spellingText({ kind, axes }: Spelling): string {
  const inside = axes.map((bits) => bits.join(" ")).join(" | ");
  return kind === "flat" ? `flat(${inside})` : `(${inside})`;
}

export function spellingOf(layout: DistributedLayout): Spelling {
  const inside = layout.text.replace(/^(flat)?\(/, "").replace(/\)$/, "");
  const texts = inside === "" ? [] : inside.split("|");
  const axes = texts.map((axis) => axis.split(" ").filter((word) => word !== ""));
  return { kind: layout.kind, axes };
}

export function volume(shape: readonly number[]): number {
  return shape.reduce((total, extent) => total * extent, 1);
}

/** Row-major number of coordinates; undefined outside the shape. */
export function numberOf(coordinates: readonly number[], shape: readonly number[]) {
  let result = 0;
  for (const [axis, coordinate] of coordinates.entries()) {
    const extent = shape[axis] ?? 1;
    if (coordinate < 0 || coordinate >= extent) return undefined;
    result = result * extent + coordinate;
  }
  return result;
}

export function coordinatesOf(element: number, shape: readonly number[]): number[] {
  const coordinates = shape.map(() => 0);
  let rest = element;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const extent = shape[axis] ?? 1;
    coordinates[axis] = rest % extent;
    rest = Math.floor(rest / extent);
  }
  return coordinates;
}

/** For each thread, the element of each register; undefined for padding. */
export type Places = readonly (readonly (number | undefined)[])[];

export function placesOf({ kind, axes }: Spelling, tile: readonly number[], warps = 4): Places {
  const shape = kind === "flat" ? [volume(tile)] : tile;
  const lists = [...Array<string[]>(shape.length - axes.length).fill([]), ...axes];
  const copies = shape.map((extent, axis) => Math.ceil(extent / 2 ** (lists[axis]?.length ?? 0)));
  const registerBits = lists.flat().filter((bit) => bit.startsWith("R"));
  const sorted = registerBits.map((bit) => Number(bit.slice(1))).sort((a, b) => a - b);
  const perAtom = 2 ** registerBits.length;
  // A coordinate is the sum of what the thread's bits and what the register's bits put there.
  const partOf = (names: RegExp, number: number): readonly number[] =>
    lists.map((bits) =>
      bits.reduce(
        (sum, bit, position) =>
          names.test(bit) ? sum + (bitOf(bit, number, sorted) << position) : sum,
        0,
      ),
    );
  const registers = Array.from({ length: perAtom * volume(copies) }, (_, register) => {
    const copy = coordinatesOf(Math.floor(register / perAtom), copies);
    return partOf(/^R/, register).map(
      (inside, axis) => inside + (copy[axis] ?? 0) * 2 ** (lists[axis]?.length ?? 0),
    );
  });
  return Array.from({ length: 32 * warps }, (_, thread) => {
    const own = partOf(/^[LW]/, thread);
    return registers.map((inside) => {
      let element = 0;
      for (let axis = 0; axis < shape.length; axis += 1) {
        const extent = shape[axis] as number;
        const coordinate = (own[axis] as number) + (inside[axis] as number);
        if (coordinate >= extent) return undefined;
        element = element * extent + coordinate;
      }
      return element;
    });
  });
}

/** The value of a bit in a thread, or in a register, whose bits are numbered without gaps. */
function bitOf(bit: string, number: number, registers: readonly number[]): number {
  const index = Number(bit.slice(1));
  if (bit.startsWith("R")) return (number >> registers.indexOf(index)) & 1;
  return (number >> (bit.startsWith("L") ? index : 5 + index)) & 1;
}

/** Sorted thread lists by element. */
export function lanesOf(places: Places, elements: number): readonly (readonly number[])[] {
  const lanes = Array.from({ length: elements }, (): number[] => []);
  places.forEach((registers, thread) => {
    for (const element of registers) if (element !== undefined) lanes[element]?.push(thread);
  });
  return lanes;
}

export function shuffled<T>(random: Random, items: readonly T[]): T[] {
  const result = [...items];
  for (let last = result.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [result[last], result[other]] = [result[other] as T, result[last] as T];
  }
  return result;
}

const laneNames = ["L0", "L1", "L2", "L3", "L4"];

/** Random bits on `rank` axes: some lanes and warps, and up to `registers` registers with gaps. */
export function randomSpelling(random: Random, rank: number, registers = 3, warps = 4): Spelling {
  const kind = random.below(4) === 0 ? "flat" : "axes";
  const warpNames = Array.from({ length: Math.log2(warps) }, (_, bit) => `W${bit}`);
  const threads = shuffled(random, [...laneNames, ...warpNames]).slice(0, random.below(6));
  const numbers = shuffled(random, [0, 1, 2, 3, 4, 6, 9]).slice(0, random.below(registers + 1));
  const bits = shuffled(random, [...threads, ...numbers.map((index) => `R${index}`)]);
  const count = kind === "flat" ? 1 : 1 + random.below(rank);
  const axes = Array.from({ length: count }, (): string[] => []);
  for (const bit of bits) random.pick(axes).push(bit);
  return { kind, axes };
}

/** Extents with and without powers of two. */
export function randomShape(random: Random, rank: number): number[] {
  const extents = [1, 2, 3, 4, 5, 6, 8, 8, 12, 16];
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis += 1) {
    const room = 256 / volume(shape);
    shape.push(random.pick(extents.filter((extent) => extent <= Math.max(1, room))));
  }
  return shuffled(random, shape);
}

export function layoutOf({ kind, axes }: Spelling): DistributedLayout {
  const code = (bit: string): number => {
    const index = Number(bit.slice(1));
    if (bit.startsWith("R")) return index;
    return bit.startsWith("L") ? -1 - index : -6 - index;
  };
  const coded = axes.map((bits) => bits.map(code));
  return kind === "flat" ? flatLayout(coded[0] ?? []) : axesLayout(coded);
}
