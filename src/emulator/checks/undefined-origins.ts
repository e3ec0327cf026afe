/**
 * Where undefined values come from. A load of memory that nothing has written is no mistake yet, nor is a
 * store of an undefined register to shared memory: compilers load four words where three are used, and copy
 * structures with their gaps. When something undefined is seen later, in an address, a jump or global memory,
 * the lane's last suspect is the likely cause, and the report names it:
 *
 *   st.shared [a], %r1      %r1 undefined: the bytes stay undefined, with this store as their suspect
 *   ld.shared %r2, [a]      this lane's suspect is that store
 *   st.global [b], %r2      seen
 */
import type { BlockState, WarpState } from "../machine/warp.ts";
import { eachPlace } from "./touched-ranges.ts";

export type Suspect =
  | {
      readonly kind: "load";
      readonly site: number;
      readonly warp: WarpState;
      /** The block whose shared memory it is; undefined for global memory. */
      readonly block: BlockState | undefined;
      readonly offset: number;
    }
  | {
      readonly kind: "store";
      readonly site: number;
      readonly warp: WarpState;
      readonly lane: number;
      readonly register: string;
    };

export class Suspects {
  readonly #byWarp = new WeakMap<WarpState, (Suspect | undefined)[]>();
  readonly #stored = new WeakMap<BlockState, Map<number, Suspect>>();

  /** Lanes of a row load bytes that are undefined. */
  load(warp: WarpState, site: number, slot: number, lanes: number): void {
    const found = this.#byWarp.get(warp) ?? [];
    this.#byWarp.set(warp, found);
    eachPlace(warp, slot, lanes, 0, (block, offset, lane) => {
      const stored = block === undefined ? undefined : this.#stored.get(block)?.get(offset);
      found[lane] = stored ?? { kind: "load", site, warp, block, offset };
    });
  }

  /** A lane stores an undefined register to shared memory. */
  store(
    warp: WarpState,
    lane: number,
    stored: { readonly site: number; readonly register: string },
    block: BlockState,
    offset: number,
  ): void {
    const places = this.#stored.get(block) ?? new Map<number, Suspect>();
    this.#stored.set(block, places);
    places.set(offset, this.of(warp, lane) ?? { kind: "store", warp, lane, ...stored });
  }

  of(warp: WarpState, lane: number): Suspect | undefined {
    return this.#byWarp.get(warp)?.[lane];
  }
}
