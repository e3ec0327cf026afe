/**
 * One mbarrier, as the rules of PTX describe it: a phase ends when no arrival is pending and the
 * transactions come to zero. The next one starts at once with the expected arrivals pending again.
 *
 *   init 2                    phase 0   pending 2   transactions 0
 *   arrive.expect_tx 512      phase 0   pending 1   transactions 512
 *   a copy lands, 512 bytes   phase 0   pending 1   transactions 0
 *   arrive                    phase 1   pending 2   transactions 0
 *
 * Transactions may go below zero within a phase: bytes can land before they are announced.
 *
 * Shared memory holds an image of the barrier, so that a program that overwrites it is found out:
 *
 *   bits 0–19 pending   20 parity of the phase   21–40 expected   41–62 transactions + 2^21   63 set
 */

/** What a barrier cannot count beyond. */
export const largestCount = 2 ** 20 - 1;

/** What an operation on a barrier did wrong. */
export type BarrierProblem =
  | { readonly kind: "arrivals"; readonly pending: number; readonly arriving: number }
  | { readonly kind: "transactions"; readonly transactions: number }
  | { readonly kind: "completing"; readonly pending: number; readonly arriving: number };

export class Mbarrier {
  #expected: number;
  #pending: number;
  #transactions = 0;
  #phase = 0;

  constructor(count: number) {
    if (!Number.isInteger(count) || count < 1 || count > largestCount)
      throw new RangeError(`a barrier of ${count} arrivals`);
    this.#expected = count;
    this.#pending = count;
  }

  /** Phases that have ended. */
  get phase(): number {
    return this.#phase;
  }

  get pending(): number {
    return this.#pending;
  }

  get expected(): number {
    return this.#expected;
  }

  get transactions(): number {
    return this.#transactions;
  }

  /** The image in shared memory. */
  get image(): { readonly low: number; readonly high: number } {
    const low = this.#pending | ((this.#phase & 1) << 20) | (this.#expected << 21);
    const high = (this.#expected >>> 11) | ((this.#transactions + 2 ** 21) << 9) | (1 << 31);
    return { low, high };
  }

  /** What an arrival gives back: the phase it belongs to, and what was pending before it. */
  get token(): bigint {
    return BigInt(this.#pending) | (BigInt(this.#phase) << 21n);
  }

  arrive(count: number): BarrierProblem | undefined {
    if (count > this.#pending) return { kind: "arrivals", pending: this.#pending, arriving: count };
    this.#pending -= count;
    this.#advance();
    return undefined;
  }

  /** Arrives for this phase, and will not be waited for in later ones. */
  arriveAndDrop(count: number): BarrierProblem | undefined {
    if (count > this.#pending) return { kind: "arrivals", pending: this.#pending, arriving: count };
    this.#expected -= count;
    return this.arrive(count);
  }

  /** Arrives where the caller promises that the phase does not end by it. */
  arriveWithoutCompleting(count: number): BarrierProblem | undefined {
    if (count >= this.#pending)
      return { kind: "completing", pending: this.#pending, arriving: count };
    return this.arrive(count);
  }

  /** One more arrival to wait for in this phase alone. */
  addPending(): BarrierProblem | undefined {
    if (this.#pending === largestCount)
      return { kind: "arrivals", pending: this.#pending, arriving: -1 };
    this.#pending += 1;
    return undefined;
  }

  /** Announces bytes that will land. */
  expect(bytes: number): BarrierProblem | undefined {
    return this.#change(bytes);
  }

  /** Bytes have landed. */
  complete(bytes: number): BarrierProblem | undefined {
    return this.#change(-bytes);
  }

  #change(bytes: number): BarrierProblem | undefined {
    const transactions = this.#transactions + bytes;
    if (Math.abs(transactions) > largestCount) return { kind: "transactions", transactions };
    this.#transactions = transactions;
    this.#advance();
    return undefined;
  }

  #advance(): void {
    if (this.#pending !== 0 || this.#transactions !== 0) return;
    this.#phase += 1;
    this.#pending = this.#expected;
  }

  /** Whether the phase of this parity has ended, as seen from the running one. */
  endedParity(parity: number): boolean {
    return (this.#phase & 1) !== (parity & 1);
  }

  /** Whether the phase that an arrival's token belongs to has ended. */
  endedToken(token: bigint): boolean {
    return tokenPhase(token) !== this.#phase;
  }
}

function tokenPhase(token: bigint): number {
  return Number((token >> 21n) & 0xffff_ffffn);
}

/** What was pending before the arrival that gave this token. */
export function tokenPending(token: bigint): number {
  return Number(token & 0xf_ffffn);
}
