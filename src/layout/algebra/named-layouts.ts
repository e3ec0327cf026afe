/**
 * The layouts that instructions fix, by name, and the usual ones for memory. In the tables, w is the
 * warp, g = lane >> 2, t = lane & 3, and i counts the registers, one an element.
 *
 *   | name                 | element of register i                                    | atom      |
 *   |----------------------|----------------------------------------------------------|-----------|
 *   | wgmma                | row 16w + g + 8·(i>>1 & 1), column 8·(i>>2) + 2t + (i&1)  | 64 × 8    |
 *   | wgmmaRow             | row 16w + g + 8i                                         | 64        |
 *   | wgmmaColumn          | column 8·(i>>1) + 2t + (i&1)                             | 8         |
 *   | wgmmaTransposed      | the 2 × 2 blocks of wgmma turned: pairs run down a column | 64 × 8    |
 *   | wgmmaLeft8           | row 16w + g + 8·(i>>2 & 1), column 16·(i>>3) + 4t + (i&3) | 64 × 16   |
 *   | wgmmaLeftTf32        | row 16w + g + 8·(i & 1), column 4·(i>>1) + t             | 64 × 4    |
 *   | wgmmaMetadata8       | row 16w + g + 8·(t & 1), column 2·(t>>1) + (i & 1)       | 64 × 4    |
 *   | wgmmaUpcast2         | four neighbours a lane: columns 4·(0, 2, 1, 3)[t] + (i&3) | 64 × 16   |
 *   | wgmmaUpcast4         | eight neighbours a lane: columns 8t + (i & 7)            | 64 × 32   |
 *   | tcgen05              | row 32w + g + 8·(i>>1 & 3), column 8·(i>>3) + 2t + (i&1)  | 128 × 8   |
 *   | tcgen05Row, …Column  | its reductions                                           | 128, 8    |
 *   | tcgen05Transposed    | the 2 × 2 blocks of tcgen05 turned                       | 128 × 8   |
 *   | tmemNative           | row 32w + lane, column i                                 | 128 × 1   |
 *
 * Metadata of sparse products lie by the elements they speak of: of 8 bits as above, of 16 and 32 bits as a left operand
 * of tf32 does, one column of u16 to a lane of each four.
 *
 * A register operand of wgmma in a 16-bit format has the layout of the accumulator, which is why the
 * result of one product can be the left operand of the next.
 *
 * The upcast layouts are for weights in 8 or 4 bits that become a 16-bit operand: the load is wide (4
 * or 8 neighbours), and the way to `wgmma` exchanges one lane bit or two with registers. Without any
 * exchange, narrow weights are loaded in `wgmma` itself, two neighbours at a time.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import {
  bitRun,
  exponentOf,
  laneBit,
  laneBits,
  registerBit,
  warpBit,
  warpBits,
  warpRun,
} from "./index-bits.ts";
import type { Bit } from "./index-bits.ts";
import { axesLayout, flatLayout, splat } from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";
import { parseLayout } from "./parse-layout.ts";

function distributed(text: string): DistributedLayout {
  const layout = parseLayout(text);
  if (layout.kind === "splat") throw new Error(`${text} distributes nothing`);
  return layout;
}

/** Layouts without parameters. */
export const namedLayouts = Object.freeze({
  /** Every thread holds the one number that all elements have. */
  splat,
  /** Every thread holds every element. */
  replicated: distributed("()"),
  /** The accumulator of wgmma. */
  wgmma: distributed("(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"),
  /** A value for each row of wgmma's accumulator. */
  wgmmaRow: distributed("(L2 L3 L4 R0 W0 W1)"),
  /** A value for each column of wgmma's accumulator. */
  wgmmaColumn: distributed("(R0 L0 L1)"),
  /** The transpose of wgmma's accumulator. */
  wgmmaTransposed: distributed("(R0 L3 L4 R1 W0 W1 | L2 L0 L1)"),
  /** The left operand of wgmma in registers, of 8-bit elements. */
  wgmmaLeft8: distributed("(L2 L3 L4 R2 W0 W1 | R0 R1 L0 L1)"),
  /** The left operand of wgmma in registers, of tf32. */
  wgmmaLeftTf32: distributed("(L2 L3 L4 R0 W0 W1 | L0 L1)"),
  /** The metadata of a sparse left operand of wgmma, of 8-bit elements. */
  wgmmaMetadata8: distributed("(L2 L3 L4 L0 W0 W1 | R0 L1)"),
  /** A left operand of wgmma that elements of half its width are converted to in place. */
  wgmmaUpcast2: distributed("(L2 L3 L4 R2 W0 W1 | R0 R1 L1 L0)"),
  /** A left operand of wgmma that elements of a quarter of its width are converted to in place. */
  wgmmaUpcast4: distributed("(L2 L3 L4 R3 W0 W1 | R0 R1 R2 L0 L1)"),
  /** The accumulator of tcgen05 in registers. */
  tcgen05: distributed("(L2 L3 L4 R1 R2 W0 W1 | R0 L0 L1)"),
  /** A value for each row of tcgen05's accumulator. */
  tcgen05Row: distributed("(L2 L3 L4 R0 R1 W0 W1)"),
  /** A value for each column of tcgen05's accumulator. */
  tcgen05Column: distributed("(R0 L0 L1)"),
  /** The transpose of tcgen05's accumulator. */
  tcgen05Transposed: distributed("(R0 L3 L4 R1 R2 W0 W1 | L2 L0 L1)"),
  /** A row of tensor memory for each thread. */
  tmemNative: distributed("(L0 L1 L2 L3 L4 W0 W1 |)"),
});

