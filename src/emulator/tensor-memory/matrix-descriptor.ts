/**
 * Descriptors of matrices in shared memory, as `tcgen05.mma` and `tcgen05.cp` take them: where an operand's chunks of 16
 * bytes lie. Like those of wgmma (`tensor-cores/descriptor.ts`), with three bits for the swizzle and any width of elements:
 *
 *   bits  0–13     16–29           32–45          46–48  49–51        61–63
 *         start/16 leading offset/16 stride offset/16  1  base offset  swizzle: 0 none, 1 128 by 32, 2 128, 4 64, 6 32
 *
 * | major | swizzle   | chunk                              | address                                                            |
 * |-------|-----------|------------------------------------|--------------------------------------------------------------------|
 * | K     | none      | row r, 16 bytes c of its k         | 16·(r mod 8) + stride·⌊r/8⌋ + leading·c                            |
 * | K     | W         |                                    | W·(r mod 8) + stride·⌊r/8⌋ + 16·c                                  |
 * | MN    | none      | group g of rows that fill 16 bytes, one k | 16·(k mod 8) + leading·⌊k/8⌋ + stride·g                     |
 * | MN    | W         |                                    | 16·(g mod W/16) + leading·⌊g/(W/16)⌋ + W·(k mod 8) + stride·⌊k/8⌋  |
 * | MN    | 128 by 32 | 4 rows of tf32                     | 16·(g mod 8) + leading·⌊g/8⌋ + 128·(k mod 4) + stride·⌊k/4⌋        |
 *
 * The swizzle then exchanges bits of the address: those from 4 up by those from 7 up, of 128 by 32 bits 5 and 6.
 */

export type MatrixSwizzle = "none" | "32" | "64" | "128" | "128 by 32";

export interface MatrixDescriptor {
  readonly start: number;
  readonly leading: number;
  readonly stride: number;
  readonly baseOffset: number;
  readonly swizzle: MatrixSwizzle;
}

const swizzles: readonly (MatrixSwizzle | undefined)[] = [
  "none",
  "128 by 32",
  "128",
  undefined,
  "64",
  undefined,
  "32",
];

function field(bits: bigint, from: bigint, width: bigint): number {
  return Number((bits >> from) & ((1n << width) - 1n));
}

/** The descriptor that bits are, or what is wrong with them. */
export function decodeMatrixDescriptor(bits: bigint): MatrixDescriptor | string {
  const swizzle = swizzles[field(bits, 61n, 3n)];
  if (swizzle === undefined) return `its swizzle is ${field(bits, 61n, 3n)}`;
  if (field(bits, 46n, 3n) > 1) return `bits 46 to 48 of it are ${field(bits, 46n, 3n)}, not 1`;
  if (field(bits, 52n, 1n) === 1)
    return "bit 52 of it is set: an absolute leading offset, which is not emulated";
  const baseOffset = field(bits, 49n, 3n);
  if (swizzle === "none" && baseOffset !== 0) return "it has a base offset but no swizzle";
  return {
    start: field(bits, 0n, 14n) * 16,
    leading: field(bits, 16n, 14n) * 16,
    stride: field(bits, 32n, 14n) * 16,
    baseOffset,
    swizzle,
  };
}

const widths: { readonly [S in MatrixSwizzle]: number } = {
  none: 0,
  "32": 32,
  "64": 64,
  "128": 128,
  "128 by 32": 128,
};

/** Addresses are 18 bits: what lies beyond them wraps. */
const addressMask = 0x3ffff;

function swizzled(address: number, { swizzle, baseOffset }: MatrixDescriptor): number {
  if (swizzle === "none") return address;
  const phase = (address >> 7) - baseOffset;
  if (swizzle === "128 by 32") return address ^ ((phase & 3) << 5);
  return address ^ ((phase & (widths[swizzle] / 16 - 1)) << 4);
}

/** The chunk with bytes 16·part … of a row's k. */
export function rowChunk(descriptor: MatrixDescriptor, row: number, part: number): number {
  const { start, leading, stride, swizzle } = descriptor;
  const within =
    swizzle === "none" ? 16 * (row & 7) + leading * part : widths[swizzle] * (row & 7) + 16 * part;
  return swizzled((start + within + stride * (row >> 3)) & addressMask, descriptor);
}

/** The chunk with one k of a group of rows. */
export function columnChunk(descriptor: MatrixDescriptor, group: number, k: number): number {
  const { start, leading, stride, swizzle } = descriptor;
  if (swizzle === "none") {
    const offset = 16 * (k & 7) + leading * (k >> 3) + stride * group;
    return swizzled((start + offset) & addressMask, descriptor);
  }
  const width = widths[swizzle];
  const across = width / 16;
  const rows = swizzle === "128 by 32" ? 4 : 8;
  const offset =
    16 * (group % across) +
    leading * Math.floor(group / across) +
    width * (k % rows) +
    stride * Math.floor(k / rows);
  return swizzled((start + offset) & addressMask, descriptor);
}

/** An operand: rows of A, or columns of B. */
export interface MatrixShape {
  readonly major: "k" | "mn";
  readonly rows: number;
  /** Of a row's k. */
  readonly rowBytes: number;
  readonly elementBytes: number;
}

/** The addresses of all chunks: row by row, or k by k within a group of rows. */
export function matrixChunks(descriptor: MatrixDescriptor, shape: MatrixShape): Int32Array {
  const { major, rows, rowBytes, elementBytes } = shape;
  if (major === "k") {
    const parts = rowBytes / 16;
    return Int32Array.from({ length: rows * parts }, (_, at) =>
      rowChunk(descriptor, Math.floor(at / parts), at % parts),
    );
  }
  const depth = rowBytes / elementBytes;
  const groups = Math.ceil((rows * elementBytes) / 16);
  return Int32Array.from({ length: groups * depth }, (_, at) =>
    columnChunk(descriptor, Math.floor(at / depth), at % depth),
  );
}

/** Reads an operand as rows of so many bytes of k, whichever way it lies, by the chunks of `matrixChunks`. */
export function gatherMatrix(
  shared: Uint8Array,
  chunks: Int32Array,
  { major, rows, rowBytes, elementBytes }: MatrixShape,
): Uint8Array {
  const operand = new Uint8Array(rows * rowBytes);
  if (major === "k") {
    chunks.forEach((from, at) => operand.set(shared.subarray(from, from + 16), 16 * at));
    return operand;
  }
  const depth = rowBytes / elementBytes;
  const perChunk = 16 / elementBytes;
  chunks.forEach((from, at) => {
    const group = Math.floor(at / depth);
    const k = at - group * depth;
    for (let row = 0; row < perChunk && group * perChunk + row < rows; row++)
      for (let byte = 0; byte < elementBytes; byte++)
        operand[(group * perChunk + row) * rowBytes + k * elementBytes + byte] =
          shared[from + row * elementBytes + byte] ?? 0;
  });
  return operand;
}

/** Chunks joined where they touch. */
export function stretches(
  chunks: Int32Array,
): readonly { readonly offset: number; readonly bytes: number }[] {
  const joined: { offset: number; bytes: number }[] = [];
  for (const chunk of Int32Array.from(chunks).sort()) {
    const last = joined.at(-1);
    if (last !== undefined && chunk <= last.offset + last.bytes)
      last.bytes = Math.max(last.bytes, chunk + 16 - last.offset);
    else joined.push({ offset: chunk, bytes: 16 });
  }
  return joined;
}
