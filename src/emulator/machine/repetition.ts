/**
 * Finds warps that poll for ever. A warp whose lanes and registers come back to a state they have been in,
 * with nothing stored and nothing completed anywhere in between, will go round the same loop for good:
 *
 *   again:  ld.acquire %r0, [flag];  setp.eq %p0, %r0, 0;  @%p0 bra again;
 *
 * Looking at all registers is dear, so it is done only for a while, after nothing has happened for long.
 */
import type { WarpState } from "./warp.ts";

/** Rounds without a change after which warps are looked at, and for how many rounds. */
const patience = 64;
const attention = 48;

export class RepetitionFinder {
  #version = -1;
  #rounds = 0;
  #nextLook = patience;
  readonly #seen = new Map<WarpState, Set<number>>();
  readonly #repeating = new Set<WarpState>();

  /** Begins a round; `version` changes with everything that a warp could be waiting for. */
  begin(version: number): void {
    this.#rounds += 1;
    if (version === this.#version) return;
    this.#version = version;
    this.#forget();
    this.#rounds = 0;
    this.#nextLook = patience;
  }

  #forget(): void {
    this.#seen.clear();
    this.#repeating.clear();
  }

  /** Whether it is time to look at warps. */
  get isLooking(): boolean {
    if (this.#rounds < this.#nextLook) return false;
    if (this.#rounds < this.#nextLook + attention) return true;
    // Nobody was caught: a long computation. Look again after twice the time.
    this.#forget();
    this.#nextLook = 2 * this.#rounds;
    return false;
  }

  /** Looks at a warp after its turn; whether it is known to repeat itself. */
  look(warp: WarpState): boolean {
    if (this.#repeating.has(warp)) return true;
    let seen = this.#seen.get(warp);
    if (seen === undefined) {
      seen = new Set();
      this.#seen.set(warp, seen);
    }
    const state = stateOf(warp);
    if (seen.has(state)) this.#repeating.add(warp);
    seen.add(state);
    return this.#repeating.has(warp);
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
