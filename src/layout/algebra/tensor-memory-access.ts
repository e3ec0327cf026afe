/**
 * Which cells of tensor memory a warp's registers name in `tcgen05.ld` and `tcgen05.st`. Thread t of the warp and
 * register j, relative to the address:
 *
 * | shape        | registers of xN | row                     | column                          |
 * |--------------|-----------------|-------------------------|---------------------------------|
 * | 32x32b       | N               | t                       | j                               |
 * | 16x64b       | N               | t / 4 + 8 · (t mod 2)   | 2j + (t / 2) mod 2              |
 * | 16x128b      | 2N              | t / 4 + 8 · (j mod 2)   | 4 · (j / 2) + t mod 4           |
 * | 16x256b      | 4N              | t / 4 + 8 · ((j / 2) mod 2) | 8 · (j / 4) + 2 · (t mod 4) + j mod 2 |
 * | 16x32bx2, i  | N               | t mod 16                | j + (t / 16) · i                |
 *
 * Packed, a register holds the low halves of two columns beside each other, 2c and 2c + 1 for column c of the
 * table; the offset i of the last shape stays in columns of 32 bits.
 */

export const tmemAccessShapes = ["32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"] as const;
export type TmemAccessShape = (typeof tmemAccessShapes)[number];

/** Registers of 32 bits that one repetition takes. */
const registersPerRepeat: { readonly [S in TmemAccessShape]: number } = {
  "32x32b": 1,
  "16x64b": 1,
  "16x128b": 2,
  "16x256b": 4,
  "16x32bx2": 1,
};

/** No instruction moves more registers. */
const mostRegisters = 128;

/** The registers that a shape moves, repeated so many times; undefined where there is no such instruction. */
export function tmemRegisters(shape: TmemAccessShape, repeat: number): number | undefined {
  const isPower = repeat >= 1 && (repeat & (repeat - 1)) === 0;
  const registers = registersPerRepeat[shape] * repeat;
  return Number.isInteger(repeat) && isPower && registers <= mostRegisters ? registers : undefined;
}

/** Rows of tensor memory that a shape touches, from the address on. */
export function tmemAccessRows(shape: TmemAccessShape): 16 | 32 {
  return shape === "32x32b" ? 32 : 16;
}

export interface TmemCell {
  readonly row: number;
  readonly column: number;
}

const cells: {
  readonly [S in TmemAccessShape]: (thread: number, register: number) => TmemCell;
} = {
  "32x32b": (thread, register) => ({ row: thread, column: register }),
  "16x64b": (thread, register) => ({
    row: (thread >> 2) + 8 * (thread & 1),
    column: 2 * register + ((thread >> 1) & 1),
  }),
  "16x128b": (thread, register) => ({
    row: (thread >> 2) + 8 * (register & 1),
    column: 4 * (register >> 1) + (thread & 3),
  }),
  "16x256b": (thread, register) => ({
    row: (thread >> 2) + 8 * ((register >> 1) & 1),
    column: 8 * (register >> 2) + 2 * (thread & 3) + (register & 1),
  }),
  "16x32bx2": (thread, register) => ({ row: thread & 15, column: register }),
};

/**
 * The cell of a thread's register; of a packed one, the cell of its lower half, whose upper half is in the next
 * column. `offset` is that of 16x32bx2, which its second 16 threads add.
 */
export function tmemCell(
  shape: TmemAccessShape,
  thread: number,
  register: number,
  packed = false,
  offset = 0,
): TmemCell {
  const { row, column } = cells[shape](thread, register);
  const beside = shape === "16x32bx2" && thread >= 16 ? offset : 0;
  return { row, column: (packed ? 2 * column : column) + beside };
}
