/**
 * Whether a warp polls in vain, and what would end that.
 *
 *   again:  ld.acquire %r0, [flag];  setp.eq %p0, %r0, 0;  @%p0 bra again;
 *
 * A warp whose lanes and registers come back to a state they have been in, without its having changed anything in
 * between, goes round a loop. It sleeps until one of the words that it polled holds something else. Sleeping is
 * a matter of turns alone: before a launch is called deadlocked, whoever sleeps has looked once more.
 *
 * Looking at all registers is dear. It is done after turns in which a warp polled, and now and then where nothing
 * has happened anywhere for long; whoever is not caught is left alone for a while, twice as long each time.
 */
import type { MemoryViews } from "../memory.ts";
import type { WarpState } from "./warp.ts";

/** States that are remembered before a warp is left alone. */
const attention = 48;
/** Turns for which it is left alone the first time. */
const firstRest = 64;
/** Words beyond these are not watched. */
const mostWatched = 64;

/** A word that a warp polled, and what it held when the warp fell asleep. */
interface Watched {
  readonly views: MemoryViews;
  readonly word: number;
  value: number;
}

export class Vigil {
  readonly #seen = new Set<number>();
  readonly #watched: Watched[] = [];
  /** How often lanes were where they had been. */
  #laps = 0;
  #rest = 0;
  #nextRest = firstRest;
  /** Whether the warp has polled in this turn. */
  hasPolled = false;
  /** What the launch had changed when the warp last looked before a deadlock. */
  lookedAt = -1;

  /** Lanes look for what others do: at a word of memory, or, without one, at a barrier of the cluster. */
  polled(views?: MemoryViews, offset = 0): void {
    this.hasPolled = true;
    if (views === undefined) return;
    const word = offset >>> 2;
    const watched = this.#watched;
    if (watched.length >= mostWatched) return;
    for (const each of watched) if (each.word === word && each.views === views) return;
    watched.push({ views, word, value: 0 });
  }

  /** The warp has changed something, or goes on: what it was at before does not count. */
  forget(): void {
    this.#seen.clear();
    this.#watched.length = 0;
    this.#laps = 0;
  }

  /**
   * Looks at a warp after its turn; whether all its lanes go round. Where one group of lanes does, the others
   * have their turn first, parked ones included: they may hold what it waits for.
   */
  goesRound(warp: WarpState): boolean {
    if (!this.#repeats(warp)) return false;
    this.#laps += 1;
    const { groups } = warp;
    if (!groups.hasParked && this.#laps >= groups.all.length) return true;
    groups.rotate(groups.current);
    return false;
  }

  /** Whether the warp has been where it is. */
  #repeats(warp: WarpState): boolean {
    if (this.#rest > 0) {
      this.#rest -= 1;
      return false;
    }
    const state = stateOf(warp);
    if (this.#seen.has(state)) return true;
    this.#seen.add(state);
    if (this.#seen.size < attention) return false;
    // A long computation, or a loop that counts: look again after twice the time.
    this.#seen.clear();
    this.#rest = this.#nextRest;
    this.#nextRest *= 2;
    return false;
  }

  fallAsleep(): void {
    for (const each of this.#watched) each.value = each.views.words[each.word] as number;
  }

  /** Whether something that the warp polled has changed since it fell asleep. */
  get isOver(): boolean {
    for (const { views, word, value } of this.#watched)
      if (views.words[word] !== value) return true;
    return false;
  }

  /** The words that it polls, as offsets of bytes. */
  get polls(): readonly { readonly views: MemoryViews; readonly offset: number }[] {
    return this.#watched.map(({ views, word }) => ({ views, offset: 4 * word }));
  }
}

/** A number of 52 bits that stands for all that a warp's future depends on, but for memory. */
function stateOf(warp: WarpState): number {
  let low = 0x811c9dc5 | 0;
  let high = 0x1234567 | 0;
  const mix = (word: number): void => {
    low = Math.imul(low ^ word, 0x01000193);
    high = Math.imul(high ^ (word + (low >>> 15)), 0x85ebca6b);
  };
  for (const { step, mask, frame } of warp.groups.all) {
    mix(step);
    mix(mask);
    mix(frame.base);
  }
  const { words } = warp;
  for (let at = 0; at < words.length; at++) mix(words[at] as number);
  return (high >>> 12) * 2 ** 32 + (low >>> 0);
}
