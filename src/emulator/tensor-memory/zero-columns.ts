/**
 * The mask of `tcgen05.mma.ws` that zeroes columns of B: runs of used and skipped columns, in turns, for each bank of
 * D. It also shifts the columns of B that are read:
 *
 *   bits  0–31          32–35          39      40–47     48–55    56–61
 *         dropped, 4×8  first skipped  is set  skip − 1  use − 1  shift
 *
 *   skip 2, use 3, first skipped, 1 dropped     s u u u s s u u u …   of  s s u u u s s u u u …
 */

export interface ZeroColumns {
  /** 1 for a column of the product whose B counts as zero. */
  readonly zero: Uint8Array;
  readonly shift: number;
}

export function zeroColumns(mask: bigint, columns: number, banks: 1 | 2 | 4): ZeroColumns {
  const field = (from: number, width: number): number =>
    Number((mask >> BigInt(from)) & ((1n << BigInt(width)) - 1n));
  const zero = new Uint8Array(columns);
  const shift = field(56, 6);
  if (field(39, 1) === 0) return { zero, shift };
  const [skip, use] = [field(40, 8) + 1, field(48, 8) + 1];
  const perBank = columns / banks;
  for (let bank = 0; bank < banks; bank++) {
    const dropped = field(8 * bank, 8);
    const startsSkipped = field(32 + bank, 1) === 1;
    for (let column = 0; column < perBank; column++) {
      const at = (column + dropped) % (skip + use);
      const isSkipped = startsSkipped ? at < skip : at >= use;
      zero[bank * perBank + column] = isSkipped ? 1 : 0;
    }
  }
  return { zero, shift };
}
