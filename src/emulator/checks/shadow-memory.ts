/** Shadow memory of every place that warps share: blocks' shared memory, and the heap page by page. */
import { ShadowMemory } from "../../happens-before/shadow.ts";
import type { Conflict, ShadowCursor, TrackedAccess } from "../../happens-before/shadow.ts";
import type { ScopedBlock } from "../../happens-before/memory-scopes.ts";
import type { Knowledge } from "../../happens-before/knowledge.ts";
import type { Instruction } from "../../ptx/module.ts";
import type { Location } from "../../support/location.ts";
import type { BlockView } from "../collective.ts";
import type { Marks } from "../host-workers/touched-bytes.ts";

/** An access as reports name it. */
export interface MemoryAccess extends TrackedAccess {
  /** The block of a strong access, whose scope decides whom it may meet. */
  readonly from?: ScopedBlock | undefined;
  mayMeet?(other: MemoryAccess): boolean;
  readonly op: Instruction;
  readonly location: Location;
  readonly warp: number;
  readonly block: number;
  /** The read of a tensor map by a copy. */
  readonly ofMap?: boolean | undefined;
}

interface Piece {
  /** The block whose shared memory it is; undefined for the heap. */
  readonly block: BlockView | undefined;
  /** Where its shadow memory begins. */
  readonly start: number;
}

interface PlacedCursor extends Piece {
  readonly cursor: ShadowCursor<MemoryAccess>;
}

export interface PlacedConflict extends Piece {
  readonly conflict: Conflict<MemoryAccess>;
}

const pageGranules = 1 << 16;

export class Shadows {
  readonly #granulesPerByte: number;
  readonly #shared = new WeakMap<BlockView, ShadowMemory<MemoryAccess>>();
  readonly #pages = new Map<number, ShadowMemory<MemoryAccess>>();

  constructor(granulesPerByte = 1) {
    this.#granulesPerByte = granulesPerByte;
  }

  /** Starts an access; its runs follow, in granules. */
  begin(access: MemoryAccess, knowledge: Knowledge): AccessRuns {
    return new AccessRuns(this, access, knowledge);
  }

  shared(block: BlockView): ShadowMemory<MemoryAccess> {
    let shadow = this.#shared.get(block);
    if (shadow === undefined) {
      const granules = this.#granulesPerByte * block.shared.bytes.length;
      shadow = new ShadowMemory({ granules, space: "smem", initialised: true });
      this.#shared.set(block, shadow);
    }
    return shadow;
  }

  /** Marks all bytes of the heap that were touched so far. */
  mark(marks: Marks): void {
    for (const [number, page] of this.#pages)
      page.forEachTouched((start, length, isWritten) => {
        marks.touch(number * pageGranules + start, length, isWritten ? "write" : "read");
      });
  }

  page(number: number): ShadowMemory<MemoryAccess> {
    let shadow = this.#pages.get(number);
    if (shadow === undefined) {
      shadow = new ShadowMemory({ granules: pageGranules, space: "gmem", initialised: true });
      this.#pages.set(number, shadow);
    }
    return shadow;
  }
}

export class AccessRuns {
  readonly #shadows: Shadows;
  readonly #access: MemoryAccess;
  readonly #knowledge: Knowledge;
  readonly #cursors = new Map<ShadowMemory<MemoryAccess>, PlacedCursor>();

  constructor(shadows: Shadows, access: MemoryAccess, knowledge: Knowledge) {
    this.#shadows = shadows;
    this.#access = access;
    this.#knowledge = knowledge;
  }

  #cursor(
    shadow: ShadowMemory<MemoryAccess>,
    block: BlockView | undefined,
    start: number,
  ): ShadowCursor<MemoryAccess> {
    let placed = this.#cursors.get(shadow);
    if (placed === undefined) {
      placed = { cursor: shadow.begin(this.#access, this.#knowledge), block, start };
      this.#cursors.set(shadow, placed);
    }
    return placed.cursor;
  }

  /** Touches granules of a block's shared memory, or of the heap. */
  run(block: BlockView | undefined, offset: number, granules: number): void {
    if (block !== undefined) {
      this.#cursor(this.#shadows.shared(block), block, 0).run(offset, granules);
      return;
    }
    for (let at = offset; at < offset + granules;) {
      const page = Math.floor(at / pageGranules);
      const start = at - page * pageGranules;
      const length = Math.min(pageGranules - start, offset + granules - at);
      this.#cursor(this.#shadows.page(page), undefined, page * pageGranules).run(start, length);
      at += length;
    }
  }

  conflicts(): readonly PlacedConflict[] {
    const found: PlacedConflict[] = [];
    for (const { cursor, block, start } of this.#cursors.values())
      for (const conflict of cursor.conflicts) found.push({ conflict, block, start });
    return found;
  }
}
