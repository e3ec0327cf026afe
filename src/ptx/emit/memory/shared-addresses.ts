/**
 * Addresses in shared memory. Lane, register and run-time offset each add their part to the
 * byte before the swizzle; the swizzle is linear over exclusive or, so that parts without common bits can
 * be swizzled apart:
 *
 *   swizzle(lane + register) = swizzle(lane) ^ swizzle(register)
 *
 *   bf16 [64, 64] in shared(tile 8 64, swizzle 128), wgmma: row g + 8 k + 16 w, column 2 t + 8 j
 *
 *   lane      = base + swizzle(128 g + 2048 w + 4 t)       once
 *   register  = 1024 k + 16 j                              16 j meets bits of swizzle(128 g): one xor for
 *                                                          each j; 1024 k is an immediate
 *
 * What is a multiple of the swizzle's pattern is never moved by it and is added behind.
 */
import { swizzleByte, swizzlePattern } from "../../../layout/algebra/shared-layout.ts";
import type { SharedPlaces } from "../../../layout/access/shared-addresses.ts";
import type { AddressOperand, Register } from "../../module.ts";
import { address, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { combineParts } from "../tiles/thread-parts.ts";
import type { SharedValue } from "../values.ts";
import { allocationBase, movedNumber } from "./shared.ts";

/** Addresses of a lane, from where its bits and the registers lie. */
export class SharedAddresses {
  readonly #context: EmitContext;
  readonly #window: SharedValue;
  readonly #places: SharedPlaces;
  /** Bits of the lane's byte that a swizzle of its own can set; undefined where it cannot stand alone. */
  readonly #laneMask: number | undefined;
  readonly #bases = new Map<number, Register>();
  #lane: { readonly register: Register | undefined } | undefined;

  constructor(context: EmitContext, window: SharedValue, places: SharedPlaces) {
    this.#context = context;
    this.#window = window;
    this.#places = places;
    this.#laneMask = swizzledMask(window, places);
  }

  /** The address of the byte that is so far from the allocation's start before the swizzle. */
  of(byte: number): AddressOperand {
    const { layout, offset } = this.#window;
    if (layout.swizzle === 0) return address(this.#base(0), offset + byte);
    const mask = this.#laneMask;
    if (mask === undefined) return address(this.#alone(byte), offset);
    const moved = swizzleByte(byte, layout.swizzle);
    const met = moved & mask & (swizzlePattern(layout.swizzle) - 1);
    return address(this.#base(met), offset + moved - met);
  }

  /** The lane's address, exclusive or the bits that its own part may have as well. */
  #base(met: number): Register {
    const known = this.#bases.get(met);
    if (known !== undefined) return known;
    const { code } = this.#context;
    const made =
      met === 0 ? this.#start() : code.make("b32", "xor.b32", this.#base(0), integer(met));
    this.#bases.set(met, made);
    return made;
  }

  #start(): Register {
    const base = allocationBase(this.#context, this.#window);
    const lane = this.#swizzled(this.#lanePart());
    return lane === undefined ? base : this.#context.code.make("b32", "add.u32", base, lane);
  }

  #alone(byte: number): Register {
    const { code } = this.#context;
    const base = allocationBase(this.#context, this.#window);
    const lane = this.#lanePart();
    const sum =
      lane === undefined
        ? code.constant("b32", byte)
        : code.make("b32", "add.u32", lane, integer(byte));
    const swizzled = this.#swizzled(sum) ?? sum;
    return code.make("b32", "add.u32", base, swizzled);
  }

  /** Bytes of the lane and of run-time offsets. */
  #lanePart(): Register | undefined {
    if (this.#lane !== undefined) return this.#lane.register;
    const { code, numbers } = this.#context;
    const { dtype, moves } = this.#window;
    const { digits, ofBits } = this.#places;
    const bytes = ofBits.map((part) => part / 8);
    const lane = combineParts(code, numbers.index, bytes);
    const moved = movedNumber(this.#context, digits, moves, dtype.bits);
    const down = moved && code.make("b32", "shr.u32", moved, integer(3));
    const both = lane && down ? code.make("b32", "add.u32", lane, down) : (lane ?? down);
    this.#lane = { register: both };
    return both;
  }

  #swizzled(byte: Register | undefined): Register | undefined {
    const { swizzle } = this.#window.layout;
    return swizzle === 0 || byte === undefined ? byte : emitSwizzle(this.#context, byte, swizzle);
  }
}

/** b32: where the swizzle moves a byte. */
export function emitSwizzle(
  { code }: EmitContext,
  byte: Register,
  swizzle: SharedValue["layout"]["swizzle"],
): Register {
  const chunks = (swizzle / 16 - 1) << 7;
  const rows = code.make("b32", "and.b32", byte, integer(chunks));
  const moved = code.make("b32", "shr.u32", rows, integer(3));
  return code.make("b32", "xor.b32", byte, moved);
}

/**
 * The bits that the swizzled part of lanes and run-time offsets may have; undefined where registers share
 * bits with it, below the swizzle's pattern, so that sums would carry.
 */
function swizzledMask(
  { layout }: SharedValue,
  { ofBits, ofRegister, ofMoves }: SharedPlaces,
): number | undefined {
  const pattern = swizzlePattern(layout.swizzle);
  const low = (bits: number): number => (bits >> 3) & (pattern - 1);
  const parts = [
    ...ofBits.map(low),
    ...ofMoves.map((values) => values.reduce((mask, value) => mask | low(value), 0)),
  ];
  const registers = ofRegister.reduce<number>((mask, bits) => mask | low(bits ?? 0), 0);
  let seen = registers;
  for (const part of parts) {
    if ((seen & part) !== 0) return undefined;
    seen |= part;
  }
  return parts.reduce((mask, part) => mask | spread(part, layout.swizzle), 0);
}

/** The bits that a swizzled byte may have if the byte may have these. */
function spread(mask: number, swizzle: SharedValue["layout"]["swizzle"]): number {
  return mask | (((mask >> 7) & (swizzle / 16 - 1)) << 4);
}
