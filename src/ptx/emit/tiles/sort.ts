/**
 * Sorting along an axis: a bitonic network over the bits of the coordinate, whoever owns them. A
 * comparator puts the lesser of two carriers at the lower coordinate; merging two sorted runs begins with
 * a comparison in mirror order, so that all comparators point the same way and padding, which lies behind
 * everything, stays where it is.
 *
 *   runs of 2 become runs of 4            coordinates that differ by
 *
 *   0 1 | 2 3      0 with 3, 1 with 2     11        mirrored
 *   0 1 | 2 3      0 with 1, 2 with 3     01
 *
 * Differences that are register bits alone compare within the lane; lane bits take a shuffle, and warp
 * bits the op's scratch. With payloads, a carrier is the key with its number along the axis, which makes
 * the order stable, and the payloads; without, it is the key alone, since equal keys are the same number.
 */
import type { AnyOp, Op } from "../../../ir/node.ts";
import { lanesPerWarp } from "../../../layout/algebra/bits.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { TileValue } from "../values.ts";
import { alignedElements, tileFromAligned } from "./aligned.ts";
import { numbersAlong } from "./arg-reduce.ts";
import type { Carrier } from "./combining.ts";
import { elementOfKey, orderedKey } from "./keys.ts";
import type { KeyOrder } from "./keys.ts";
import { convertTile } from "./convert.ts";
import { TilePlaces } from "./places.ts";
import { RankedKeys } from "./ranked.ts";
import { resultTile } from "./rearrange.ts";
import { shuffleWord } from "./relayout.ts";
import { axisOf, workingTile } from "./scan.ts";
import type { WorkingAxis } from "./scan.ts";
import { tradeValues } from "./trade.ts";

export function sort(op: Op<"sort">, context: EmitContext): void {
  const { keys, payloads } = op.operands;
  const { axis, descending } = op.attributes;
  const [first, ...others] = [keys, ...payloads].map((value) =>
    workingTile(context, context.tile(value), axis, op),
  );
  if (first === undefined) throw new Error("a sort without keys");
  const order: KeyOrder = { descending, equalZeros: false, nan: "greatest" };
  const working = axisOf(first, axis);
  const carried = carriersOf(context, first, others, axis, order);
  const padded = withPaddingLast(context, working, carried);
  const sorted = new Network(context, op, working, carried).run(padded);
  const results = [first, ...others].map((tile, position) =>
    tileFromAligned(
      context,
      tile,
      sorted.map((carrier) => carried.element(carrier, position)),
    ),
  );
  results.forEach((tile, position) => {
    const target = op.results[position];
    const { layout } = resultTile(target);
    context.define(target, convertTile(context, tile, layout, op));
  });
}

/** What the network moves. */
interface Carried {
  readonly carriers: readonly Carrier[];
  /** The first registers of a carrier that is behind all others. */
  readonly last: RankedKeys["last"];
  before(left: Carrier, right: Carrier): Register;
  /** The element of the key, or of the payload at `position` - 1, in the highest bits. */
  element(carrier: Carrier, position: number): Register;
}

function carriersOf(
  context: EmitContext,
  keys: TileValue,
  payloads: readonly TileValue[],
  axis: number,
  order: KeyOrder,
): Carried {
  const { dtype, layout, shape } = keys;
  const elements = alignedElements(context, keys).map((element) =>
    orderedKey(context, dtype, element, order),
  );
  const keyOf = (key: Register): Register => elementOfKey(context, dtype, key, order);
  if (payloads.length === 0)
    return {
      carriers: elements.map((key) => [key]),
      last: [integer(-1)],
      before: (left, right) => beforeOf(context, left, right),
      element: (carrier) => keyOf(at(carrier, 0)),
    };
  const ranked = new RankedKeys(context, dtype, 2 ** bitsOf(shape[axis] ?? 1));
  const numberOf = numbersAlong(context, layout, shape, axis);
  const columns = payloads.map((payload) => alignedElements(context, payload));
  return {
    carriers: elements.map((key, register) => [
      ...ranked.join(key, numberOf(register)),
      ...columns.map((column) => at(column, register)),
    ]),
    last: ranked.last,
    before: (left, right) => ranked.before(left, right),
    element: (carrier, position) =>
      position === 0 ? keyOf(ranked.key(carrier)) : at(carrier, ranked.width + position - 1),
  };
}

function beforeOf({ code }: EmitContext, left: Carrier, right: Carrier): Register {
  const own = at(left, 0);
  return code.make("pred", `setp.lt.u${own.type === "b64" ? 64 : 32}`, own, at(right, 0));
}

function at(registers: readonly Register[], index: number): Register {
  const register = registers[index];
  if (register === undefined) throw new Error("a register outside its list");
  return register;
}

/** Bits of a coordinate below the extent. */
function bitsOf(extent: number): number {
  return Math.ceil(Math.log2(Math.max(1, extent)));
}

function withPaddingLast(
  context: EmitContext,
  { along, axis }: WorkingAxis,
  { carriers, last }: Carried,
): readonly Carrier[] {
  const places = new TilePlaces(context, along.expansion);
  const { code } = context;
  return carriers.map((carrier, register) => {
    const inside = places.inside(register, [axis]);
    if (inside === true) return carrier;
    return carrier.map((each, index) => {
      const replacement = last[index];
      if (replacement === undefined) return each;
      const type = each.type === "b64" ? "b64" : "b32";
      return inside === false
        ? code.make(type, `mov.${type}`, replacement)
        : code.make(type, `selp.${type}`, each, replacement, inside);
    });
  });
}

