/**
 * What it costs to bring tiles of one type from one register layout to another, quickly and for many pairs
 * of layouts. Each thread bit of a layout is a condition on the lanes that hold an element: "L2 is bit 0 of
 * the row". Comparing the conditions of source and target tells the kind of the conversion:
 *
 *   | conditions of the source                      | kind      |
 *   |-----------------------------------------------|-----------|
 *   | all are conditions of the target              | registers |
 *   | those on warps are the same                   | shuffle   |
 *   | others                                        | shared    |
 *
 * The prices are estimates; the plan of a conversion that is really made counts its instructions.
 */
import { Memo } from "../../support/memo.ts";
import { laneBits, threadBits } from "../algebra/index-bits.ts";
import { binaryDigits, expand, expandFlat } from "../algebra/expansion.ts";
import type { Expansion } from "../algebra/expansion.ts";
import { replication } from "../algebra/register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "../algebra/register-layout.ts";
import { packing, wordsPerLane } from "../algebra/vectors.ts";
import { costs } from "./cost.ts";

/** How a value gets from one layout to another. */
export type ConversionKind = "none" | "registers" | "shuffle" | "shared";

/** For each thread bit the coordinate bit that it is; `free` where it is none. */
type Conditions = Int32Array;

const free = -1;
/** The place of coordinate bits that are zero in the whole tile. */
const alwaysZero = -2;
/** Places of one axis lie below those of the next. */
const placesPerAxis = 64;

/** What is known of a layout: its conditions over the tile's axes, and over the element's number. */
interface Profile {
  readonly byAxes: Conditions | undefined;
  readonly byNumber: Conditions | undefined;
  readonly words: number;
  /** What elements share words: how many neighbours of the last axis, or of elements of 4 bits, which coordinates differ. */
  readonly packing: number | string;
  readonly replication: number;
}

const commonConversions = new Memo<Conversions>(128);

/** Conversions of tiles of one shape, with elements of so many bits, which all kernels share. */
export function conversionsOf(shape: readonly number[], bits: number): Conversions {
  return commonConversions.get(`${shape.join()} ${bits}`, () => new Conversions(shape, bits));
}

/** Conversions of tiles of one shape, with elements of so many bits. */
class Conversions {
  readonly #shape: readonly number[];
  readonly #bits: number;
  readonly #profiles = new Memo<Profile>(1024);

  constructor(shape: readonly number[], bits: number) {
    this.#shape = shape;
    this.#bits = bits;
  }

  /** Undefined where there is no way: different numbers cannot become one. */
  kind(source: RegisterLayout, target: RegisterLayout): ConversionKind | undefined {
    if (source.text === target.text || source.kind === "splat") return "none";
    if (target.kind === "splat") return undefined;
    const [from, to] = [this.#profile(source), this.#profile(target)];
    const [outer, inner] =
      from.byAxes !== undefined && to.byAxes !== undefined
        ? [from.byAxes, to.byAxes]
        : [from.byNumber, to.byNumber];
    if (outer === undefined || inner === undefined) return "shared";
    if (within(outer, inner, 0)) return "registers";
    const sameWarps = within(outer, inner, laneBits) && within(inner, outer, laneBits);
    return sameWarps ? "shuffle" : "shared";
  }

  cost(source: RegisterLayout, target: RegisterLayout): number | undefined {
    const kind = this.kind(source, target);
    if (kind === undefined || kind === "none") return kind && 0;
    if (source.kind === "splat" || target.kind === "splat") return undefined;
    const [from, to] = [this.#profile(source), this.#profile(target)];
    const words = Math.max(from.words, to.words);
    const far = costs.barriers + costs.sharedWord * words;
    if (kind === "shared") return far;
    if (kind === "shuffle") return Math.min(far, costs.shuffledWord * words);
    const packed = this.#bits >= 32 || from.packing === to.packing;
    const moved = words * (packed ? costs.renamedWord : costs.repackedWord);
    const choices = from.replication / to.replication - 1;
    return Math.min(far, moved + choices * to.words * costs.selectedWord);
  }

  #profile(layout: DistributedLayout): Profile {
    return this.#profiles.get(layout.text, () => {
      const byAxes = expand(layout, this.#shape);
      const byNumber = expandFlat(layout, this.#shape);
      return {
        byAxes: byAxes && conditionsOf(byAxes),
        byNumber: byNumber && conditionsOf(byNumber),
        words: wordsPerLane(layout, this.#shape, this.#bits),
        packing:
          this.#bits === 4 && byAxes !== undefined
            ? sharedPlaces(byAxes)
            : packing(layout, this.#shape, this.#bits),
        replication: replication(layout),
      };
    });
  }
}

/** The coordinate bits in which the eight elements of a word differ, in the order of its slots. */
function sharedPlaces({ axes }: Expansion): string {
  const places: { readonly stride: number; readonly text: string }[] = [];
  axes.forEach((digits, axis) => {
    let place = 1;
    for (const { thread, radix, stride } of binaryDigits(digits)) {
      if (thread === undefined && stride < 8) places.push({ stride, text: `${axis}:${place}` });
      place *= radix;
    }
  });
  return places
    .sort((left, right) => left.stride - right.stride)
    .map(({ text }) => text)
    .join();
}

function conditionsOf({ shape, axes }: Expansion): Conditions {
  const conditions = new Int32Array(threadBits).fill(free);
  axes.forEach((digits, axis) => {
    let place = 1;
    for (const { thread, radix } of binaryDigits(digits)) {
      const used = place < (shape[axis] ?? 1);
      if (thread !== undefined)
        conditions[thread] = used ? axis * placesPerAxis + Math.log2(place) : alwaysZero;
      place *= radix;
    }
  });
  return conditions;
}

/** Whether the thread bits from `first` on ask nothing in `outer` that they do not ask in `inner`. */
function within(outer: Conditions, inner: Conditions, first: number): boolean {
  for (let thread = first; thread < threadBits; thread += 1) {
    const place = outer[thread] as number;
    if (place !== free && place !== inner[thread]) return false;
  }
  return true;
}
