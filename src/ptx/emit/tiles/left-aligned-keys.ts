/**
 * Elements by their bits, one a register, in the highest bits of it: so sorted keys compare as unsigned
 * numbers whatever their width, and payloads of all formats move alike.
 *
 *   f16 word  b a        a in the high half of one b32, b in that of another; zeros below
 *   bool                 2^31 or 0
 *   32 and 64 bits       as they are
 */
import type { DType } from "../../../formats/dtype.ts";
import { registersPerLane } from "../../../layout/algebra/register-layout.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { packWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import type { TileValue } from "../values.ts";

const topBit = 2 ** 31;

/** The elements of a tile, one for each register of its layout. */
export function alignedElements({ code }: EmitContext, tile: TileValue): readonly Register[] {
  const { dtype, words, layout, shape } = tile;
  if (dtype.kind === "bool")
    return words.map((word) => code.make("b32", "selp.b32", integer(topBit), integer(0), word));
  const slots = slotsOf(dtype);
  if (slots === 1) return words;
  return Array.from({ length: registersPerLane(layout, shape) }, (_, register) => {
    const word = words[Math.floor(register / slots)];
    if (word === undefined) throw new Error("a register outside the tile");
    return alignedSlot(code, dtype.bits, word, register % slots);
  });
}

function alignedSlot(code: Code, bits: number, word: Register, slot: number): Register {
  const distance = 32 - bits * (slot + 1);
  const moved = distance === 0 ? word : code.make("b32", "shl.b32", word, integer(distance));
  return slot === 0 ? moved : code.make("b32", "and.b32", moved, integer(topMask(bits)));
}

/** The highest bits of 32. */
export function topMask(bits: number): number {
  return 2 ** 32 - 2 ** (32 - bits);
}

/** The tile of such elements. */
export function tileFromAligned(
  { code }: EmitContext,
  type: Pick<TileValue, "dtype" | "shape" | "layout">,
  elements: readonly Register[],
): TileValue {
  const { dtype } = type;
  const slots = slotsOf(dtype);
  const lone = elements.map((element) => loneElement(code, dtype, element));
  const words: Register[] = [];
  for (let start = 0; start < lone.length; start += slots)
    words.push(packWord(code, dtype, lone.slice(start, start + slots)));
  return { kind: "tile", ...type, words };
}

function loneElement(code: Code, dtype: DType, element: Register): Register {
  if (dtype.kind === "bool") return code.make("pred", "setp.ne.u32", element, integer(0));
  if (dtype.bits >= 32) return element;
  const low = code.make("b32", "shr.u32", element, integer(32 - dtype.bits));
  return dtype.bits === 16 ? code.make("b16", "cvt.u16.u32", low) : low;
}
