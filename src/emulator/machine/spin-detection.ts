/**
 * Spin detection: whether a warp polls in a loop without progress, and which change of memory would end that.
 *
 *   again:  ld.acquire %r0, [flag];  setp.eq %p0, %r0, 0;  @%p0 bra again;
 *
 * A warp spins if its lanes and registers return to a state they have been in, and it has changed nothing in between. It sleeps until one of
 * the words that it polled holds another value. Sleeping affects scheduling alone: before a launch is reported as deadlocked, every sleeping
 * warp has polled once more.
 *
 * Hashing all registers is expensive. It is done after turns in which a warp polled, and now and then where nothing has changed anywhere for
 * long; a warp that was not caught is left alone for a while, twice as long each time.
 */
import type { MemoryViews } from "../memory.ts";
import type { WarpState } from "./warp.ts";

/** States that are remembered before a warp is left alone. */
const statesRemembered = 48;
/** WarpScheduler for which it is left alone the first time. */
const firstPause = 64;
/** Words beyond these are not watched. */
const mostWatched = 64;

/** A word that a warp polled, and what it held when the warp fell asleep. */
interface Watched {
  readonly views: MemoryViews;
  readonly word: number;
  value: number;
}

export class SpinDetector {
  readonly #seen = new Set<number>();
  readonly #watched: Watched[] = [];
  /** How often lanes were where they had been. */
  #laps = 0;
  #pause = 0;
  #nextPause = firstPause;
  /** Whether the warp has polled in this turn. */
  hasPolled = false;
  /** What the launch had changed when the warp last looked before a deadlock. */
  checkedVersion = -1;

  /** The warp polls a word of memory or, without one, a barrier of the cluster. */
  polled(views?: MemoryViews, offset = 0): void {
    this.hasPolled = true;
    if (views === undefined) return;
    const word = offset >>> 2;
    const watched = this.#watched;
    if (watched.length >= mostWatched) return;
    for (const each of watched) if (each.word === word && each.views === views) return;
    watched.push({ views, word, value: 0 });
  }

  /** The warp has changed something or was woken: earlier states no longer count. */
  forget(): void {
    this.#seen.clear();
    this.#watched.length = 0;
    this.#laps = 0;
  }

  /**
   * Looks at a warp after its turn; whether all its lanes spin. Where one group of diverged lanes does, the others run first, parked ones
   * included: they may hold what it waits for.
   */
  isSpinning(warp: WarpState): boolean {
    if (!this.#repeats(warp)) return false;
    this.#laps += 1;
    const { groups } = warp;
    if (!groups.hasParked && this.#laps >= groups.all.length) return true;
    groups.rotate(groups.current);
    return false;
  }

  /** Whether the warp has been in this state before. */
  #repeats(warp: WarpState): boolean {
    if (this.#pause > 0) {
      this.#pause -= 1;
      return false;
    }
    const state = stateOf(warp);
    if (this.#seen.has(state)) return true;
    this.#seen.add(state);
    if (this.#seen.size < statesRemembered) return false;
    // A long computation, or a loop that counts: look again after twice the time.
    this.#seen.clear();
    this.#pause = this.#nextPause;
    this.#nextPause *= 2;
    return false;
  }

  rememberPolled(): void {
    for (const each of this.#watched) each.value = each.views.words[each.word] as number;
  }

  /** Whether something that the warp polled has changed since it fell asleep. */
  get sawChange(): boolean {
    for (const { views, word, value } of this.#watched)
      if (views.words[word] !== value) return true;
    return false;
  }

  /** The words that it polls, as offsets of bytes. */
  get polls(): readonly { readonly views: MemoryViews; readonly offset: number }[] {
    return this.#watched.map(({ views, word }) => ({ views, offset: 4 * word }));
  }
}

/** A hash of 52 bits of all that a warp's future depends on, except memory. */
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
