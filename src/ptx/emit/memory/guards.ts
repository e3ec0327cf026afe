/**
 * Which elements of a lane may be accessed: inside the bounds that the window carries, and inside the tile
 * where its layout overhangs. Along each axis all bounds become one room, counted from the window's start,
 * of which the lane takes its own part once; each distinct part of the registers is then one comparison.
 *
 *   window from 64 i of n rows, row = lane part + 8 · j
 *
 *   room  = n − 64 i              uniform
 *   limit = room − lane part      once a lane
 *   p_j   = limit > 8 · j         one for each j, shared by the registers of a row
 */
import type { EmitContext } from "../context.ts";
import { greatestCommonDivisor } from "../../../layout/model/divisors.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { Bounds, IndexValue, Position } from "../values.ts";
import { indexRegister } from "./positions.ts";
import type { LaneCoordinates, TileParts } from "./parts.ts";

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

/** A count of elements from the start of the window. */
type Room = IndexValue & { readonly divisor: number };

/** What bounds leave of a window that begins at `start`: coordinates from `low` below `high`. */
export interface Rooms {
  readonly low: Room | undefined;
  readonly high: Room | undefined;
}

export function roomsOf(context: EmitContext, start: Position, bounds: readonly Bounds[]): Rooms {
  const distances = (side: "low" | "high"): readonly Room[] =>
    bounds.flatMap(({ [side]: bound }) => (bound ? [distance(context, start, bound)] : []));
  return {
    low: extreme(context, "max.s32", distances("low")),
    high: extreme(context, "min.s32", distances("high")),
  };
}

function distance({ code }: EmitContext, start: Position, end: Position): Room {
  const divisor = greatestCommonDivisor(start.divisor, end.divisor);
  const constant = end.constant - start.constant;
  if (start.register === end.register) return { register: undefined, constant, divisor };
  if (start.register === undefined) return { register: end.register, constant, divisor };
  const register =
    end.register === undefined
      ? code.make("b32", "neg.s32", start.register)
      : code.make("b32", "sub.s32", end.register, start.register);
  return { register, constant, divisor };
}

function extreme(
  context: EmitContext,
  opcode: "min.s32" | "max.s32",
  rooms: readonly Room[],
): Room | undefined {
  const [first, ...others] = rooms;
  if (first === undefined) return undefined;
  return others.reduce((left, right) => {
    const divisor = greatestCommonDivisor(left.divisor, right.divisor);
    if (left.register === undefined && right.register === undefined) {
      const choose = opcode === "min.s32" ? Math.min : Math.max;
      return { register: undefined, constant: choose(left.constant, right.constant), divisor };
    }
    const [a, b] = [indexRegister(context, left), indexRegister(context, right)];
    return { register: context.code.make("b32", opcode, a, b), constant: 0, divisor };
  }, first);
}

/** The tests of one axis. */
class AxisGuard {
  readonly #context: EmitContext;
  readonly #rooms: Rooms;
  readonly #most: number;
  readonly #lane: () => Register | undefined;
  readonly #known = new Map<string, Truth>();
  readonly #limits = new Map<string, Register>();

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

  #from(room: IndexValue, part: number): Truth {
    const left = room.constant - part;
    if (room.register === undefined) {
      if (left <= 0) return true;
      if (left > this.#most) return false;
    }
    return this.#once(`from ${room.register?.name} ${left}`, () => {
      const lane = this.#lane();
      const { code } = this.#context;
      if (room.register === undefined && lane !== undefined)
        return code.make("pred", "setp.ge.s32", lane, integer(left));
      return code.make("pred", "setp.le.s32", this.#limit(room), integer(-left));
    });
  }

  /** The room without its constant, less what the lane takes. */
  #limit({ register }: IndexValue): Register {
    if (register === undefined) throw new Error("a room that no lane and no register decides");
    const known = this.#limits.get(register.name);
    if (known !== undefined) return known;
    const lane = this.#lane();
    const made =
      lane === undefined ? register : this.#context.code.make("b32", "sub.s32", register, lane);
    this.#limits.set(register.name, made);
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

/** The tests of a tile: one guard for each axis. */
export class TileGuards {
  readonly #parts: TileParts;
  readonly #axes: readonly AxisGuard[];
  readonly #conjunctions: Conjunctions;
  readonly #always: readonly Truth[];

  constructor(
    context: EmitContext,
    parts: TileParts,
    lanes: LaneCoordinates,
    {
      rooms,
      always = [],
    }: { readonly rooms: readonly Rooms[]; readonly always?: readonly Truth[] },
  ) {
    this.#parts = parts;
    this.#always = always;
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
    return this.#conjunctions.all([...truths, ...this.#always]);
  }
}

export const noRooms: Rooms = Object.freeze({ low: undefined, high: undefined });

/** pred: whether a window of `extents` elements is inside as a whole; undefined where it surely is. */
export function wholeInside(
  context: EmitContext,
  rooms: readonly Rooms[],
  extents: readonly number[],
): Register | undefined {
  const { code } = context;
  const truths = rooms.flatMap(({ low, high }, axis) => {
    const found: Register[] = [];
    const extent = extents[axis] ?? 1;
    if (high !== undefined)
      found.push(code.make("pred", "setp.ge.s32", indexRegister(context, high), integer(extent)));
    if (low !== undefined)
      found.push(code.make("pred", "setp.le.s32", indexRegister(context, low), integer(0)));
    return found;
  });
  const inside = new Conjunctions(context).all(truths);
  return typeof inside === "boolean" ? undefined : inside;
}
