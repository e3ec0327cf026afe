/**
 * Combining elements along axes, for reductions of all kinds: within lanes, across lanes, across warps.
 *
 *   (L2 L3 L4 R1 W0 W1 | R0 L0 L1), all rows of one column
 *
 *   | step | combines                              | by                                     |
 *   |------|---------------------------------------|----------------------------------------|
 *   | 1    | registers with R1 = 0 and R1 = 1      | a tree of halves                       |
 *   | 2    | lanes that differ in L4, L3, L2       | `shfl.sync.bfly`, or one `redux.sync`    |
 *   | 3    | warps that differ in W1, W0           | scratch; each lane combines what it reads |
 *
 * Where all lanes of a warp hold the same by then, one of them tells it (`warp-words.ts`); here lanes of two columns do not.
 *
 * Lanes of a pair take the same step on the same two operands, so that in the end all of them hold the
 * same bits. Padding takes part as the neutral element. What is combined is a *carrier*: the registers of
 * one element, such as a key and its index.
 */
import type { AnyOp } from "../../../ir/node.ts";
import { laneBits, lanesPerWarp, threadBits } from "../../../layout/algebra/index-bits.ts";
import { firstThreadElements } from "../../../layout/algebra/element-maps.ts";
import {
  digitsAlong,
  registerPart,
  threadsAlong,
  weighed,
} from "../../../layout/model/axis-distribution.ts";
import type { Along } from "../../../layout/model/axis-distribution.ts";
import type { Operand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { TileValue } from "../values.ts";
import { TilePlaces } from "./valid-registers.ts";
import { shuffleWord } from "./relayout.ts";
import { tradeValues } from "./exchange-through-shared.ts";
import { warpValues } from "./warp-words.ts";

/** The registers of one element. */
export type Carrier = readonly Register[];

export interface Combination {
  readonly combine: (left: Carrier, right: Carrier) => Carrier;
  /** Stands for padding, one operand for each register. */
  readonly neutral: readonly Operand[];
  /** The instruction that combines all lanes of a warp, for carriers of one b32. */
  readonly redux?: string | undefined;
  /** Whether combining an element with itself changes nothing. */
  readonly idempotent: boolean;
}

/** Words of two elements each, for which there is an instruction that combines two and two. */
export interface Pairs {
  readonly words: readonly Register[];
  readonly combine: (left: Register, right: Register) => Register;
  readonly split: (word: Register) => readonly Carrier[];
}

/** A tile, and the axes along which it is combined. */
export interface Combined {
  readonly tile: Pick<TileValue, "layout" | "shape">;
  readonly axes: readonly number[];
  /** One for each register of the tile. */
  readonly carriers: () => readonly Carrier[];
  /** The same elements, where the order in which they are combined makes no difference. */
  readonly pairs?: Pairs | undefined;
  /** Where the result lies; undefined for a scalar. */
  readonly result: Pick<TileValue, "layout" | "shape"> | undefined;
}

/** The combined carriers, by register of the result; undefined for padding. */
export function combineAlong(
  context: EmitContext,
  op: AnyOp,
  combined: Combined,
  combination: Combination,
): readonly (Carrier | undefined)[] {
  const along = alongOf(combined);
  const slots: (Carrier | undefined)[] = withinLanes(context, combined, along, combination);
  const numbers = slots.flatMap((slot, index) => (slot === undefined ? [] : [index]));
  const threads = threadsAlong(along);
  let left = slots.flatMap((slot) => (slot === undefined ? [] : [slot]));
  left = acrossLanes(context, left, threads, unowned(along), combination);
  const alike = threads.reduce((mask, thread) => mask | (1 << thread), unowned(along));
  const isAlike = (alike & (lanesPerWarp - 1)) === lanesPerWarp - 1;
  left = acrossWarps(context, op, left, threads, isAlike, combination);
  numbers.forEach((number, index) => {
    slots[number] = left[index];
  });
  return slots;
}

function alongOf({ tile: { layout, shape }, axes }: Combined): Along {
  const along = layout.kind === "splat" ? undefined : digitsAlong(layout, shape, axes);
  if (along === undefined) throw new Error(`${layout.text} has no digits along its axes`);
  return along;
}

/** Lane bits that own nothing. */
function unowned({ expansion }: Along): number {
  const owned = expansion.axes
    .flat()
    .reduce((mask, { thread }) => (thread === undefined ? mask : mask | (1 << thread)), 0);
  return (lanesPerWarp - 1) & ~owned;
}

interface Member {
  /** Row-major along the combined axes. */
  readonly position: number;
  readonly carrier: Carrier;
}

/** Row-major numbers of a register's element along the combined axes, and along those that stay. */
function numbersOf({
  expansion,
  axes,
}: Along): (register: number) => { readonly position: number; readonly kept: number | undefined } {
  const digits = expansion.shape.map((_, axis) => weighed(expansion, axis));
  return (register) => {
    let position = 0;
    let kept: number | undefined = 0;
    expansion.shape.forEach((extent, axis) => {
      const coordinate = registerPart(digits[axis] ?? [], register);
      if (axes.includes(axis)) position = position * extent + coordinate;
      else
        kept = kept === undefined || coordinate >= extent ? undefined : kept * extent + coordinate;
    });
    return { position, kept };
  };
}

function withinLanes(
  context: EmitContext,
  { carriers, pairs, result }: Combined,
  along: Along,
  combination: Combination,
): (Carrier | undefined)[] {
  const places = new TilePlaces(context, along.expansion);
  const numbers = numbersOf(along);
  const singly = (): Map<number, Member[]> => {
    const groups = new Map<number, Member[]>();
    carriers().forEach((carrier, register) => {
      const { position, kept } = numbers(register);
      const inside = places.inside(register, along.axes);
      if (kept === undefined || inside === false) return;
      const own = inside === true ? carrier : guarded(context, carrier, inside, combination);
      const members = groups.get(kept) ?? [];
      members.push({ position, carrier: own });
      groups.set(kept, members);
    });
    return groups;
  };
  const isInside = (register: number): boolean => places.inside(register, along.axes) === true;
  const groups = (pairs && inPairs(pairs, numbers, isInside)) ?? singly();
  const elements = result === undefined ? [0] : firstThreadElements(result.layout, result.shape);
  return Array.from(elements, (element) => {
    const members = groups.get(element);
    if (members === undefined) return undefined;
    members.sort((left, right) => left.position - right.position);
    return halves(
      members.map(({ carrier }) => carrier),
      combination.combine,
    );
  });
}

/** Members by their numbers, two for each; undefined where words have padding, or elements of two numbers. */
function inPairs(
  { words, combine, split }: Pairs,
  numbers: ReturnType<typeof numbersOf>,
  isInside: (register: number) => boolean,
): Map<number, Member[]> | undefined {
  const groups = new Map<number, Register[]>();
  for (const [index, word] of words.entries()) {
    const [low, high] = [2 * index, 2 * index + 1];
    const { kept } = numbers(low);
    if (kept === undefined || kept !== numbers(high).kept) return undefined;
    if (!isInside(low) || !isInside(high)) return undefined;
    groups.set(kept, [...(groups.get(kept) ?? []), word]);
  }
  const members = (own: readonly Register[]): Member[] => {
    const combined = halves(
      own.map((word) => [word]),
      ([left], [right]) =>
        left === undefined || right === undefined ? [] : [combine(left, right)],
    );
    const [word] = combined ?? [];
    return word === undefined
      ? []
      : split(word).map((carrier, position) => ({ position, carrier }));
  };
  return new Map(Array.from(groups, ([kept, own]) => [kept, members(own)] as const));
}

/** The carrier, or the neutral one in lanes where it is padding. */
function guarded(
  { code }: EmitContext,
  carrier: Carrier,
  inside: Register,
  { neutral }: Combination,
): Carrier {
  return carrier.map((register, index) => {
    const type = register.type === "b64" ? "b64" : "b32";
    return code.make(type, `selp.${type}`, register, neutral[index] ?? integer(0), inside);
  });
}

/** The first half takes in the second, until one is left. */
function halves(
  carriers: readonly Carrier[],
  combine: Combination["combine"],
): Carrier | undefined {
  let left = carriers;
  while (left.length > 1) {
    const kept = 2 ** Math.ceil(Math.log2(left.length) - 1);
    left = left.slice(0, kept).map((carrier, index) => {
      const other = left[index + kept];
      return other === undefined ? carrier : combine(carrier, other);
    });
  }
  return left[0];
}

function acrossLanes(
  context: EmitContext,
  carriers: readonly Carrier[],
  threads: readonly number[],
  free: number,
  { combine, redux, idempotent }: Combination,
): Carrier[] {
  const lanes = threads.filter((thread) => thread < laneBits);
  const mask = lanes.reduce((sum, lane) => sum | (1 << lane), idempotent ? free : 0);
  if (redux !== undefined && mask === lanesPerWarp - 1 && lanes.length > 1)
    return carriers.map((carrier) =>
      carrier.map((register) => context.code.make("b32", redux, register, integer(-1))),
    );
  return carriers.map((carrier) =>
    lanes.reduce<Carrier>((own, lane) => {
      const other = own.map((each) => shuffleWord(context, each, "bfly", integer(1 << lane)));
      return combine(own, other);
    }, carrier),
  );
}

function acrossWarps(
  context: EmitContext,
  op: AnyOp,
  carriers: readonly Carrier[],
  threads: readonly number[],
  /** Whether all lanes of a warp hold the same. */
  isAlike: boolean,
  { combine }: Combination,
): Carrier[] {
  const warps = threads.filter((thread) => thread >= laneBits && thread < threadBits);
  if (warps.length === 0 || carriers.length === 0) return [...carriers];
  const ascending = warps.toSorted((left, right) => left - right);
  const masks = ascending.reduce<readonly number[]>(
    (sums, warp) => [...sums, ...sums.map((sum) => sum | (1 << warp))],
    [0],
  );
  const values = carriers.flat();
  const held = isAlike
    ? warpValues(context, op, values, ascending)
    : [values, ...tradeValues(context, op, values, masks.slice(1))];
  let first = 0;
  return carriers.map((own) => {
    const start = first;
    first += own.length;
    const members = masks.map((mask, index): readonly [number, Carrier] => [
      mask,
      (held[index] ?? []).slice(start, start + own.length),
    ]);
    return fold(new Map(members), warps, combine);
  });
}

/** What lanes hold by the bits in which they differ from this one, or from the first, combined bit by bit. */
function fold(
  held: ReadonlyMap<number, Carrier>,
  warps: readonly number[],
  combine: Combination["combine"],
): Carrier {
  let left = held;
  for (const warp of warps) {
    const next = new Map<number, Carrier>();
    for (const [mask, carrier] of left) {
      const other = left.get(mask | (1 << warp));
      if ((mask & (1 << warp)) === 0 && other !== undefined)
        next.set(mask, combine(carrier, other));
    }
    left = next;
  }
  const root = left.get(0);
  if (root === undefined) throw new Error("nothing is left of a combination");
  return root;
}
