/**
 * The register limit of a tile. A tile lives in the registers of the threads that share it; a thread can name 255 of them, and a
 * multiprocessor has 65536 for all threads of a block. A tile that needs more even when it is spread over all threads is refused here: the
 * assembler would spill it, and take minutes to do so.
 *
 *   | tile            | threads | registers a thread |                       |
 *   |-----------------|---------|--------------------|-----------------------|
 *   | f32 [128, 128]  | 128     | 128                | fits                  |
 *   | bf16 [256, 128] | 128     | 128                | fits, two to a word   |
 *   | f32 [256, 256]  | 128     | 512                | refused               |
 *   | f32 [65536]     | 256     | 256                | refused with `warps: 8`: a thread has no more than 255 |
 *   | f32 [65536]     | 512     | 128                | refused with `warps: 16`: these are all of the multiprocessor |
 *   | f32 [32768]     | 512     | 64                 | fits                  |
 *   | f32 [64, 256]   | 32      | 512                | refused inside `warps` |
 */
import type { DType } from "../../formats/dtype.ts";
import type { TileType } from "../../ir/types.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { lanesPerWarp } from "../algebra/index-bits.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { RegisterVariable } from "../rules/statements.ts";

/** Registers that an instruction can name, the one that is always zero apart. */
const nameableRegisters = 255;
const registersPerMultiprocessor = 65536;

/** Registers that a thread may have for one tile: addresses need one at least. */
function mostRegisters(lanes: number): number {
  return Math.min(nameableRegisters, Math.floor(registersPerMultiprocessor / lanes) - 1);
}

/** Registers that each of the lanes has for its share of a tile, spread over all of them. */
function registersNeeded(shape: readonly number[], { bits }: DType, lanes: number): number {
  const elements = shape.reduce((count, extent) => count * extent, 1);
  return Math.ceil((elements * bits) / 32 / lanes);
}

/** Whether a tile of a thread of so many warps fits in registers whatever its layout. */
export function fitsRegisters({ shape, dtype }: TileType, warps: number): boolean {
  const threads = lanesPerWarp * warps;
  return registersNeeded(shape, dtype, threads) <= mostRegisters(threads);
}

/** Refuses a tile that no placement can keep in registers; one number for all elements always fits. */
export function requireRegisters(variable: RegisterVariable, layout: RegisterLayout): void {
  if (layout.kind === "splat") return;
  const { shape, dtype, label, location, warps } = variable;
  const lanes = lanesPerWarp * warps;
  const elements = shape.reduce((count, extent) => count * extent, 1);
  const needed = registersNeeded(shape, dtype, lanes);
  const registers = mostRegisters(lanes);
  if (needed <= registers) return;
  const most = Math.floor((registers * 32 * lanes) / dtype.bits);
  throw new TilewrightError({
    code: "TW6106",
    message: `${label} is a tile of ${dtype.name} [${shape.join(", ")}], which does not fit in registers`,
    location,
    expected: `at most ${registers} registers a thread: ${most} elements of ${dtype.name} for the ${lanes} threads of a ${warps === 1 ? "warp" : "program thread"}`,
    found: `${elements} elements: ${needed} registers a thread`,
    remedy: `work on parts of it, ${parts(needed / registers)} or more, in a loop or in more blocks`,
  });
}

/** The fewest equal parts, a power of two, that fit. */
function parts(times: number): number {
  return 2 ** Math.ceil(Math.log2(times));
}
