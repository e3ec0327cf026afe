/** Products that need more than their operands: columns of B that count as zero, A shifted by a row, and matrices kept in collectors. */
import { describe, expect, test } from "vitest";
import {
  descriptorBits,
  moveDescriptor,
  placeMatrix,
  tensorKernel,
} from "../../../test/support/tensor-memory-kernel.ts";
import type { PlacedMatrix } from "../../../test/support/tensor-memory-kernel.ts";
import { decodeFloat, encodeFloat } from "../../formats/floats.ts";
import { zeroColumns } from "./zero-columns.ts";

const half = (value: number): number => encodeFloat("f16", value);

/** Rows of 16 elements of f16, of which the first is the row's number and the others are 0. */
function numbered(rows: number, first = 1): Uint8Array {
  const codes = new Uint16Array(16 * rows);
  for (let row = 0; row < rows; row++) codes[16 * row] = half(first + row);
  return new Uint8Array(codes.buffer);
}

function plain(bytes: Uint8Array, rows: number, start: number): PlacedMatrix {
  const placed = { bytes, rows, start, elementBytes: 2, major: "k", swizzle: "none" } as const;
  return { ...placed, leading: 16 * rows, stride: 128 };
}

const descriptor = (m: number, n: number): number =>
  ((1 << 4) | ((n >> 3) << 17) | ((m >> 4) << 24)) >>> 0;

interface Run {
  readonly m: number;
  readonly n: number;
  readonly mma: string;
  /** Rows of B in memory. */
  readonly columnsOfB?: number;
  readonly fill?: (lane: number, column: number) => number;
}

/** A of 1, 2, 3 …, B of 1, 2, 3 …: D of their products. */
function run({ m, n, mma, columnsOfB = n, fill }: Run) {
  const a = plain(numbered(m), m, 0);
  const b = plain(numbered(columnsOfB), columnsOfB, 32 * m);
  const image = new Uint8Array(32 * (m + columnsOfB));
  placeMatrix(image, a);
  placeMatrix(image, b);
  const columns = Math.max(32, 2 ** Math.ceil(Math.log2(n + 8)));
  const issue = `${moveDescriptor(10, descriptorBits(a))} ${moveDescriptor(11, descriptorBits(b))} mov.b32 %r10, ${descriptor(m, n)}; ${mma}`;
  const words =
    fill &&
    Uint32Array.from({ length: 128 * columns }, (_, at) =>
      fill(Math.floor(at / columns), at % columns),
    );
  const { cells, codes } = tensorKernel({
    ...{ columns, issue, images: [image] },
    ...(words === undefined ? {} : { fills: [words] }),
  });
  return {
    codes,
    at: (lane: number, column: number) =>
      decodeFloat("f32", cells[0]?.[lane * columns + column] ?? 0),
  };
}

describe("columns of B that count as zero", () => {
  test("runs of used and skipped columns, those dropped at the start, for each bank", () => {
    const mask = (first: number, skip: number, use: number, dropped = 0, shift = 0): bigint =>
      BigInt(dropped) |
      (BigInt(first) << 32n) |
      (1n << 39n) |
      (BigInt(skip - 1) << 40n) |
      (BigInt(use - 1) << 48n) |
      (BigInt(shift) << 56n);
    const text = (bits: bigint, columns: number, banks: 1 | 2 | 4): string =>
      [...zeroColumns(bits, columns, banks).zero].join("");
    expect(text(mask(1, 2, 3), 12, 1)).toBe("110001100011");
    expect(text(mask(0, 2, 3), 12, 1)).toBe("000110001100");
    expect(text(mask(1, 2, 3, 1), 12, 1)).toBe("100011000110");
    expect(text(mask(0b01, 1, 1, 0), 8, 2)).toBe("10100101");
    expect(text(mask(1, 1, 3) & ~(1n << 39n), 8, 1)).toBe("00000000");
    expect(zeroColumns(mask(0, 1, 1, 0, 5), 8, 1).shift).toBe(5);
  });

  test.each([128, 64, 32])(
    "a product of %i rows that skips every fourth column and reads B from the third on",
    (m) => {
      const bits = (1n << 39n) | (0n << 40n) | (2n << 48n) | (2n << 56n);
      const mma = `mov.b64 %d12, 0x${bits.toString(16)}; tcgen05.mma.ws.cta_group::1.kind::f16 [%r2], %d10, %d11, %r10, 0, %d12;`;
      const { codes, at } = run({ m, n: 64, mma, columnsOfB: 72 });
      expect(codes).toEqual([]);
      const banks = 128 / m;
      for (const row of [0, m - 1])
        for (let column = 0; column < 64; column++) {
          const bank = Math.floor((column * banks) / 64);
          const within = column % (64 / banks);
          const expected = within % 4 === 3 ? 0 : (row + 1) * (column + 3);
          expect(at(row + m * bank, within)).toBe(expected);
        }
    },
  );
});

