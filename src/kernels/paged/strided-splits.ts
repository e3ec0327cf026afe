/**
 * Splits of the only sequence that take turns, for tiles of several pages of FP8:
 *
 *   tiles      0 1 2 3 4 5 6 7            8 tiles, 3 splits
 *   splits     0 1 2 0 1 2 0 1
 *
 * Tiles of a split have their pages all over the table, and busy memory would answer each question late; so a split asks for all of them when it begins, and
 * notes them in shared memory.
 */
import { dtypes } from "../../formats/dtype.ts";
import { iota } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import { packingOf } from "./arrays.ts";
import type { PagedForm } from "./arrays.ts";
import type { Integer } from "./tile-scheduler.ts";

/** The most pages that a split notes: longer splits hardly gain by an earlier beginning. */
const mostNoted = 256;

/**
 * Whether splits take turns. On an H200 they are 1.02 times as fast where tiles have several pages, and 0.99 where pages have several tiles, which are better
 * read one after the other. Where a window begins is known with the length alone.
 */
export function isStrided(form: PagedForm): boolean {
  const { problem, sizes, configuration } = form;
  const { tokens, parts } = packingOf(sizes, configuration);
  const isAlone = sizes.b === 1 && sizes.s <= tokens && parts === 1;
  const isShort = sizes.most > 0 && cachedPages(form) <= mostNoted;
  const hasPages = sizes.size < configuration.columns && problem.k.dtype.bits === 8;
  const isOpen = problem.window.left === undefined;
  return isAlone && configuration.splits > 1 && hasPages && isShort && isOpen;
}

/** How many pages a split notes, a power of two. */
export function cachedPages({ sizes, configuration }: PagedForm): number {
  const { columns, splits } = configuration;
  const tiles = Math.ceil((sizes.most * sizes.size) / columns);
  return powerOfTwoFrom(Math.max(32, Math.ceil(tiles / splits) * (columns / sizes.size)));
}

/** Where in the table the pages of a split lie. */
export function stridedPositions(form: PagedForm, split: Integer): Tile<"i32"> {
  const { sizes, configuration } = form;
  const copies = configuration.columns / sizes.size;
  const number = iota(dtypes.i32, [cachedPages(form)], { axis: 0 });
  const tile = number.div(copies).mul(configuration.splits).add(split);
  return tile.mul(copies).add(number.rem(copies));
}
