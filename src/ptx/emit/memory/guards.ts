/**
 * Which elements of a lane may be accessed: inside the windows that the window was cut from, and inside the
 * tile where its layout overhangs. Along each axis all bounds become one room, counted from the window's
 * start, of which the lane takes its own part once; each distinct part of the registers is one comparison.
 *
 *   window from 64 i of n rows, row = lane part + 8 · j
 *
 *   room  = n − 64 i              uniform
 *   limit = room − lane part      once a lane
 *   p_j   = limit > 8 · j         one for each j, shared by the registers of a row
 *
 * Nothing of this may wrap around. A start before the array or behind it is moved to where it says the same:
 *
 *   | start of `extent` elements        | room of n                                                        |
 *   |-----------------------------------|------------------------------------------------------------------|
 *   | from 0 to n                       | n − start                                                        |
 *   | from 0 on, or so far before 0     | n − min(start, n), unsigned: what is before 0 counts as behind n |
 *   | that nothing is left              |                                                                  |
 *   | anything                          | min(n − min(start, n), extent), unsigned                         |
 *
 * From below, an element is inside where start + part ≥ 0; the sum wraps only where it is behind n. This refuses all of a
 * window that lies so far before 0 that n − start wraps.
 */
import { overlapsZero, testsStart } from "../../../layout/access/global-unit.ts";
import type { TileParts } from "../../../layout/access/lane-coordinates.ts";
import type { Bound as AnyBound } from "../../../layout/access/window.ts";
import type { EmitContext } from "../context.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { IndexValue, Position } from "../values.ts";
import { indexRegister, sizeIndex } from "./positions.ts";
import type { ThreadCoordinates } from "./thread-coordinates.ts";
import type { Gather } from "./gathers.ts";

type Bound = AnyBound<Position>;

/** The same in all lanes, or what a predicate says in each. */
export type Truth = Register | boolean;

/** Conjunctions of predicates, each made once. */
export class Conjunctions {
  readonly #context: EmitContext;
  readonly #known = new Map<string, Register>();

  constructor(context: EmitContext) {
    this.#context = context;
  }

