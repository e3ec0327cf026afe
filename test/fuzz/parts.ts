/** What random programs are made of: sizes, and tiles of small whole numbers. */
import type { HostArray, HostValue } from "../../src/index.ts";
import { f32 } from "../../src/index.ts";
import type { Tile } from "../../src/index.ts";
import type { Kernel } from "../../src/ir/node.ts";
import type { Random } from "../../src/support/random.ts";
import type { Cells } from "./tensor-memory/compute.ts";

/** A kernel with values for its named dimensions, and for those of its scalars that are not any number. */
export interface Program {
  readonly kernel: Kernel;
  readonly dimensions: { readonly [name: string]: number };
  readonly scalars?: { readonly [name: string]: HostValue };
  /** What arrays hold, where that is not any number. */
  readonly data?: { readonly [name: string]: HostArray };
  /** What the program gives by an account of its own: a line for each array that it writes. */
  readonly expected?: string;
  /** What arrays hold in the end, within bounds, by an account of its own. */
  readonly near?: { readonly [name: string]: Cells };
  /** Names of the targets that have its instructions; all unless given. */
  readonly targets?: readonly string[];
}

/** Elementwise steps that keep integers in f32 exact, so that every order of a sum gives the same bits. */
export function polish(tile: Tile<"f32">, random: Random): Tile<"f32"> {
  let result = tile;
  for (let step = random.below(4); step > 0; step--) {
    const steps: readonly (() => Tile<"f32">)[] = [
      () => result.add(random.below(5)),
      () => result.mul(random.pick([1, -1, 2])).add(0),
      () => result.maximum(-random.below(9)),
      () => result.neg().add(0),
      () => result.abs(),
      () => result.gt(0).select(result, result.add(1)),
      () => result.floor(),
    ];
    result = random.pick(steps)();
  }
  return result;
}

/** Small whole numbers and no -0, whatever the array holds. */
export function tame(tile: Tile, random: Random): Tile<"f32"> {
  return polish(tile.cast(f32).maximum(-8).minimum(8).floor().add(0), random);
}

/** Elements for one block, two or, more rarely, three, of which the last one may have few. */
export function someBlocks(extent: number, random: Random): number {
  return 1 + random.below(random.pick([1, 2, 2, 3]) * extent);
}

/** Sizes, each of which is drawn twice as often as the next: most kernels are small, so that there can be many. */
export function mostlySmall(sizes: readonly number[], random: Random): number {
  const at = sizes.findIndex((_, index) => index === sizes.length - 1 || random.below(2) === 0);
  return sizes[at] ?? 1;
}
