/**
 * Matrices between shared memory and registers; those of 8 × 8 elements of 16 bits here, of bytes in `byte-matrices.ts`. Lanes 8i … 8i+7 give the
 * addresses of the rows of matrix i; lane l holds row l >> 2, columns 2·(l & 3) and the next one.
 *
 *   register of lane 5    row 1, columns 2 and 3;  transposed: rows 2 and 3, column 1
 */
import type {
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
  Place,
} from "../collective.ts";
import { byteStates } from "../memory.ts";
import { byteMatrices } from "./byte-matrices.ts";
import { rowPlaces } from "./matrix-rows.ts";
import { registersOf } from "./operands.ts";

/** Where the element (row, column) of matrix `matrix` lies. */
function elementAt(
  places: readonly Place[],
  matrix: number,
  row: number,
  column: number,
): { readonly place: Place; readonly offset: number } | undefined {
  const place = places[8 * matrix + row];
  return place && { place, offset: place.offset + 2 * column };
}

function elements(
  places: readonly Place[],
  matrix: number,
  lane: number,
  transposed: boolean,
): readonly ReturnType<typeof elementAt>[] {
  const row = lane >> 2;
  const column = 2 * (lane & 3);
  return [0, 1].map((half) =>
    transposed
      ? elementAt(places, matrix, column + half, row)
      : elementAt(places, matrix, row, column + half),
  );
}

function isMatrixForm({ modifiers }: CollectiveInstruction): boolean {
  return modifiers.includes("m8n8") && modifiers.includes("b16");
}

const ldmatrix: CollectiveRule = (instruction) => {
  const [target, address] = instruction.operands;
  if (target === undefined || address === undefined) return undefined;
  if (!isMatrixForm(instruction)) return byteMatrices(instruction, target, address);
  const registers = registersOf(target);
  const transposed = instruction.modifiers.includes("trans");
  return {
    aligned: true,
    run: (call) => {
      const places = rowPlaces(instruction, call, address, 8 * registers.length, "read");
      const words = registers.map((_, matrix) =>
        Array.from({ length: 32 }, (__, lane) => readPair(places, matrix, lane, transposed)),
      );
      for (const [matrix, register] of registers.entries())
        for (let lane = 0; lane < 32; lane++)
          register.setWord(call.warp, lane, words[matrix]?.[lane] ?? 0);
      return "done";
    },
  };
};

function readPair(
  places: readonly Place[],
  matrix: number,
  lane: number,
  transposed: boolean,
): number {
  const [low = 0, high = 0] = elements(places, matrix, lane, transposed).map((element) =>
    element === undefined ? 0 : (element.place.views.halves[element.offset >> 1] as number),
  );
  return (low | (high << 16)) >>> 0;
}

const stmatrix: CollectiveRule = (instruction) => {
  const [address, source] = instruction.operands;
  if (source === undefined || address === undefined || !isMatrixForm(instruction)) return undefined;
  const registers = registersOf(source);
  const transposed = instruction.modifiers.includes("trans");
  return {
    aligned: true,
    run: (call) => {
      const places = rowPlaces(instruction, call, address, 8 * registers.length, "write");
      for (const [matrix, register] of registers.entries())
        for (let lane = 0; lane < 32; lane++) {
          const word = register.word(call.warp, lane);
          const pair = elements(places, matrix, lane, transposed);
          for (const [half, element] of pair.entries()) {
            if (element === undefined) continue;
            const { views } = element.place;
            views.halves[element.offset >> 1] = word >>> (16 * half);
            views.states.fill(byteStates.written, element.offset, element.offset + 2);
          }
        }
      return "done";
    },
  };
};

/** Transposes one matrix within the registers of a warp. */
const movmatrix: CollectiveRule = (instruction) => {
  const [target, source] = instruction.operands;
  if (target === undefined || source === undefined || !isMatrixForm(instruction)) return undefined;
  return {
    aligned: true,
    run: ({ warp }) => transpose(target, source, warp),
  };
};

function transpose(
  target: OperandView,
  source: OperandView,
  warp: CollectiveCall["warp"],
): ReturnType<Collective["run"]> {
  const old = Array.from({ length: 32 }, (_, lane) => source.word(warp, lane));
  const element = (row: number, column: number): number =>
    ((old[4 * row + (column >> 1)] ?? 0) >>> (16 * (column & 1))) & 0xffff;
  for (let lane = 0; lane < 32; lane++) {
    const row = lane >> 2;
    const column = 2 * (lane & 3);
    target.setWord(warp, lane, (element(column, row) | (element(column + 1, row) << 16)) >>> 0);
  }
  return "done";
}

export const matrixRules = { ldmatrix, stmatrix, movmatrix };
