/**
 * A tile lives in the registers of the lanes that share it, and a lane can name 255 of them. A tile that
 * needs more, spread as thinly as can be, is refused here: the assembler would spill nearly all of it, and takes
 * minutes to do so.
 *
 *   | tile            | lanes | registers a lane |                       |
 *   |-----------------|-------|------------------|-----------------------|
 *   | f32 [128, 128]  | 128   | 128              | fits                  |
 *   | bf16 [256, 128] | 128   | 128              | fits, two to a word   |
 *   | f32 [256, 256]  | 128   | 512              | refused               |
 *   | f32 [256, 256]  | 256   | 256              | refused with `warps: 8` in the specification, fits with 16 |
 *   | f32 [64, 256]   | 32    | 512              | refused inside `warps` |
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { lanesPerWarp } from "../algebra/bits.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { RegisterSlot } from "../rules/statements.ts";

/** Registers that an instruction can name, the one that is always zero apart. */
export const registersPerLane = 255;

/** Refuses a tile that no placement can keep in registers; one number for all elements always fits. */
export function requireRegisters(slot: RegisterSlot, layout: RegisterLayout): void {
  if (layout.kind === "splat") return;
  const { shape, dtype, label, location, warps } = slot;
  const lanes = lanesPerWarp * warps;
  const elements = shape.reduce((count, extent) => count * extent, 1);
  const needed = Math.ceil((elements * dtype.bits) / 32 / lanes);
  if (needed <= registersPerLane) return;
  const most = Math.floor((registersPerLane * 32 * lanes) / dtype.bits);
  throw new TilewrightError({
    code: "TW6106",
    message: `${label} is a tile of ${dtype.name} [${shape.join(", ")}], which does not fit in registers`,
    location,
    expected: `at most ${registersPerLane} registers a lane: ${most} elements of ${dtype.name} for the ${lanes} lanes of a ${warps === 1 ? "warp" : "program thread"}`,
    found: `${elements} elements: ${needed} registers a lane`,
    remedy: `work on parts of it, ${parts(needed)} or more, in a loop or in more blocks`,
  });
}

/** The fewest equal parts, a power of two, that fit. */
function parts(needed: number): number {
  return 2 ** Math.ceil(Math.log2(needed / registersPerLane));
}
