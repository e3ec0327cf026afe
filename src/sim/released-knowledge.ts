/**
 * What threads released through a memory, by its bytes. A store that releases leaves at its element what its thread knew; a load that acquires
 * takes that. Updates in between, relaxed ones too, leave it there, and so hand it on; other stores end it:
 *
 *   block 0   x.store(…)    flag.store(1, { memoryOrder: "release" })             flag: what block 0 knew
 *   block 1                 flag.load({ memoryOrder: "acquire" }) is 1            knows it, and x may be read
 *
 * Whoever is outside of the scope of either takes nothing (`../happens-before/memory-scopes.ts`).
 */
import type { Knowledge } from "../happens-before/knowledge.ts";
import { scoped, Told } from "../happens-before/memory-scopes.ts";
import type { Scope, ScopedBlock } from "../happens-before/memory-scopes.ts";

export class ReleasedKnowledge {
  readonly #told = new Map<number, Told>();

  clear(): void {
    if (this.#told.size > 0) this.#told.clear();
  }

  get isEmpty(): boolean {
    return this.#told.size === 0;
  }

  /** What a read of this scope takes; nothing where nobody has released there. */
  acquire(byte: number, block: ScopedBlock, scope: Scope): Knowledge | undefined {
    return this.#told.get(byte)?.ask(block, scope)[scope];
  }

  /** A store begins anew, an update hands on what it has found. */
  release(
    byte: number,
    block: ScopedBlock,
    scope: Scope,
    { knowledge, updates }: { readonly knowledge: Knowledge; readonly updates: boolean },
  ): void {
    const told = (updates ? this.#told.get(byte) : undefined) ?? new Told();
    told.tell(
      block,
      scope,
      scoped(() => knowledge),
    );
    this.#told.set(byte, told);
  }

  /** A store that releases nothing ends what was released before. */
  end(byte: number): void {
    this.#told.delete(byte);
  }
}
