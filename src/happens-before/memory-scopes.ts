/**
 * How far an access or a fence reaches: its block, its cluster, or the whole device. What a warp tells at one
 * scope counts for whoever asks at a scope that has both of them in it:
 *
 *   fence.acq_rel.cta;  st.relaxed.gpu [flag]      tells the warps of its own block
 *   fence.acq_rel.gpu;  st.relaxed.gpu [flag]      tells everyone
 *   ld.acquire.cta      [flag]                     asks what warps of its own block told
 */
import type { MemoryScope } from "../ir/schema.ts";
import { Knowledge } from "./knowledge.ts";

/** A block as scopes see it: itself, and what stands for its cluster. */
export interface ScopedBlock {
  readonly cluster: object;
}

/** By what it reaches: 0 the block, 1 the cluster, 2 everything. */
export type Scope = 0 | 1 | 2;

export const everything = 2;
const scopes: readonly Scope[] = [0, 1, 2];

/** How far the scopes of the language reach. There is one device, so that the system is no more than that. */
export const reachOf: { readonly [S in MemoryScope]: Scope } = {
  block: 0,
  cluster: 1,
  device: everything,
  system: everything,
};

/** What is known at each scope; wider ones are part of what narrower ones know. */
export type Scoped = readonly [Knowledge, Knowledge, Knowledge];

export const nothing: Scoped = [Knowledge.none, Knowledge.none, Knowledge.none];

/** Without a word about it an access reaches everyone, as a `volatile` one does. */
export function scopeOf(modifiers: readonly string[]): Scope {
  if (modifiers.includes("cta")) return 0;
  return modifiers.includes("cluster") ? 1 : everything;
}

export function scoped(at: (scope: Scope) => Knowledge): Scoped {
  return [at(0), at(1), at(2)];
}

export function joined(left: Scoped, right: Scoped): Scoped {
  if (left === right || right === nothing) return left;
  return left === nothing ? right : scoped((scope) => left[scope].join(right[scope]));
}

/** Stands for everything that a scope around a block has in it. */
const device = {};

export function domain(block: ScopedBlock, scope: Scope): object {
  if (scope === 0) return block;
  return scope === 1 ? block.cluster : device;
}

/** Who a strong access may meet: others that are made within its scope. */
export interface CommonScope {
  readonly from: ScopedBlock;
  mayMeet(other: { readonly from?: ScopedBlock | undefined }): boolean;
}

export function commonScope(block: ScopedBlock, scope: Scope): CommonScope {
  const within = domain(block, scope);
  return {
    from: block,
    mayMeet: ({ from }) => from === undefined || domain(from, scope) === within,
  };
}

/** What was told through one place, by the domain it was told to. */
export class Told {
  readonly #byDomain = new Map<object, Knowledge>();

  /** A write of a scope tells what `knowledge` has for that scope and those below. */
  tell(block: ScopedBlock, reach: Scope, knowledge: Scoped): void {
    for (const scope of scopes) {
      if (scope > reach) return;
      const told = knowledge[scope];
      if (told === Knowledge.none) continue;
      const key = domain(block, scope);
      this.#byDomain.set(key, told.join(this.#byDomain.get(key) ?? Knowledge.none));
    }
  }

  /** What a read of this reach finds, for a fence of each scope. */
  ask(block: ScopedBlock, reach: Scope): Scoped {
    const found = (scope: Scope): Knowledge =>
      scope > reach ? Knowledge.none : (this.#byDomain.get(domain(block, scope)) ?? Knowledge.none);
    const own = found(0);
    const near = own.join(found(1));
    return [own, near, near.join(found(2))];
  }
}
