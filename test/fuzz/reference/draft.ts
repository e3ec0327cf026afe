/** A random program as it grows: what is in sight, the steps so far, and values of a wanted kind. */
import { bool, dtypes, i32 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { constant, full, iota } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { countOf, held, joined } from "./held.ts";
import type { Held } from "./held.ts";
import { cast, floatLimits, integerLimits, wrap } from "./numbers.ts";
import type { Item } from "./numbers.ts";
import { neededSteps } from "./steps.ts";
import type { Body, Computing, Slot, Step, TracedValue, Tracing, Value } from "./steps.ts";

/** Every format, those with arithmetic twice. */
export const formats: readonly DType[] = Object.values(dtypes);
export const numberFormats: readonly DType[] = [
  ...["f64", "f32", "tf32", "f16", "bf16", "i4", "i8", "i16", "i32", "i64"],
  ...["u4", "u8", "u16", "u32", "u64", "f32", "i32"],
].map((name) => dtypes[name as keyof typeof dtypes]);

export const isFloat = ({ kind }: DType): boolean => kind === "float";
export const isInteger = ({ kind }: DType): boolean => kind === "signed" || kind === "unsigned";
export const isNumber = (dtype: DType): boolean => numberFormats.includes(dtype);

const edges = [
  0, 0.5, 1, 1.5, 2, 2.5, 3, 6, 7, 7.5, 8, 15, 15.5, 16, 127, 127.5, 128, 255, 255.5, 256,
];
const farEdges = [
  ...[
    448, 464, 465, 480, 32_767.5, 32_768, 57_344, 61_440, 65_504, 65_519, 65_520, 65_535.5, 65_536,
  ],
  ...[
    2 ** 31 - 1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 53 + 2,
    2 ** 63,
    2 ** 64,
    1e30,
    2 ** 127,
    1e300,
  ],
  ...[2 ** -9, 2 ** -10, 2 ** -24, 2 ** -25, 2 ** -126, 2 ** -133, 2 ** -149, 2 ** -150, 5e-324],
  ...[Infinity, NaN],
];

/** A number of a format: of its edges and of others' more often than chance would have it. */
export function anyItem(dtype: DType, random: Random): Item {
  if (dtype.kind === "bool") return random.below(2) === 0;
  const sign = random.below(2) === 0 ? -1 : 1;
  if (isInteger(dtype)) {
    const [least, most] = integerLimits(dtype);
    const kind = random.below(5);
    if (kind === 0) return random.pick([least, least + 1n, most, most - 1n, 0n]);
    if (kind === 1) return wrap(dtype, 1n << BigInt(random.below(dtype.bits)));
    if (kind < 4) return cast(dtypes.i64, dtype, BigInt(sign * random.below(12)));
    return cast(dtypes.u64, dtype, (BigInt(random.bits()) << 32n) | BigInt(random.bits()));
  }
  const kind = random.below(6);
  const value =
    kind < 2
      ? random.pick(edges)
      : kind === 2
        ? random.pick(farEdges)
        : kind === 3
          ? random.below(40)
          : kind === 4
            ? random.normal()
            : (1 + random.uniform()) * 2 ** (random.below(80) - 40);
  const item = cast(dtypes.f64, dtype, sign * value);
  if (dtype.name === "f8e8m0fnu" && random.below(2) === 0) return 2 ** (random.below(9) - 4);
  return item;
}

export interface DraftOptions {
  readonly blocks: number;
}

export class Draft {
  readonly random: Random;
  readonly blocks: number;
  pool: Slot[] = [];
  steps: Step[] = [];
  /** Bodies around the one that grows. */
  depth = 0;
  /** Global memory of each thread of each block, by name. */
  readonly scratch = new Map<
    string,
    { readonly dtype: DType; readonly shape: readonly number[] }
  >();
  /** Whether the steps that are made now are taken by each warp on its own. */
  inWarps = false;
  #slots = 0;
  readonly extents: readonly number[];
  /** The most elements of a tile. */
  readonly room: number;

  constructor(random: Random, { blocks }: DraftOptions) {
    this.random = random;
    this.blocks = blocks;
    // Most programs are small, so that there can be many.
    const isLarge = random.below(12) === 0;
    this.room = isLarge ? 8192 : 1024;
    const sizes = [1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 32, 33];
    if (isLarge) sizes.push(48, 64, 64, 96, 100, 127, 128, 129, 255, 256, 257, 1000);
    this.extents = Array.from({ length: 3 }, () => random.pick(sizes));
  }

  chance(probability: number): boolean {
    return this.random.uniform() < probability;
  }

  slot(dtype: DType, shape: readonly number[]): Slot {
    return { id: this.#slots++, dtype, shape };
  }

  /** A step with one result. */
  give(
    name: string,
    uses: readonly Slot[],
    dtype: DType,
    shape: readonly number[],
    trace: (...values: Value[]) => unknown,
    compute: (...values: Held[]) => Held,
  ): Slot {
    return this.giveBy(
      name,
      uses,
      dtype,
      shape,
      ({ read }) => trace(...uses.map(read)),
      ({ read }) => compute(...uses.map(read)),
    );
  }

  /** The same, of what it reads by itself. */
  giveBy(
    name: string,
    uses: readonly Slot[],
    dtype: DType,
    shape: readonly number[],
    trace: (tracing: Tracing) => unknown,
    compute: (computing: Computing) => Held,
  ): Slot {
    const given = this.slot(dtype, shape);
    this.add({
      name,
      uses,
      gives: [given],
      trace: (tracing) => [trace(tracing) as TracedValue],
      compute: (computing) => [compute(computing)],
    });
    return given;
  }

  add(step: Step): void {
    this.steps.push(step);
    this.pool.push(...step.gives);
  }

  /** Steps in a body of their own; what it makes is gone afterwards. */
  body(takes: readonly Slot[], fill: () => readonly Slot[]): Body {
    const [pool, steps] = [this.pool, this.steps];
    this.pool = [...pool, ...takes];
    this.steps = [];
    this.depth += 1;
    const results = fill();
    // A comparison that nothing uses is taken for a mistake.
    const made = { takes, steps: neededSteps(this.steps, results), results };
    [this.pool, this.steps] = [pool, steps];
    this.depth -= 1;
    return made;
  }

  shape(): readonly number[] {
    const [a = 1, b = 1, c = 1] = this.extents;
    const shapes = [
      [a],
      [b],
      [a, b],
      [a, b],
      [b, a],
      [1, b],
      [a, 1],
      [a, b, c],
      [c, 1, b],
      [1],
      [1, 1],
      [1, a, 1],
    ];
    const shape = this.random.pick(shapes);
    return countOf(shape) <= this.room ? shape : [a];
  }

  find(wanted: (slot: Slot) => boolean): Slot | undefined {
    const fitting = this.pool.filter(wanted);
    return fitting.length === 0 ? undefined : this.random.pick(fitting);
  }

  /** A value in sight of some format, or one made for it. */
  some(wanted: (slot: Slot) => boolean, among: readonly DType[] = numberFormats): Slot {
    const found = this.chance(0.9) ? this.find(wanted) : undefined;
    if (found !== undefined) return found;
    for (;;) {
      const [dtype, shape] = [this.random.pick(among), this.shape()];
      if (wanted({ id: -1, dtype, shape })) return this.constantOf(dtype, shape);
    }
  }

  constantOf(dtype: DType, shape: readonly number[], item = this.literal(dtype)): Slot {
    return this.give(
      "constant",
      [],
      dtype,
      shape,
      () =>
        shape.length === 0 ? constant(dtype, item as never) : full(dtype, shape, item as never),
      () => held(dtype, shape, () => item),
    );
  }

  /** A number that may be written beside a value of the format. */
  literal(dtype: DType): Item {
    for (;;) {
      const item = anyItem(dtype, this.random);
      const isWritten =
        typeof item !== "number" ||
        Number.isFinite(item) ||
        floatLimits[dtype.name as "f32"].hasInfinity ||
        (Number.isNaN(item) && !/^f[46]e/.test(dtype.name));
      if (isWritten) return item;
    }
  }

  count(shape: readonly number[], axis: number, dtype: DType = i32): Slot {
    // The format of scales has no 0 to count from.
    if (dtype.name === "f8e8m0fnu") return this.converted(this.count(shape, axis), dtype);
    return this.give(
      "iota",
      [],
      dtype,
      shape,
      () => iota(dtype, shape, { axis }),
      () => held(dtype, shape, (place) => cast(i32, dtype, BigInt(place[axis] ?? 0))),
    );
  }

  converted(source: Slot, dtype: DType): Slot {
    if (source.dtype === dtype) return source;
    return this.give(
      "cast",
      [source],
      dtype,
      source.shape,
      (value) => value.cast(dtype),
      (value) => {
        const { items, shape } = value;
        return held(dtype, shape, (_, at) => cast(source.dtype, dtype, items[at] ?? 0));
      },
    );
  }

  /** A value of a format that goes with a shape: one in sight, or one converted, or a constant. */
  partner(dtype: DType, shape: readonly number[]): Slot {
    const fits = (slot: Slot): boolean => {
      const both = joined(slot.shape, shape);
      return both !== undefined && countOf(both) <= this.room;
    };
    const same = this.find((slot) => slot.dtype === dtype && fits(slot));
    if (same !== undefined && this.chance(0.6)) return same;
    const other = this.find((slot) => fits(slot));
    if (other !== undefined && this.chance(0.5)) return this.converted(other, dtype);
    return this.constantOf(dtype, this.chance(0.5) ? shape : []);
  }

  /** A value of exactly this format and shape. */
  exactly(dtype: DType, shape: readonly number[]): Slot {
    const same = this.find((slot) => slot.dtype === dtype && slot.shape.join() === shape.join());
    if (same !== undefined && this.chance(0.8)) return same;
    const other = this.find((slot) => slot.shape.join() === shape.join());
    if (other !== undefined && this.chance(0.6)) return this.converted(other, dtype);
    return this.constantOf(dtype, shape);
  }

  condition(shape: readonly number[]): Slot {
    return this.partner(bool, shape);
  }

  /** A scalar of i32 from 0 up to below a limit. */
  indexBelow(limit: number): Slot {
    const source = this.exactly(i32, []);
    return this.give(
      "index",
      [source],
      i32,
      [],
      (value) => value.maximum(0).minimum(limit - 1),
      (value) => {
        const at = Number(value.items[0] ?? 0);
        return held(i32, [], () => BigInt(Math.min(limit - 1, Math.max(0, at))));
      },
    );
  }

  /** Positions below a limit, a tile of i32 or i64. */
  indicesBelow(shape: readonly number[], limit: number, dtype: DType): Slot {
    const source = this.exactly(dtype, shape);
    return this.give(
      "indices",
      [source],
      dtype,
      shape,
      (value) => value.maximum(0).minimum(limit - 1),
      (value) => {
        const { items } = value;
        return held(dtype, shape, (_, at) => {
          const item = BigInt(items[at] ?? 0);
          const most = BigInt(limit - 1);
          return item < 0n ? 0n : item > most ? most : item;
        });
      },
    );
  }

  /** Small whole numbers, of which every order of adding gives the same; NaN stays. */
  tamed(source: Slot, most: number): Slot {
    const { dtype, shape } = source;
    if (!isFloat(dtype)) return source;
    return this.give(
      "tamed",
      [source],
      dtype,
      shape,
      (value) => value.maximum(-most).minimum(most).floor().add(0),
      (value) => {
        const { items } = value;
        return held(dtype, shape, (_, at) => {
          const item = Number(items[at]);
          return Number.isNaN(item) ? NaN : Math.floor(Math.max(-most, Math.min(most, item))) + 0;
        });
      },
    );
  }
}
