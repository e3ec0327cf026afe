/** Where variables lie, and the special registers. */
import type { Variable } from "../../ptx/module.ts";
import type { AddressSpace } from "../addresses.ts";
import { bitsOf } from "./registers.ts";

export interface VariablePlace {
  /**
   * `local` also for the parameters of functions, which lie on the lane's stack. `global`: `offset` is the
   * number of the symbol in the table of the launch's addresses.
   */
  readonly space: AddressSpace;
  readonly offset: number;
}

export function variableBytes({ type, count, vector }: Variable): number {
  return (bitsOf(type) / 8) * (vector ?? 1) * (count ?? 1);
}

function variableAlignment({ type, alignment, vector }: Variable): number {
  return alignment ?? (bitsOf(type) / 8) * (vector ?? 1);
}

/** Lays variables one behind the other. */
export class Area {
  #bytes = 0;
  #alignment = 1;

  get bytes(): number {
    return this.#bytes;
  }

  get alignment(): number {
    return this.#alignment;
  }

  add(variable: Variable): number {
    const alignment = variableAlignment(variable);
    this.align(alignment);
    const offset = this.#bytes;
    this.#bytes += variableBytes(variable);
    return offset;
  }

  align(alignment: number): void {
    this.#alignment = Math.max(this.#alignment, alignment);
    this.#bytes = Math.ceil(this.#bytes / alignment) * alignment;
  }
}

/** Special registers that are the same for all lanes of a warp, by their place in `w.specials`. */
export const uniformSpecials = [
  "%ntid.x",
  "%ntid.y",
  "%ntid.z",
  "%ctaid.x",
  "%ctaid.y",
  "%ctaid.z",
  "%nctaid.x",
  "%nctaid.y",
  "%nctaid.z",
  "%warpid",
  "%nwarpid",
  "%smid",
  "%nsmid",
  "%gridid",
  "%clusterid.x",
  "%clusterid.y",
  "%clusterid.z",
  "%nclusterid.x",
  "%nclusterid.y",
  "%nclusterid.z",
  "%cluster_ctaid.x",
  "%cluster_ctaid.y",
  "%cluster_ctaid.z",
  "%cluster_nctaid.x",
  "%cluster_nctaid.y",
  "%cluster_nctaid.z",
  "%cluster_ctarank",
  "%cluster_nctarank",
  "%is_explicit_cluster",
  "%dynamic_smem_size",
  "%total_smem_size",
  "%aggr_smem_size",
] as const;
export type UniformSpecial = (typeof uniformSpecials)[number];

/** Special registers that each lane computes, as expressions of its number `l`. */
export const laneSpecials: { readonly [name: string]: string } = {
  "%tid.x": "w.lanesX[l]",
  "%tid.y": "w.lanesY[l]",
  "%tid.z": "w.lanesZ[l]",
  "%tid.w": "0",
  "%ntid.w": "0",
  "%ctaid.w": "0",
  "%nctaid.w": "0",
  "%laneid": "l",
  "%lanemask_eq": "(1 << l)",
  "%lanemask_lt": "((1 << l) - 1)",
  "%lanemask_le": "((2 << l) - 1)",
  "%lanemask_gt": "(-2 << l)",
  "%lanemask_ge": "(-1 << l)",
};

/** Special registers that hold a word of the time, which is counted in instructions of all warps. */
export const clockSpecials: { readonly [name: string]: 0 | 1 } = {
  "%clock": 0,
  "%clock_hi": 1,
  "%globaltimer_lo": 0,
  "%globaltimer_hi": 1,
};

/** 64-bit special registers. */
export const wideSpecials: ReadonlySet<string> = new Set(["%clock64", "%globaltimer"]);
