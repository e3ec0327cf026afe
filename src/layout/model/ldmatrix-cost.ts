/**
 * Whether a tile lies in shared memory as `ldmatrix` and `stmatrix` move it, and what that costs, from a sample of its elements:
 * placement asks before windows are followed element by element (`../access/ldmatrix.ts`).
 *
 *   right factor of mma.sync, [64, 64] by rows: the pair of a word lies in two rows, and eight lanes share 16 bytes of each
 *
 *   one element at a time    16 loads a lane, and words put together
 *   as matrices              2 instructions of four matrices, whose rows are 16 bytes
 */
import { lanesPerWarp } from "../algebra/index-bits.ts";
import { phasesOf, wavefrontsOf } from "../algebra/bank-conflicts.ts";
import { padding } from "../algebra/element-maps.ts";

const elementBits = 16;
const rowBits = 128;
const rowBytes = rowBits / 8;
const rowsPerMatrix = 8;
const matricesPerInstruction = 4;

/** Bits at which elements lie, undefined where a lane holds none. */
export interface SampledPlaces {
  /** Of lane 0, register by register. */
  readonly ofRegisters: readonly (number | undefined)[];
  /** Of the first two registers of each lane of a warp. */
  readonly ofElements: readonly [
    first: readonly (number | undefined)[],
    second: readonly (number | undefined)[],
  ];
}

/** Instructions that move a tile of so many registers as matrices, and wavefronts of each; undefined where it does not lie so. */
export function matrixMoves(
  places: SampledPlaces,
  registers: number,
): { readonly instructions: number; readonly wavefronts: number } | undefined {
  const rows = matrixRowBytes(places);
  if (rows === undefined || registers % 2 !== 0) return undefined;
  const matrices = registers / 2;
  const each = Math.min(matricesPerInstruction, matrices);
  const [words = []] = phasesOf(rows, rowBytes);
  return { instructions: Math.ceil(matrices / each), wavefronts: each * wavefrontsOf(words) };
}

/** Where the rows of the first matrix begin. */
function matrixRowBytes(places: SampledPlaces): Int32Array | undefined {
  return (
    rowsOf(places, {
      // Lane 4 r + c holds columns 2 c and 2 c + 1 of row r.
      row: (lane) => lane >> 2,
      column: (lane, register) => 2 * (lane & 3) + register,
    }) ??
    rowsOf(places, {
      // Transposed, it holds column r of rows 2 c and 2 c + 1.
      row: (lane, register) => 2 * (lane & 3) + register,
      column: (lane) => lane >> 2,
    })
  );
}

interface MatrixForm {
  row(lane: number, register: number): number;
  column(lane: number, register: number): number;
}

function rowsOf(
  { ofRegisters, ofElements }: SampledPlaces,
  form: MatrixForm,
): Int32Array | undefined {
  const rows = new Int32Array(rowsPerMatrix).fill(padding);
  for (const [register, places] of ofElements.entries())
    for (let lane = 0; lane < lanesPerWarp; lane += 1) {
      const place = places[lane];
      if (place === undefined) return undefined;
      const start = place - elementBits * form.column(lane, register);
      const row = form.row(lane, register);
      if (start % rowBits !== 0 || (rows[row] !== padding && rows[row] !== start >> 3))
        return undefined;
      rows[row] = start >> 3;
    }
  // Words further on begin rows of other matrices, and have their second element where the first word has it.
  const step = (ofElements[1][0] ?? 0) - (ofElements[0][0] ?? 0);
  const alike = ofRegisters.every((place, register) => {
    if (place === undefined) return false;
    if (register % 2 === 0) return place % rowBits === 0;
    return form.column(0, 1) === 0
      ? place % rowBits === 0
      : place - (ofRegisters[register - 1] ?? 0) === step;
  });
  return alike ? rows : undefined;
}
