/**
 * Loads that read memory which nothing has written. That is no mistake yet: compilers load four words where
 * three are used, and load before they know whether they need to. When something undefined is seen later, in an
 * address, a jump or global memory, the lane's last such load is the likely cause, and the report names it.
 */
import type { BlockState, WarpState } from "../machine/warp.ts";
import { eachPlace } from "./runs.ts";

export interface Suspect {
  readonly site: number;
  /** Of the first unwritten byte's access; undefined for global memory. */
  readonly block: BlockState | undefined;
  readonly offset: number;
}

export class Suspects {
  readonly #byWarp = new WeakMap<WarpState, (Suspect | undefined)[]>();

  add(warp: WarpState, site: number, slot: number, lanes: number): void {
    const found = this.#byWarp.get(warp) ?? [];
    this.#byWarp.set(warp, found);
    eachPlace(warp, slot, lanes, 0, (block, offset, lane) => {
      found[lane] = { site, block, offset };
    });
  }

  of(warp: WarpState, lane: number): Suspect | undefined {
    return this.#byWarp.get(warp)?.[lane];
  }
}
