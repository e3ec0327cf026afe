/**
 * The grid of a launch: how blocks and clusters are numbered. The last axis is the fastest, among
 * blocks, among clusters, and for the rank of a block in its cluster.
 *
 *   grid [4, 6], cluster [2, 1]     cluster 7 = blocks [2, 1] (rank 0) and [3, 1] (rank 1)
 */
import { coordinatesOf } from "../formats/shape.ts";
import type { GridAxis, Kernel } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import type { DimensionValues } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { product } from "./view.ts";

export class Grid {
  readonly extents: readonly number[];
  readonly clusterShape: readonly number[];
  readonly blocksPerCluster: number;
  readonly clusters: number;
  readonly dimensions: DimensionValues;
  readonly #clusterGrid: readonly number[];

  constructor(kernel: Kernel, dimensions: DimensionValues) {
    this.dimensions = dimensions;
    this.extents = kernel.grid.map(({ extent }) => evaluateSize(extent, dimensions));
    this.clusterShape = kernel.grid.map(({ cluster }) => cluster);
    for (const [axis, gridAxis] of kernel.grid.entries())
      requireWholeClusters(kernel, gridAxis, this.extents[axis] ?? 0);
    this.#clusterGrid = this.extents.map((extent, axis) => extent / (this.clusterShape[axis] ?? 1));
    this.blocksPerCluster = product(this.clusterShape);
    this.clusters = product(this.#clusterGrid);
  }

  /** Coordinates of a cluster's blocks, by rank. */
  clusterBlocks(cluster: number): readonly (readonly number[])[] {
    const origin = coordinatesOf(cluster, this.#clusterGrid);
    return Array.from({ length: this.blocksPerCluster }, (_, rank) => {
      const inside = coordinatesOf(rank, this.clusterShape);
      return origin.map(
        (coordinate, axis) => coordinate * (this.clusterShape[axis] ?? 1) + (inside[axis] ?? 0),
      );
    });
  }

  /** The number of a block in the launch: blocks of a cluster follow one another. */
  blockNumber(coordinates: readonly number[], rank: number): number {
    const cluster = this.#clusterGrid.reduce(
      (number, extent, axis) =>
        number * extent + Math.floor((coordinates[axis] ?? 0) / (this.clusterShape[axis] ?? 1)),
      0,
    );
    return cluster * this.blocksPerCluster + rank;
  }

  /** A block's position in its cluster along each axis. */
  positionInCluster(rank: number): readonly number[] {
    return coordinatesOf(rank, this.clusterShape);
  }

  /** Ranks of the blocks that differ from `rank` along the given axes only, itself included. */
  ranksAlong(rank: number, axes: readonly number[]): readonly number[] {
    const own = this.positionInCluster(rank);
    const ranks = Array.from({ length: this.blocksPerCluster }, (_, other) => other);
    return ranks.filter((other) =>
      this.positionInCluster(other).every(
        (position, axis) => axes.includes(axis) || position === own[axis],
      ),
    );
  }
}

function requireWholeClusters(kernel: Kernel, axis: GridAxis, extent: number): void {
  if (extent % axis.cluster === 0) return;
  throw new TilewrightError({
    code: "TW3015",
    message: `${extent} blocks along ${axis.name} do not make whole clusters`,
    location: kernel.location,
    expected: `a multiple of ${axis.cluster}`,
    found: String(extent),
  });
}
