/**
 * `ldmatrix` of bytes, and of elements of 4 and 6 bits that become bytes. With g = lane >> 2 and t = lane & 3:
 *
 * | shape        | rows in memory | register r of a lane holds                                  |
 * |--------------|----------------|-------------------------------------------------------------|
 * | m8n16        | 8 a matrix     | matrix r: bytes 4t … 4t+3 of row g                           |
 * | m16n16.trans | 16 a matrix    | matrix ⌊r/2⌋: byte g + 8·(r mod 2) of rows 4t … 4t+3         |
 *
 * A row has 16 elements: 16 bytes; 8 bytes of nibbles, the low one first (`b4x16_p64`); or 12 bytes of elements of
 * 6 bits (`b6x16_p32`). Elements come into the low bits of their bytes.
 */
import type {
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  OperandView,
} from "../collective.ts";
import { rowPlaces } from "./matrix-rows.ts";
import { registersOf } from "./operands.ts";

const rowElements = 16;

function elementBits(modifiers: readonly string[]): 4 | 6 | 8 {
  if (modifiers.includes("b4x16_p64")) return 4;
  return modifiers.includes("b6x16_p32") ? 6 : 8;
}

/** The elements of a row, a byte each. */
function unpacked(bytes: Uint8Array, bits: 4 | 6 | 8): Uint8Array {
  return Uint8Array.from({ length: rowElements }, (_, at) => {
    const bit = at * bits;
    const pair = (bytes[bit >> 3] ?? 0) | ((bytes[(bit >> 3) + 1] ?? 0) << 8);
    return (pair >>> (bit & 7)) & (2 ** bits - 1);
  });
}

export function byteMatrices(
  instruction: CollectiveInstruction,
  target: OperandView,
  address: OperandView,
): Collective | undefined {
  const { modifiers } = instruction;
  const isTransposed = modifiers.includes("m16n16") && modifiers.includes("trans");
  if (!isTransposed && !modifiers.includes("m8n16")) return undefined;
  const registers = registersOf(target);
  const bits = elementBits(modifiers);
  return {
    aligned: true,
    run: (call) => {
      const rows = readRows(instruction, call, address, 8 * registers.length, bits);
      registers.forEach((register, index) => {
        for (let lane = 0; lane < 32; lane++)
          register.setWord(call.warp, lane, word(rows, index, lane, isTransposed));
      });
      return "done";
    },
  };
}

function readRows(
  instruction: CollectiveInstruction,
  call: CollectiveCall,
  address: OperandView,
  count: number,
  bits: 4 | 6 | 8,
): readonly Uint8Array[] {
  const bytes = 2 * bits;
  const places = rowPlaces(instruction, call, address, count, "read", bytes);
  return places.map(({ views, offset }) =>
    unpacked(views.bytes.subarray(offset, offset + bytes), bits),
  );
}

function word(
  rows: readonly Uint8Array[],
  register: number,
  lane: number,
  isTransposed: boolean,
): number {
  const [group, part] = [lane >> 2, 4 * (lane & 3)];
  let bits = 0;
  for (let at = 0; at < 4; at++) {
    const byte = isTransposed
      ? rows[16 * (register >> 1) + part + at]?.[group + 8 * (register & 1)]
      : rows[8 * register + group]?.[part + at];
    bits |= (byte ?? 0) << (8 * at);
  }
  return bits >>> 0;
}
