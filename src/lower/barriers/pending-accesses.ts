/**
 * What threads of a program thread did that the others may not have observed, at one point of the program.
 *
 *   | part     | holds                                                          | emptied by              |
 *   |----------|----------------------------------------------------------------|-------------------------|
 *   | open     | reads, writes and fences since the last barrier                | a barrier               |
 *   | arrived  | those before the last arrival on the cluster barrier           | its wait, or a barrier  |
 *   | unfenced | writes without a proxy fence, behind a barrier or not          | a fence of each thread  |
 */
import type { Synchronization } from "../../ir/schema.ts";
import type { Place, PlaceAccess } from "./accesses.ts";
import type { Box } from "./disjoint-windows.ts";

/** What was touched of each place: boxes of it, or, where one of them is undefined, any part. */
type Touched = Map<Place, Set<Box | undefined>>;

interface Deeds {
  readonly reads: Touched;
  readonly writes: Touched;
  /** Whether the lane has handed over what it wrote, and others may not have. */
  fenced: boolean;
}

export class Pending {
  readonly #open: Deeds = noDeeds();
  readonly #arrived: Deeds = noDeeds();
  readonly #unfenced = new Set<Place>();

  copy(): Pending {
    const copy = new Pending();
    copy.include(this);
    return copy;
  }

  /** Adds what is pending on another way here; says whether that was anything new. */
  include(other: Pending): boolean {
    const open = includeDeeds(this.#open, other.#open);
    const arrived = includeDeeds(this.#arrived, other.#arrived);
    const unfenced = includePlaces(this.#unfenced, other.#unfenced);
    return open || arrived || unfenced;
  }

  /** What was touched may have been any part of its place: values that boxes begin at have become others. */
  forgetBoxes(): void {
    for (const { reads, writes } of [this.#open, this.#arrived])
      for (const touched of [reads, writes])
        for (const place of touched.keys()) touched.set(place, new Set([undefined]));
  }

  clear(): void {
    this.synchronize("whole");
    this.#unfenced.clear();
  }

  /** Why threads must synchronize before the access. */
  conflictOf({ places, mode, box }: PlaceAccess): string | undefined {
    const deeds = [this.#open, this.#arrived];
    for (const place of places) {
      if (deeds.some(({ writes }) => mayMeet(writes, place, box)))
        return `other lanes may have written ${place.name}${mode === "read" ? "" : " before"}`;
      if (mode === "write" && deeds.some(({ reads }) => mayMeet(reads, place, box)))
        return `other lanes may still read ${place.name}`;
    }
    return undefined;
  }

  /** Whether the asynchronous proxy may not yet see what lanes have written there. */
  isUnfenced({ places, proxy }: PlaceAccess): boolean {
    return proxy === "async" && places.some((place) => this.#unfenced.has(place));
  }

  hasUnfenced(places: ReadonlySet<Place>): boolean {
    if (this.#unfenced.size === 0 || places.size === 0) return false;
    return [...this.#unfenced].some((place) => places.has(place));
  }

  /** Whether other lanes may not have made a fence that this one has. */
  get fenced(): boolean {
    return this.#open.fenced || this.#arrived.fenced;
  }

  record({ places, mode, actor, proxy, box }: PlaceAccess): void {
    for (const place of places) {
      // What one lane starts is ordered by waiting for it.
      if (actor === "threads") touch(this.#open[mode === "read" ? "reads" : "writes"], place, box);
      if (mode === "write" && proxy === "generic" && place.space === "smem")
        this.#unfenced.add(place);
    }
  }

  /** Each thread publishes what it has written. Where none has written to shared memory, nobody waits for the others to have done so. */
  fence(space: "smem" | "gmem"): void {
    if (space === "gmem" || this.#unfenced.size > 0) this.#open.fenced = true;
    if (space === "smem") this.#unfenced.clear();
  }

  /** All threads synchronize, or a half of that. */
  synchronize(part: Synchronization["part"]): void {
    if (part === "arrive") includeDeeds(this.#arrived, this.#open);
    if (part !== "arrive") clearDeeds(this.#arrived);
    if (part !== "wait") clearDeeds(this.#open);
  }
}

function noDeeds(): Deeds {
  return { reads: new Map(), writes: new Map(), fenced: false };
}

function clearDeeds(deeds: Deeds): void {
  deeds.reads.clear();
  deeds.writes.clear();
  deeds.fenced = false;
}

function includeDeeds(into: Deeds, other: Deeds): boolean {
  const fenced = !into.fenced && other.fenced;
  into.fenced ||= other.fenced;
  const read = includeTouched(into.reads, other.reads);
  const written = includeTouched(into.writes, other.writes);
  return read || written || fenced;
}

function mayMeet(touched: Touched, place: Place, box: Box | undefined): boolean {
  const boxes = touched.get(place);
  if (boxes === undefined) return false;
  return [...boxes].some((each) => !each || !box || !each.isApart(box));
}

/** Adds a part of a place; says whether it was new. */
function touch(touched: Touched, place: Place, box: Box | undefined): boolean {
  const boxes = touched.get(place) ?? new Set();
  touched.set(place, boxes);
  if (boxes.has(box) || boxes.has(undefined)) return false;
  if (box === undefined) boxes.clear();
  boxes.add(box);
  return true;
}

function includeTouched(into: Touched, other: Touched): boolean {
  let grows = false;
  other.forEach((boxes, place) => {
    for (const box of boxes) if (touch(into, place, box)) grows = true;
  });
  return grows;
}

function includePlaces(into: Set<Place>, other: ReadonlySet<Place>): boolean {
  const before = into.size;
  other.forEach((place) => into.add(place));
  return into.size > before;
}
