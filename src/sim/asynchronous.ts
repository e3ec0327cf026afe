/**
 * Operations that run beside the thread that started them, and what threads keep to wait for them.
 *
 * Accesses are checked when the operation is issued: by then everything it may rely on has happened, and
 * nothing that relies on it has. Data moves when the scheduler completes the operation.
 *
 *   thread      copy_async ──────────────────── wait_group
 *                  │ checked here                   ▲ blocked until done
 *   operation      └─ ─ ─ ─ ─ ─ data moves here ────┘
 */
import type { Epoch, Knowledge } from "../happens-before/knowledge.ts";
import type { Origin } from "../happens-before/access.ts";

/** An asynchronous operation's two sides, its issuer's knowledge and its place. */
export interface Issue {
  readonly origin: Origin;
  readonly reads: Epoch | undefined;
  readonly writes: Epoch | undefined;
  readonly knowledge: Knowledge;
}

/** An operation as its issuer waits for it. */
export interface Work {
  readonly origin: Origin;
  readonly reads: Epoch | undefined;
  readonly writes: Epoch | undefined;
  done: boolean;
}

/** A thread's groups of copies into global memory. */
export class CopyGroups {
  #open: Work[] = [];
  #groups: (readonly Work[])[] = [];
  /** How many of the oldest groups have been awaited with `read`. */
  #read = 0;

  add(work: Work): void {
    this.#open.push(work);
  }

  commit(): void {
    this.#groups.push(this.#open);
    this.#open = [];
  }

  /** Makes a group of what is in none, for a wait that leaves nothing. */
  close(): void {
    if (this.#open.length > 0) this.commit();
  }

  /** The copies that a wait must see done: those of all groups but the newest `pending`. */
  awaited(pending: number, read: boolean): readonly Work[] {
    const end = Math.max(0, this.#groups.length - pending);
    return this.#groups.slice(read ? this.#read : 0, end).flat();
  }

  /** Notes that such a wait has passed. */
  settle(pending: number, read: boolean): void {
    const end = Math.max(0, this.#groups.length - pending);
    if (read) {
      this.#read = Math.max(this.#read, end);
      return;
    }
    this.#groups = this.#groups.slice(end);
    this.#read = Math.max(0, this.#read - end);
  }
}

/** What a thread has started on tensor memory, which is over in this order. */
export class TensorQueue {
  readonly #waiting: (() => void)[] = [];
  #started: Epoch[] = [];

  /** Started since the last commit that nobody can have missed: products and copies, by the agents that read and write for them. */
  get started(): readonly Epoch[] {
    return this.#started;
  }

  push(complete: () => void, epochs: readonly Epoch[]): void {
    this.#waiting.push(complete);
    this.#started.push(...epochs);
  }

  /** A commit tells of what came before, and that it has arrived itself: later ones follow it. */
  commit(arrive: () => void, epochs: readonly Epoch[]): void {
    this.#waiting.push(arrive);
    this.#started.push(...epochs);
  }

  completeOldest(): void {
    const complete = this.#waiting.shift();
    if (complete === undefined) throw new Error("nothing is under way in tensor memory");
    complete();
  }

  /** Forgets what the agent knows to be over. */
  settle(isOver: (epoch: Epoch) => boolean): void {
    this.#started = this.#started.filter((epoch) => !isOver(epoch));
  }
}

/** A wgmma that has been started. */
export interface Product extends Work {
  compute(): void;
}

/** A thread's wgmma, which complete in the order in which they were issued. */
export class ProductQueue {
  #issued: Product[] = [];
  #completed = 0;

  push(product: Product): void {
    this.#issued.push(product);
  }

  completeOldest(): Origin {
    const product = this.#issued[this.#completed];
    if (product === undefined) throw new Error("no wgmma is pending");
    product.compute();
    product.done = true;
    this.#completed += 1;
    return product.origin;
  }

  awaited(pending: number): readonly Product[] {
    return this.#issued.slice(0, Math.max(0, this.#issued.length - pending));
  }

  /** Forgets the ones that such a wait has seen done. */
  settle(pending: number): void {
    const done = Math.max(0, this.#issued.length - pending);
    this.#issued = this.#issued.slice(done);
    this.#completed -= done;
  }

  leftovers(): readonly Product[] {
    return this.#issued;
  }
}