/** The name of a layout of registers, such as `"wgmma"`. */
export type LayoutName = keyof typeof namedLayouts;

/** The layout of a name in `namedLayouts`, or of a text. */
export function layoutOfText(text: string): RegisterLayout {
  const name = text.trim();
  const named = Object.entries(namedLayouts).find(([each]) => each === name);
  if (named !== undefined) return named[1];
  if (!/^\w+$/.test(name)) return parseLayout(text);
  const names = Object.keys(namedLayouts).join(", ");
  throw new TilewrightError({
    code: "TW6001",
    message: `no register layout is called ${name}`,
    expected: `a text such as (L0 L1 L2 | R0 L3 L4), or ${names}`,
    found: name,
    remedy: "write a name of namedLayouts, such as wgmma, or the text of a layout",
  });
}

/** The first name that this layout has, for reports. */
export function layoutName(layout: RegisterLayout): LayoutName | undefined {
  const names = Object.keys(namedLayouts) as LayoutName[];
  return names.find((name) => namedLayouts[name].text === layout.text);
}

function fragmentError(message: string, expected: string, found: number): TilewrightError {
  return new TilewrightError({ code: "TW6005", message, expected, found: String(found) });
}

function requireExponent(value: number, what: string, most: number): number {
  const exponent = exponentOf(value);
  if (exponent === undefined || exponent > most)
    throw fragmentError(
      `${value} is no number of ${what}`,
      `a power of two up to ${2 ** most}`,
      value,
    );
  return exponent;
}

/** Warpgroups one below the other, each with a layout of wgmma's: their bits are those of the rows above. */
function stacked(layout: DistributedLayout, warps: number): DistributedLayout {
  const [rows = [], columns = []] = layout.axes;
  return axesLayout([[...rows, ...warpRun(warps).slice(warpRun(warpsPerGroup).length)], columns]);
}

/** The accumulator of wgmma in a program thread of so many warps, each warpgroup of which makes 64 rows. */
export function wgmmaAccumulator(warps: number): DistributedLayout {
  return stacked(namedLayouts.wgmma, warps);
}

/** The left operand of wgmma in registers, for elements of so many bits. */
export function wgmmaLeft(bits: number, warps = warpsPerGroup): DistributedLayout {
  const layouts: { readonly [bits: number]: DistributedLayout } = {
    8: namedLayouts.wgmmaLeft8,
    16: namedLayouts.wgmma,
    32: namedLayouts.wgmmaLeftTf32,
  };
  const layout = layouts[bits];
  if (layout === undefined)
    throw fragmentError(`wgmma has no left operand of ${bits} bits`, "8, 16 or 32 bits", bits);
  return stacked(layout, warps);
}

