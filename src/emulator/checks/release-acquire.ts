/**
 * Which accesses of other warps a warp may rely on. Barriers hand knowledge on by themselves; here is what
 * goes through memory: a strong store or atomic publishes at its address, a strong load or atomic takes.
 *
 *   warp 0   st.global [data]          fence        st.relaxed [flag]   publishes what it knew at the fence
 *   warp 1   ld.relaxed [flag]         fence        ld.global [data]    knows from its fence on
 *
 * `.release` and `.acquire` are such a fence and the access in one. How far each reaches is in `../../happens-before/memory-scopes.ts`.
 */
import type { BlockState, WarpState } from "../machine/warp.ts";
import { nothing, scoped, Told } from "../../happens-before/memory-scopes.ts";
import type { Scope } from "../../happens-before/memory-scopes.ts";
import type { AccessSemantics } from "./access-semantics.ts";

export class MemoryOrder {
  readonly #global = new Map<number, Told>();
  readonly #shared = new WeakMap<BlockState, Map<number, Told>>();

  #published(block: BlockState | undefined): Map<number, Told> {
    if (block === undefined) return this.#global;
    let map = this.#shared.get(block);
    if (map === undefined) {
      map = new Map();
      this.#shared.set(block, map);
    }
    return map;
  }

  fence(warp: WarpState, scope: Scope): void {
    warp.learning?.fence(scope);
  }

  /** A strong access to a place in global memory, or in a block's shared memory. */
  access(
    warp: WarpState,
    block: BlockState | undefined,
    offset: number,
    { acquires, releases, reads, writes, updates, scope }: AccessSemantics,
  ): void {
    const { timeline, learning } = warp;
    if (timeline === undefined || learning === undefined) return;
    const map = this.#published(block);
    const found = map.get(offset);
    if (reads && found !== undefined) {
      const told = found.ask(warp.block, scope);
      if (acquires) learning.learn(told[scope]);
      else learning.see(told);
    }
    if (!writes) return;
    const own = releases ? timeline.publish() : undefined;
    const told = own === undefined ? learning.fenced : scoped(() => own);
    // What was told before stays told through an atomic, and ends with a plain store.
    if (!updates) map.delete(offset);
    if (told === nothing) return;
    const kept = (updates ? found : undefined) ?? new Told();
    kept.tell(warp.block, scope, told);
    map.set(offset, kept);
  }
}