/** Who owns a bit of the coordinate: a bit of the thread index, or registers that far apart. */
interface Owner {
  readonly thread: number | undefined;
  readonly stride: number;
  /** Values of the register digit that the bit belongs to. */
  readonly radix: number;
  /** What the bit adds to that digit. */
  readonly step: number;
}

class Network {
  readonly #context: EmitContext;
  readonly #op: AnyOp;
  readonly #owners: readonly Owner[];
  readonly #carried: Carried;
  #carriers: Carrier[] = [];

  constructor(context: EmitContext, op: AnyOp, working: WorkingAxis, carried: Carried) {
    this.#context = context;
    this.#op = op;
    this.#carried = carried;
    const extent = working.along.expansion.shape[working.axis] ?? 1;
    this.#owners = ownersOf(working).slice(0, bitsOf(extent));
  }

  run(carriers: readonly Carrier[]): readonly Carrier[] {
    this.#carriers = [...carriers];
    for (let size = 1; size <= this.#owners.length; size += 1) {
      this.#compare(2 ** size - 1);
      for (let bit = size - 2; bit >= 0; bit -= 1) this.#compare(2 ** bit);
    }
    return this.#carriers;
  }

  /** Compares every coordinate with the one that differs from it by the mask. */
  #compare(mask: number): void {
    const owners = this.#owners.filter((_, bit) => (mask >> bit) & 1);
    const top = owners.at(-1);
    const threads = owners.reduce(
      (sum, { thread }) => (thread === undefined ? sum : sum | (1 << thread)),
      0,
    );
    const registers = owners.filter(({ thread }) => thread === undefined);
    if (top === undefined) return;
    if (threads === 0) this.#compareRegisters(registers, top);
    else this.#compareLanes(registers, top, threads);
  }

  #compareRegisters(registers: readonly Owner[], top: Owner): void {
    this.#carriers.forEach((carrier, register) => {
      const partner = partnerOf(register, registers);
      const other = partner === undefined ? undefined : this.#carriers[partner];
      if (partner === undefined || other === undefined || isSet(register, top)) return;
      const [lower, upper] = this.#ordered(carrier, other);
      this.#carriers[register] = lower;
      this.#carriers[partner] = upper;
    });
  }

  #compareLanes(registers: readonly Owner[], top: Owner, threads: number): void {
    const partners = this.#carriers.map((_, register) => {
      const partner = partnerOf(register, registers);
      return partner === undefined ? undefined : this.#carriers[partner];
    });
    const received = this.#receive(partners, threads);
    const { code, numbers } = this.#context;
    this.#carriers = this.#carriers.map((own, register) => {
      const other = received[register];
      // Behind the last copy of the layout there is nothing but padding.
      if (other === undefined) return own;
      if (top.thread === undefined) return this.#ordered(own, other)[isSet(register, top) ? 1 : 0];
      const before = this.#carried.before(other, own);
      const taken = code.make("pred", "xor.pred", before, numbers.bit(top.thread));
      return this.#choose(taken, other, own);
    });
  }

  /** The carriers as the lane whose index differs by the mask has them. */
  #receive(
    carriers: readonly (Carrier | undefined)[],
    mask: number,
  ): readonly (Carrier | undefined)[] {
    const context = this.#context;
    if (mask < lanesPerWarp)
      return carriers.map((carrier) =>
        carrier?.map((each) => shuffleWord(context, each, "bfly", integer(mask))),
      );
    const sent = carriers.flatMap((carrier) => carrier ?? []);
    const traded = tradeValues(context, this.#op, sent, [mask])[0] ?? [];
    let next = 0;
    return carriers.map((carrier) => {
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
    const swapped = this.#carried.before(right, left);
    return [this.#choose(swapped, right, left), this.#choose(swapped, left, right)];
  }

  #choose(condition: Register, ifTrue: Carrier, ifFalse: Carrier): Carrier {
    const { code } = this.#context;
    return ifTrue.map((register, index) => {
      const type = register.type === "b64" ? "b64" : "b32";
      return code.make(type, `selp.${type}`, register, at(ifFalse, index), condition);
    });
  }
}

/** The owners of the coordinate's bits; a digit of several values has as many bits as they need. */
function ownersOf({ digits }: WorkingAxis): readonly Owner[] {
  return digits.flatMap(({ thread, stride, radix }) =>
    Array.from({ length: bitsOf(radix) }, (_, bit) => ({
      thread,
      stride,
      radix,
      step: 2 ** bit,
    })),
  );
}

function digitValue(register: number, { stride, radix }: Owner): number {
  return Math.floor(register / stride) % radix;
}

function isSet(register: number, owner: Owner): boolean {
  return (digitValue(register, owner) & owner.step) !== 0;
}

/** The register whose coordinate differs in these bits; undefined where the layout has none. */
function partnerOf(register: number, owners: readonly Owner[]): number | undefined {
  let partner = register;
  const digits = new Map(owners.map((owner) => [owner.stride, owner]));
  for (const [stride, digit] of digits) {
    const value = digitValue(register, digit);
    const flipped = owners.reduce(
      (sum, owner) => (owner.stride === stride ? sum ^ owner.step : sum),
      value,
    );
    if (flipped >= digit.radix) return undefined;
    partner += (flipped - value) * stride;
  }
  return partner;
}