describe("A shifted down by a row", () => {
  const mma = "tcgen05.mma.cta_group::1.kind::f16.ashift [%r2], [%r2+16], %d11, %r10, 0;";
  test("row by row, the last one stays; what crosses a quarter of the lanes is undefined", () => {
    const fill = (lane: number, column: number): number => (column === 16 ? half(lane + 1) : 0);
    const { codes, at } = run({ m: 128, n: 16, mma, fill });
    // Rows 31, 63 and 95 are read back as registers that hold nothing defined.
    expect([...new Set(codes)]).toEqual(["TW8012"]);
    for (const lane of [0, 5, 30, 32, 100, 126]) expect(at(lane, 3)).toBe(4 * (lane + 2));
    expect(at(127, 3)).toBe(4 * 128);
  });
});

describe("collector buffers change no values", () => {
  test.each(["b0", "b1", "b2", "b3"])("%s of a weight-stationary product", (buffer) => {
    const mma = (use: string, enable: number): string =>
      `tcgen05.mma.ws.cta_group::1.kind::f16.collector::${buffer}::${use} [%r2], %d10, %d11, %r10, ${enable};`;
    const { codes, at } = run({
      m: 128,
      n: 64,
      mma: `${mma("fill", 0)} ${mma("use", 1)} ${mma("lastuse", 1)}`,
    });
    expect(codes).toEqual([]);
    expect(at(9, 4)).toBe(3 * 10 * 5);
  });

  test("of A, with M of 64", () => {
    const mma = (use: string, enable: number): string =>
      `tcgen05.mma.cta_group::1.kind::f16.collector::a::${use} [%r2], %d10, %d11, %r10, ${enable};`;
    const { codes, at } = run({
      m: 64,
      n: 8,
      mma: `${mma("fill", 0)} ${mma("lastuse", 1)} ${mma("discard", 1)}`,
    });
    expect(codes).toEqual([]);
    expect(at(32 + 3, 4)).toBe(3 * 20 * 5);
  });
});

test("37: columns are used again behind a product, two accumulators beside each other", () => {
  const second = "tcgen05.mma.cta_group::1.kind::f16 [%r2+8], %d10, %d11, %r10, 0;";
  const again = `tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [extra];
    $again: mbarrier.try_wait.parity.shared::cta.b64 %p4, [extra], 0; @!%p4 bra $again; tcgen05.fence::after_thread_sync;`;
  const first = "tcgen05.mma.cta_group::1.kind::f16 [%r2], %d10, %d11, %r10, 0;";
  const { codes, at } = run({
    m: 128,
    n: 8,
    mma: `${first} ${second} ${again} ${first.replace("0;", "1;")}`,
  });
  expect(codes).toEqual([]);
  expect([at(3, 2), at(3, 8 + 2)]).toEqual([2 * 4 * 3, 4 * 3]);
});
