/**
 * Tiles that reach beyond the last row or column. What lies outside an array is filled in by TMA, and requests for it
 * are answered for the whole GPU at about a tenth of the rate of others: few tiles take no longer for it, 44 of them at once did.
 * A step of one round of tiles, 4096 deep on an H200, in µs:
 *
 *   rows × columns, and columns outside   4 tiles at once   22     44
 *   128 × 192, none                       0.41              0.43   0.44
 *   128 × 192, 128                        0.42              0.43   0.66
 *   64 × 128, 64                          0.17              0.17   0.30
 *   64 × 224 by pairs, 192                                  0.69   1.29
 *
 * Elements along k are fetched a row at a time. Others come in boxes, each with a row for every element of k, and those of a box that the
 * array ends in take as long as those of one outside: 44 tiles of 64 × 256 at once took 0.41 µs a step with 32 columns outside, 0.41 with 64 and
 * 0.30 with none.
 *
 * Where that would take time, the last tiles have windows of their own, which end soon after the array does (`edgeOf`, `producer.ts`):
 *
 *   128 × 192, 128 columns outside    a window of 192 columns in every step, or one of 64
 *
 * A copy into shared memory fills what lies outside with zeros, which is what it means and what users may count on, so leaving some of it
 * out is the library's to decide: what was in the slot before stays there. It is multiplied, into rows and columns of the result that
 * nobody stores, whatever it is; elements outside along k would be added to all of them, and are always fetched, as zeros. Slots are filled
 * whole when they are filled first, so that nothing is read that nobody wrote. The last tiles might be moved back instead, to end where the array
 * does, but two blocks would then write the same results.
 */

/** How tiles lie, how many workers take them in turn, and how many rows of them are in a group (`tile-scheduler.ts`). */
export interface TilePlane {
  readonly batch: number;
  readonly down: number;
  readonly across: number;
  readonly workers: number;
  readonly group: number;
}

/** Which tiles may reach beyond an edge. */
export type LastTiles = "row" | "column";

/** Tiles of the last column, or of the last row, that are worked at once. */
function lastAtOnce({ batch, down, across, workers }: TilePlane, last: LastTiles): number {
  const [count, others] = last === "column" ? [down, across] : [across, down];
  return Math.min(batch * count, workers / others);
}

/** The most of those tiles that one worker has: of tiles in a row each takes one, and those of a group's last column come in a row. */
export function mostOfWorker(plane: TilePlane, last: LastTiles): number {
  const { batch, down, across, workers, group } = plane;
  const counts = new Uint32Array(workers);
  let most = 0;
  const count = (tile: number): void => {
    const worker = tile % workers;
    const own = (counts[worker] ?? 0) + 1;
    counts[worker] = own;
    if (own > most) most = own;
  };
  for (let layer = 0; layer < batch; layer += 1)
    for (let row = 0; row < down; row += group) {
      const size = Math.min(group, down - row);
      const begin = (layer * down + row) * across;
      if (last === "column") {
        // Every other group is gone through from the right.
        const column = (row / group) % 2 === 0 ? across - 1 : 0;
        for (let one = 0; one < size; one += 1) count(begin + column * size + one);
      } else if (row + size === down)
        for (let column = 0; column < across; column += 1) count(begin + column * size + size - 1);
    }
  return most;
}

/** The rows or columns of tiles, and how they are fetched. */
export interface FetchedSide {
  /** Those of a block's tile, and those of the product. */
  readonly tile: number;
  readonly extent: number;
  /** Blocks of a cluster that follow each other along the side. */
  readonly blocks: number;
  /** Elements that are fetched together, and with how many requests. */
  readonly box: number;
  readonly requests: number;
}

/**
 * The part of the last block's tile that is not fetched from the array, and the requests of a step for what of its window lies outside.
 * Windows are as long as the tile by default.
 */
export function outsideOf(
  { tile, extent, blocks, box, requests }: FetchedSide,
  window = tile,
): { readonly part: number; readonly requests: number } {
  const whole = tile * blocks;
  const inside = tile - Math.min(tile, Math.ceil(extent / whole) * whole - extent);
  const boxes = Math.ceil(Math.max(0, window - inside) / box);
  return { part: (tile - window + boxes * box) / tile, requests: boxes * requests };
}

/**
 * Rows or columns of the window of tiles that reach beyond the end, where that is less than a whole one: whole boxes; else quarters of
 * a tile, in rows of eight as they lie in shared memory, so that sizes which change from call to call have few kernels.
 */
export function edgeOf({ tile, extent, blocks, box }: FetchedSide): number | undefined {
  if (extent % (tile * blocks) === 0) return undefined;
  const grain = box > 1 ? box : 8 * Math.ceil(tile / 32);
  const edge = Math.max(1, Math.ceil((extent % tile) / grain)) * grain;
  return edge < tile ? edge : undefined;
}

/** Blocks of a cluster, and the seconds of a request for what lies outside, for each that is made at once. */
interface Answers {
  readonly cluster: number;
  readonly seconds: number;
}

/** Requests of a step for what lies outside, of all blocks that have one of the last tiles at once. */
export function outsideAtOnce(
  plane: TilePlane,
  side: FetchedSide,
  last: LastTiles,
  cluster: number,
  window?: number,
): number {
  const blocks = lastAtOnce(plane, last) * (last === "column" ? cluster : 1);
  return blocks * outsideOf(side, window).requests;
}

/** Seconds in which a step's rows and columns are fetched, those of the step, and those that one takes for which that takes so long. */
export interface FetchedSteps {
  readonly fetching: { readonly [L in LastTiles]: number };
  readonly step: number;
  readonly stepOf: (fetching: number) => number;
}

/**
 * What a step of each of its tiles takes the worker longer that has most of the last ones, all of these together. Windows are those of the last
 * tiles, where these have their own.
 */
export function overhangSeconds(
  plane: TilePlane,
  sides: { readonly [L in LastTiles]: FetchedSide },
  windows: { readonly [L in LastTiles]?: number | undefined },
  { fetching, step, stepOf }: FetchedSteps,
  { cluster, seconds }: Answers,
): number {
  const all = fetching.row + fetching.column;
  const longer = (last: LastTiles): number => {
    const { part } = outsideOf(sides[last], windows[last]);
    const requests = outsideAtOnce(plane, sides[last], last, cluster, windows[last]);
    if (requests === 0) return 0;
    const more = stepOf(all - part * fetching[last] + requests * seconds) - step;
    return more <= 0 ? 0 : more * mostOfWorker(plane, last);
  };
  return Math.max(longer("row"), longer("column"));
}
