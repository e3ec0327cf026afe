/**
 * Seeded random numbers for schedules, fuzzing and test data. Never for kernels: those have their own
 * generators. The generator is xoshiro128** seeded through splitmix32, so that near seeds give
 * unrelated streams and a seed means the same on every machine.
 */

export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number) {
    let state = seed | 0;
    const next = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let mixed = state ^ (state >>> 16);
      mixed = Math.imul(mixed, 0x21f0aaad);
      mixed ^= mixed >>> 15;
      mixed = Math.imul(mixed, 0x735a2d97);
      return mixed ^ (mixed >>> 15);
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next();
  }

  /** 32 random bits, unsigned. */
  bits(): number {
    const scrambled = Math.imul(this.#b, 5);
    const result = Math.imul((scrambled << 7) | (scrambled >>> 25), 9) >>> 0;
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result;
  }

  /** Uniform in [0, 1). */
  uniform(): number {
    return this.bits() / 2 ** 32;
  }

  /** Standard normal. */
  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.uniform()));
    return radius * Math.cos(2 * Math.PI * this.uniform());
  }

  /** Uniform integer in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.uniform() * limit);
  }

  pick<T>(items: readonly [T, ...T[]] | readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new RangeError("pick from an empty list");
    return item;
  }
}
