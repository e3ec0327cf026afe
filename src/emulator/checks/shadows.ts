/** Shadow memory of every place that warps share: blocks' shared memory, and the heap page by page. */
import { ShadowMemory } from "../../order/shadow.ts";
import type { Conflict, ShadowCursor, TrackedAccess } from "../../order/shadow.ts";
import type { Knowledge } from "../../order/knowledge.ts";
import type { Instruction } from "../../ptx/module.ts";
import type { Location } from "../../support/location.ts";
import type { BlockView } from "../collective.ts";
import type { Marks } from "../threads/marks.ts";

/** An access as reports name it. */
export interface MemoryAccess extends TrackedAccess {
  /** The block of a strong access, whose scope decides whom it may meet. */
  readonly from?: BlockView | undefined;
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

const pageBytes = 1 << 16;

export class Shadows {
  readonly #shared = new WeakMap<BlockView, ShadowMemory<MemoryAccess>>();
  readonly #pages = new Map<number, ShadowMemory<MemoryAccess>>();

  /** Starts an access; its runs follow. */
  begin(access: MemoryAccess, knowledge: Knowledge): AccessRuns {
    return new AccessRuns(this, access, knowledge);
  }

  shared(block: BlockView): ShadowMemory<MemoryAccess> {
    let shadow = this.#shared.get(block);
    if (shadow === undefined) {
      const granules = block.shared.bytes.length;
      shadow = new ShadowMemory({ granules, space: "smem", initialised: true });
      this.#shared.set(block, shadow);
    }
    return shadow;
  }

  /** Marks all bytes of the heap that were touched so far. */
  mark(marks: Marks): void {
    for (const [number, page] of this.#pages)
      page.forEachTouched((start, length, isWritten) => {
        marks.touch(number * pageBytes + start, length, isWritten ? "write" : "read");
      });
  }

  page(number: number): ShadowMemory<MemoryAccess> {
    let shadow = this.#pages.get(number);
    if (shadow === undefined) {
      shadow = new ShadowMemory({ granules: pageBytes, space: "gmem", initialised: true });
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

  /** Touches bytes of a block's shared memory, or of the heap. */
  run(block: BlockView | undefined, offset: number, bytes: number): void {
    if (block !== undefined) {
      this.#cursor(this.#shadows.shared(block), block, 0).run(offset, bytes);
      return;
    }
    for (let at = offset; at < offset + bytes;) {
      const page = Math.floor(at / pageBytes);
      const start = at - page * pageBytes;
      const length = Math.min(pageBytes - start, offset + bytes - at);
      this.#cursor(this.#shadows.page(page), undefined, page * pageBytes).run(start, length);
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