/** The metadata of a sparse left operand whose elements have so many bits: a word has two columns, or two rows. */
export function wgmmaMetadata(bits: number, warps = warpsPerGroup): DistributedLayout {
  return stacked(bits === 8 ? namedLayouts.wgmmaMetadata8 : namedLayouts.wgmmaLeftTf32, warps);
}

/**
 * The accumulator of a pair of blocks with 64 rows each, n columns: warps 0 and 1 hold the first half
 * of the columns, warps 2 and 3 the second.
 */
export function tcgen05Collective(columns: number): DistributedLayout {
  const exponent = exponentOf(columns);
  if (exponent === undefined || exponent < 4)
    throw fragmentError(
      `no fragment of ${columns} columns`,
      "a power of two of columns, 16 or more",
      columns,
    );
  const inner = exponent - 4;
  return axesLayout([
    [2, 3, 4].map(laneBit).concat(bitRun(registerBit, 1 + inner, 2), warpBit(0)),
    [registerBit(0), laneBit(0), laneBit(1), ...bitRun(registerBit, 1, inner), warpBit(1)],
  ]);
}

/** How warps share the rows and columns of a product; if not all of them do, the others hold copies. */
export interface WarpGrid {
  /** Warps along the rows. */
  readonly rows: number;
  /** Warps along the columns. */
  readonly columns: number;
}

/** Warps one below the other. */
export const warpsOverRows: WarpGrid = Object.freeze({ rows: 4, columns: 1 });

/** Which operand of `mma.sync` a fragment is of. */
export type MmaOperand = "left" | "right" | "accumulator";

/**
 * Fragments of `mma.sync` m16n8k(256 / bits) for operands of 4, 8, 16, 32 (tf32) or 64 bits. With v = 32 /
 * bits elements to a register of 32 bits, and 1 to one of 64:
 *
 *   | operand     | row                           | column                                |
 *   |-------------|-------------------------------|---------------------------------------|
 *   | left        | g + 8·(i/v & 1)               | k = v·t + i%v + 4v·(i/v >> 1)         |
 *   | right       | k = v·t + i%v + 4v·(i/v)      | g                                     |
 *   | accumulator | g + 8·(i>>1)                  | 2t + (i&1)                            |
 *
 * Those of f64 are of 4 along k, the right one of one register: instructions of 8 and 16 take two and four of them.
 */
export function mmaFragment(
  operand: MmaOperand,
  bits: number,
  warps: WarpGrid = warpsOverRows,
): DistributedLayout {
  const vector = bits === 64 ? 0 : exponentOf(32 / bits);
  if (vector === undefined || vector > 3)
    throw fragmentError(`mma.sync has no operand of ${bits} bits`, "4, 8, 16, 32 or 64 bits", bits);
  const rows = requireExponent(warps.rows, "warps", warpBits);
  const columns = requireExponent(warps.columns, "warps", warpBits - rows);
  const groups = [2, 3, 4].map(laneBit);
  const ofRows = bitRun(warpBit, 0, rows);
  const ofColumns = bitRun(warpBit, rows, columns);
  const along = [...bitRun(registerBit, 0, vector), laneBit(0), laneBit(1)];
  const fragments: { readonly [K in MmaOperand]: readonly (readonly Bit[])[] } = {
    left: [[...groups, registerBit(vector), ...ofRows], along],
    right: [
      [...along, ...(bits === 64 ? [] : [registerBit(vector)])],
      [...groups, ...ofColumns],
    ],
    accumulator: [
      [...groups, registerBit(1), ...ofRows],
      [registerBit(0), laneBit(0), laneBit(1), ...ofColumns],
    ],
  };
  return axesLayout(fragments[operand]);
}

/**
 * Scales of a factor of `mma.sync` with scales, a row [rows, blocks of k] for each row of the left factor or column of the right one. A word has four
 * blocks of its row; of 16 rows of the left factor, lanes 4g and 4g + 1 have rows g and g + 8, of 8 columns lane 4g has column g, and the other
 * lanes have the next four blocks, as far as there are any.
 */