  all(truths: readonly Truth[]): Truth {
    if (truths.includes(false)) return false;
    const registers = truths.filter((truth) => typeof truth !== "boolean");
    const [first, ...others] = new Set(registers);
    if (first === undefined) return true;
    return others.reduce((left, right) => this.#both(left, right), first);
  }

  #both(left: Register, right: Register): Register {
    const key = `${left.name} ${right.name}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = this.#context.code.make("pred", "and.pred", left, right);
    this.#known.set(key, made);
    return made;
  }
}

/** A count of elements. */
interface Side extends IndexValue {
  /** Whether register and constant together, both from 0 on, may be beyond the greatest index. */
  readonly mayPass?: boolean;
}

/** What bounds leave of a window. */
export interface Rooms {
  /** Elements before `high` are inside on that side. */
  readonly high: Side | undefined;
  /** Elements are inside on this side where `low` added to them gives 0 or more. */
  readonly low: Side | undefined;
}

const greatestIndex = 2n ** 31n - 1n;

export function roomsOf(context: EmitContext, bounds: readonly Bound[], extent: number): Rooms {
  const above = bounds.filter(({ high }) => high);
  const below = bounds.filter((bound) => testsStart(bound, extent));
  return {
    high: lowest(
      context,
      above.map((bound) => roomAbove(context, bound, extent)),
    ),
    low: lowest(
      context,
      below.map(({ start }) => startSide(context, start, extent)),
    ),
  };
}

function startSide(context: EmitContext, start: Bound["start"], extent: number): Side {
  if (start.register === undefined)
    return { register: undefined, constant: Math.max(start.constant, -extent) };
  return { register: indexRegister(context, start), constant: 0 };
}

function roomAbove(context: EmitContext, bound: Bound, extent: number): Side {
  const { start, size } = bound;
  const end = sizeIndex(context, size);
  if (start.register === undefined && Math.abs(start.constant) <= maximumImmediate) {
    const first = start.constant;
    // Nothing is left, and nobody else asks.
    if (first <= -extent) return { register: undefined, constant: 0 };
    const mayPass = end.register !== undefined && first < 0;
    return { register: end.register, constant: end.constant - first, mayPass };
  }
  const low = start.fact.least >= 0n || overlapsZero(bound, extent);
  if (low && end.register === undefined && end.constant <= maximumImmediate && isShort(start)) {
    const register = context.code.make("b32", "neg.s32", indexRegister(context, start));
    return { register, constant: end.constant };
  }
  const register = clampedRoom(context, bound, indexRegister(context, end), extent);
  return { register, constant: 0 };
}

/** Constants so far from the ends of i32 that what registers add to them stays inside. */
const maximumImmediate = 2 ** 30;

function isShort({ fact: { least, greatest } }: Bound["start"]): boolean {
  return least >= -BigInt(maximumImmediate) && greatest <= BigInt(maximumImmediate);
}

/** b32: from 0 to the size, or to the extent where that is less. */
function clampedRoom(context: EmitContext, bound: Bound, end: Register, extent: number): Register {
  const { code, windows } = context;
  const { fact } = bound.start;
  const { facts } = windows;
  const mayBeBehind = !facts.isAtMost(fact, bound.size);
  let first = indexRegister(context, bound.start);
  if (!overlapsZero(bound, extent)) {
    if (mayBeBehind || fact.least < 0n) first = code.make("b32", "min.u32", first, end);
    return code.make("b32", "sub.s32", end, first);
  }
  if (mayBeBehind) first = code.make("b32", "min.s32", first, end);
  const room = code.make("b32", "sub.s32", end, first);
  const fits = facts.sizes.of(bound.size).greatest + BigInt(extent) <= greatestIndex;
  return fits ? room : code.make("b32", "min.u32", room, integer(extent));
}

/** The least of several. */
function lowest(context: EmitContext, sides: readonly Side[]): Side | undefined {
  const [first, ...others] = sides;
  if (first === undefined) return undefined;
  return others.reduce((left, right) => {
    if (left.register === undefined && right.register === undefined)
      return { register: undefined, constant: Math.min(left.constant, right.constant) };
    const [a, b] = [left, right].map((side) => wholeSide(context, side));
    if (a === undefined || b === undefined) throw new Error("two sides");
    return { register: context.code.make("b32", "min.s32", a, b), constant: 0 };
  }, first);
}

/** b32: the side in one register, at most the greatest index. */
function wholeSide(context: EmitContext, side: Side): Register {
  const sum = indexRegister(context, side);
  if (side.mayPass !== true) return sum;
  return context.code.make("b32", "min.u32", sum, integer(Number(greatestIndex)));
}

/** The tests of one axis. */
class AxisGuard {
  readonly #context: EmitContext;
  readonly #rooms: Rooms;
  readonly #most: number;
  readonly #lane: () => Register | undefined;
  readonly #known = new Map<string, Truth>();
  readonly #numbers = new Map<string, Register>();

  constructor(context: EmitContext, rooms: Rooms, most: number, lane: () => Register | undefined) {
    this.#context = context;
    this.#rooms = rooms;
    this.#most = most;
    this.#lane = lane;
  }

  /** Whether the lane's part plus `part` is inside. */
  truths(part: number, extent: number): readonly Truth[] {
    const { low, high } = this.#rooms;
    const inTile = this.#below({ register: undefined, constant: extent }, part);
    const below = high === undefined ? true : this.#below(high, part);
    return [inTile, below, low === undefined ? true : this.#from(low, part)];
  }

  #below(room: IndexValue, part: number): Truth {
    const left = room.constant - part;
    if (room.register === undefined) {
      if (left <= 0) return false;
      if (left > this.#most) return true;
    }
    return this.#once(`below ${room.register?.name} ${left}`, () => {
      const lane = this.#lane();
      const { code } = this.#context;
      if (room.register === undefined && lane !== undefined)
        return code.make("pred", "setp.lt.s32", lane, integer(left));
      return code.make("pred", "setp.gt.s32", this.#limit(room), integer(-left));
    });
  }

  #from(start: IndexValue, part: number): Truth {
    const first = start.constant + part;
    if (start.register === undefined) {
      if (first >= 0) return true;
      if (first + this.#most < 0) return false;
    }
    return this.#once(`from ${start.register?.name} ${first}`, () =>
      this.#context.code.make("pred", "setp.ge.s32", this.#position(start), integer(-first)),
    );
  }

  /** The start without its constant, and what the lane adds. */
  #position({ register }: IndexValue): Register {
    const lane = this.#lane();
    if (register === undefined || lane === undefined) {
      const only = register ?? lane;
      if (only === undefined) throw new Error("a start that no lane and no register decides");
      return only;
    }
    return this.#each(`position ${register.name}`, () =>
      this.#context.code.make("b32", "add.s32", register, lane),
    );
  }

  /** The room without its constant, less what the lane takes. */
  #limit({ register }: IndexValue): Register {
    if (register === undefined) throw new Error("a room that no lane and no register decides");
    const lane = this.#lane();
    if (lane === undefined) return register;
    return this.#each(`limit ${register.name}`, () =>
      this.#context.code.make("b32", "sub.s32", register, lane),
    );
  }

  #each(key: string, make: () => Register): Register {
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#numbers.set(key, made);
    return made;
  }

  #once(key: string, make: () => Register): Truth {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const made = make();
    this.#known.set(key, made);
    return made;
  }
}

export interface GuardOptions {
  readonly rooms: readonly Rooms[];
  /** What else must hold of a lane. */
  readonly always?: readonly Truth[];
  /** What else must hold of each register. */
  readonly gather?: Pick<Gather, "truths"> | undefined;
}

/** The tests of a tile: one guard for each axis. */
export class TileGuards {
  readonly #parts: TileParts;
  readonly #axes: readonly AxisGuard[];
  readonly #conjunctions: Conjunctions;
  readonly #always: readonly Truth[];
  readonly #gathered: ((register: number) => readonly Truth[]) | undefined;

  constructor(
    context: EmitContext,
    parts: TileParts,
    lanes: ThreadCoordinates,
    { rooms, always = [], gather }: GuardOptions,
  ) {
    this.#parts = parts;
    this.#always = always;
    this.#gathered = gather?.truths;
    this.#conjunctions = new Conjunctions(context);
    this.#axes = parts.axes.map(
      ({ most }, axis) =>
        new AxisGuard(context, rooms[axis] ?? noRooms, most, () => lanes.of(axis)),
    );
  }

  /** Whether the element of a register may be accessed. */
  of(register: number): Truth {
    const truths = this.#axes.flatMap((axis, index) => {
      const parts = this.#parts.axes[index];
      return axis.truths(parts?.ofRegister[register] ?? 0, parts?.extent ?? 1);
    });
    const gathered = this.#gathered?.(register) ?? [];
    return this.#conjunctions.all([...truths, ...gathered, ...this.#always]);
  }
}

const noRooms: Rooms = Object.freeze({ low: undefined, high: undefined });

/** Whether a window of `extents` elements is inside as a whole, the same in all lanes. */
export function wholeInside(
  context: EmitContext,
  rooms: readonly Rooms[],
  extents: readonly number[],
): Truth {
  const { code } = context;
  const atLeast = ({ register, constant }: IndexValue, least: number): Truth =>
    register === undefined
      ? constant >= least
      : code.make("pred", "setp.ge.s32", register, integer(least - constant));
  const truths = rooms.flatMap(({ low, high }, axis) => [
    ...(high ? [atLeast(high, extents[axis] ?? 1)] : []),
    ...(low ? [atLeast(low, 0)] : []),
  ]);
  return new Conjunctions(context).all(truths);
}
