/**
 * Tiles of 16 bits in shared memory by `ldmatrix` and `stmatrix`: four matrices of 8 × 8 an instruction
 * instead of four instructions for a word each. A matrix has rows of 16 bytes; the hardware gives lane l
 * the pair in row l / 4, column 2 (l % 4), which is how the accumulator of wgmma lies, and takes the
 * address of row l % 8 of matrix l / 8 from lane l.
 *
 *   who owns what in the bytes of a tile        plain                .trans
 *   the pair of a word, L0, L1                  2, 4 and 8 bytes     anything: rows
 *   L2, L3, L4                                  anything: rows       2, 4 and 8 bytes
 *
 *   lane bits of an address:   0, 1, 2   the row         what the owners of rows add
 *                              3, 4      the matrix      what the next word, and the one after, add
 */
import type { EmitContext } from "../context.ts";
import type { SharedValue } from "../values.ts";
import type { TileParts } from "./parts.ts";
import { SharedAddresses } from "./shared-addresses.ts";
import type { SharedPlaces } from "./shared-addresses.ts";
import type { MatrixAccess, MatrixGroup } from "./units.ts";

const rowBits = 128;
const elementBits = 16;

interface Rows {
  readonly transposed: boolean;
  /** What the three bits of a row's number add. */
  readonly ofRow: readonly [number, number, number];
}

/** Undefined where the tile does not lie in rows of 16 bytes. */
export function matrixAccess(
  context: EmitContext,
  window: SharedValue,
  parts: TileParts,
  places: SharedPlaces,
): MatrixAccess | undefined {
  if (window.dtype.bits !== elementBits || window.rank !== undefined) return undefined;
  if (!everyLaneHolds(parts)) return undefined;
  const rows = rowsOf(places);
  if (rows === undefined) return undefined;
  const starts = wordStarts(places);
  const others = [...rows.ofRow, ...places.ofBits.slice(5), ...starts, ...places.ofMoves.flat()];
  if (others.some((bits) => bits % rowBits !== 0)) return undefined;
  return {
    transposed: rows.transposed,
    groups: () => groupsOf(context, window, places, rows, starts),
  };
}

function everyLaneHolds({ axes, registers }: TileParts): boolean {
  const whole = axes.every(
    ({ most, extent, ofRegister }) => Math.max(...ofRegister) + most < extent,
  );
  return whole && registers % 2 === 0;
}

/** The place of the first element of each word. */
function wordStarts({ ofRegister }: SharedPlaces): readonly number[] {
  return ofRegister.filter((_, register) => register % 2 === 0).map((bits) => bits ?? 0);
}

function rowsOf({ ofBits, ofRegister }: SharedPlaces): Rows | undefined {
  const [l0 = 0, l1 = 0, l2 = 0, l3 = 0, l4 = 0] = ofBits;
  const pair = (ofRegister[1] ?? 0) - (ofRegister[0] ?? 0);
  const alike = ofRegister.every(
    (bits, register) =>
      register % 2 === 0 || (bits ?? 0) - (ofRegister[register - 1] ?? 0) === pair,
  );
  if (!alike || pair < 0) return undefined;
  if (pair === elementBits && l0 === 2 * elementBits && l1 === 4 * elementBits)
    return { transposed: false, ofRow: [l2, l3, l4] };
  if (l2 === elementBits && l3 === 2 * elementBits && l4 === 4 * elementBits)
    return { transposed: true, ofRow: [pair, l0, l1] };
  return undefined;
}

interface Words {
  readonly words: readonly number[];
  /** What the bits of the matrix's number add. */
  readonly ofMatrix: readonly [number, number];
}

function groupsOf(
  context: EmitContext,
  window: SharedValue,
  places: SharedPlaces,
  { ofRow }: Rows,
  starts: readonly number[],
): readonly MatrixGroup[] {
  const groups: Words[] = [];
  for (let word = 0; word < starts.length; word += groups.at(-1)?.words.length ?? 1)
    groups.push(wordsFrom(starts, word));
  const startOf = ({ words: [first = 0] }: Words): number => starts[first] ?? 0;
  const addresses = new Map<string, SharedAddresses>();
  return groups.map((group) => {
    const key = group.ofMatrix.join();
    const known = addresses.get(key);
    const made =
      known ??
      new SharedAddresses(context, window, {
        ...places,
        ofBits: [...ofRow, ...group.ofMatrix, ...places.ofBits.slice(5)],
        ofRegister: groups.filter(({ ofMatrix }) => ofMatrix.join() === key).map(startOf),
      });
    addresses.set(key, made);
    return { words: group.words, address: made.of(startOf(group) >> 3) };
  });
}

/** As many words from one on as an instruction can take. */
function wordsFrom(starts: readonly number[], word: number): Words {
  const [first = 0, second, third, fourth] = starts.slice(word, word + 4);
  const next = second === undefined ? -1 : second - first;
  const after = third === undefined ? -1 : third - first;
  if (next >= 0 && after >= 0 && fourth === first + next + after)
    return { words: [word, word + 1, word + 2, word + 3], ofMatrix: [next, after] };
  if (next >= 0) return { words: [word, word + 1], ofMatrix: [next, 0] };
  return { words: [word], ofMatrix: [0, 0] };
}