export function mmaScales(
  operand: "left" | "right",
  warps: WarpGrid = warpsOverRows,
): DistributedLayout {
  const rows = requireExponent(warps.rows, "warps", warpBits);
  const columns = requireExponent(warps.columns, "warps", warpBits - rows);
  const groups = [2, 3, 4].map(laneBit);
  const inWord = bitRun(registerBit, 0, 2);
  return operand === "left"
    ? axesLayout([
        [...groups, laneBit(0), ...bitRun(warpBit, 0, rows)],
        [...inWord, laneBit(1)],
      ])
    : axesLayout([
        [...groups, ...bitRun(warpBit, rows, columns)],
        [...inWord, laneBit(0), laneBit(1)],
      ]);
}

/** Runs of `vector` neighbours over all lanes and warps, by the number of the element. */
export function stridedLayout(vector: number, warps = warpsPerGroup): DistributedLayout {
  const exponent = requireExponent(vector, "neighbours", 10);
  return flatLayout([
    ...bitRun(registerBit, 0, exponent),
    ...bitRun(laneBit, 0, laneBits),
    ...warpRun(warps),
  ]);
}

/** How a tile is dealt out in rectangular blocks; powers of two, one entry an axis. */
export interface Blocking {
  /** Neighbours of the last axis in a lane. */
  readonly vector: number;
  /** Threads of a warp along each axis. */
  readonly lanes: readonly number[];
  /** Warps along each axis. */
  readonly warps: readonly number[];
}

/**
 * Blocks: on the last axis a vector in registers, then lanes, then warps; on the others lanes, then
 * warps. Low lane and warp bits go to the last axis. Lanes and warps not used hold copies.
 */
export function blockedLayout({ vector, lanes, warps }: Blocking): DistributedLayout {
  const rank = Math.max(lanes.length, warps.length);
  const axes: Bit[][] = [];
  let lane = 0;
  let warp = 0;
  for (let axis = rank - 1; axis >= 0; axis -= 1) {
    const last = axis === rank - 1;
    const registers = last ? requireExponent(vector, "neighbours", 10) : 0;
    const laneCount = requireExponent(lanes[axis] ?? 1, "lanes", laneBits - lane);
    const warpCount = requireExponent(warps[axis] ?? 1, "warps", warpBits - warp);
    axes.unshift([
      ...bitRun(registerBit, 0, registers),
      ...bitRun(laneBit, lane, laneCount),
      ...bitRun(warpBit, warp, warpCount),
    ]);
    lane += laneCount;
    warp += warpCount;
  }
  return axesLayout(axes);
}

/**
 * Blocks for coalesced access to memory whose last axis is contiguous: as many lanes along it as have
 * a vector each, then rows; warps over what remains, from the first axis. No lane overhangs unless the
 * last axis has an odd number of vectors, eight or more; then a few lanes idle.
 */
export function coalescedLayout(
  shape: readonly number[],
  vector: number,
  warpCount = warpsPerGroup,
): DistributedLayout {
  const rank = shape.length;
  const units = shape.map((extent, axis) =>
    axis === rank - 1 ? Math.ceil(extent / vector) : extent,
  );
  const lanes = units.map(() => 1);
  const warps = units.map(() => 1);
  let free = 1 << laneBits;
  for (let axis = rank - 1; axis >= 0; axis -= 1) {
    const count = Math.min(free, sharesOf(units[axis] ?? 1));
    lanes[axis] = count;
    free /= count;
  }
  let idle = warpCount;
  for (let axis = 0; axis < rank; axis += 1) {
    const left = Math.ceil((units[axis] ?? 1) / (lanes[axis] ?? 1));
    const count = Math.min(idle, sharesOf(left));
    warps[axis] = count;
    idle /= count;
  }
  return blockedLayout({ vector, lanes, warps });
}

/** The power of two that shares out `units`: exactly if eight ways or all can have some, else the next above. */
function sharesOf(units: number): number {
  const exact = units & -units;
  return exact >= Math.min(8, units) ? exact : 2 ** Math.ceil(Math.log2(units));
}
