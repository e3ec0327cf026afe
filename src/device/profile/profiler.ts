/**
 * Profiles of a device that was asked for them: kernels with scopes are launched with rings to write to, which are
 * read when the launch has run.
 *
 *   launch(softmax, { x, out })   rings of zeros ──▶ softmax, with marks that write ──▶ rings read ──▶ onProfile
 */
import { elementCount } from "../../formats/shape.ts";
import type { Kernel } from "../../ir/node.ts";
import { headSlots, slotWords } from "../../ir/profile-ring.ts";
import { evaluateSize, multiplySizes } from "../../ir/size.ts";
import type { DimensionValues } from "../../ir/size.ts";
import { profiledKernel } from "../../passes/profile-marks.ts";
import type { ProfiledKernel } from "../../passes/profile-marks.ts";
import type { ArrayOperations } from "../array-operations.ts";
import type { Backend } from "../backend.ts";
import type { DeviceArray } from "../device-array.ts";
import type { KernelProfile } from "./kernel-profile.ts";
import { readRings } from "./read-rings.ts";

/** What rings of a launch may take together, as long as each has room for the fewest edges. */
const mostBytes = 2 ** 26;
const [fewestEdges, mostEdges] = [16, 4096];

/** A launch that writes a profile. */
export interface ProfiledLaunch {
  readonly kernel: Kernel;
  /** Where it writes, by the argument's name. */
  readonly rings: { readonly [name: string]: DeviceArray<"u32"> };
  /** Resolves when the rings are zeros; what is issued later finds them so. */
  readonly cleared: Promise<void>;
  /** Reads the rings, once the launch is issued, and tells. */
  readonly tell: () => Promise<void>;
}

export class Profiler {
  readonly #backend: Backend;
  readonly #operations: ArrayOperations;
  readonly #hear: (profile: KernelProfile) => void;
  readonly #kernels = new WeakMap<Kernel, { readonly profiled: ProfiledKernel | undefined }>();

  constructor(
    backend: Backend,
    operations: ArrayOperations,
    hear: (profile: KernelProfile) => void,
  ) {
    this.#backend = backend;
    this.#operations = operations;
    this.#hear = hear;
  }

  /** A launch of a kernel with scopes; undefined of one without. */
  prepare(
    kernel: Kernel,
    dimensions: DimensionValues,
    allocate: (shape: readonly number[]) => DeviceArray<"u32">,
  ): ProfiledLaunch | undefined {
    const known = this.#kernels.get(kernel) ?? { profiled: profiledKernel(kernel) };
    this.#kernels.set(kernel, known);
    const { profiled } = known;
    if (profiled === undefined) return undefined;
    const count = evaluateSize(
      multiplySizes(...kernel.grid.map(({ extent }) => extent), profiled.ringsPerBlock),
      dimensions,
    );
    const edges = edgesFor(count);
    const rings = allocate([count, edges + headSlots, slotWords]);
    return {
      kernel: profiled.kernel,
      rings: { [profiled.rings]: rings },
      cleared: this.#operations.zeros(rings),
      tell: () => this.#tell(rings, profiled, new Map([...dimensions, [profiled.edges, edges]])),
    };
  }

  async #tell(
    rings: DeviceArray<"u32">,
    profiled: ProfiledKernel,
    dimensions: DimensionValues,
  ): Promise<void> {
    const { data } = await this.#operations.download(rings);
    const words = new Uint32Array(data.buffer, data.byteOffset, elementCount(rings.shape));
    const { name, timeUnit } = this.#backend;
    const { kernel } = profiled;
    this.#hear({
      kernel: kernel.name,
      device: name,
      unit: timeUnit,
      axes: kernel.grid.map((axis) => axis.name),
      ...readRings(words, profiled, dimensions),
    });
  }
}

/** Edges that each of so many rings has room for: a power of two. */
export function edgesFor(rings: number): number {
  let edges = mostEdges;
  while (edges > fewestEdges && rings * edges * 4 * slotWords > mostBytes) edges /= 2;
  return edges;
}
