/**
 * What a program thread may rely on. Ordinary accesses and asynchronous operations (TMA,
 * wgmma) see memory through different proxies, so a thread keeps several clocks:
 *
 * | clock   | who relies on it                                  | grows by                              |
 * |---------|---------------------------------------------------|---------------------------------------|
 * | generic | the thread's own ordinary accesses                | every step, every acquire             |
 * | shared  | asynchronous operations it issues, in shared memory | fence("smem"), acquire, completion  |
 * | global  | the same in global memory                         | fence("gmem"), acquire, completion    |
 * | tensor  | products that it issues, in tensor memory         | issuing one, acquire                  |
 *
 * A thread that writes shared memory and hands it to a copy issued by another thread:
 *
 *   writer  store (agent 1, count 4)   fence("smem")           publish --\
 *                                      shared.get(1) = 4                  \
 *   issuer                                                     acquire: its shared clock includes (1, 4)
 *
 * Without the fence only the issuer's generic clock would, and the copy would race with the store.
 * `shared` and `global` are always covered by `generic`. `tensor` holds products alone, whether they are over or not: tensor cores take those on one place in the
 * order in which they were issued (`product-order.ts`), so that a product follows another one that nobody has waited for.
 *
 * That a thread has *passed a wait* is no access, and no proxy hides it: a copy issued after the wait
 * is acquired by whoever awaits the copy. Waits are therefore steps of a second agent of the thread, which is
 * known to all three clocks at once.
 */
import { Clock } from "./clock.ts";
import { ProductOrder } from "./product-order.ts";

/** A step of an agent; accesses belong to the step they are made in. */
export interface Epoch {
  readonly agent: number;
  readonly count: number;
}

export class Knowledge {
  static readonly none = new Knowledge(Clock.empty, Clock.empty, Clock.empty);

  readonly generic: Clock;
  readonly shared: Clock;
  readonly global: Clock;
  readonly tensor: ProductOrder;

  constructor(
    generic: Clock,
    shared: Clock,
    global: Clock,
    tensor: ProductOrder = ProductOrder.none,
  ) {
    this.generic = generic;
    this.shared = shared;
    this.global = global;
    this.tensor = tensor;
  }

  /** What either knows; this one or `other` itself where that one covers both. */
  join(other: Knowledge): Knowledge {
    if (this === other) return this;
    const generic = this.generic.join(other.generic);
    const shared = this.shared.join(other.shared);
    const global = this.global.join(other.global);
    const tensor = this.tensor.join(other.tensor);
    for (const input of [this, other])
      if (
        input.generic === generic &&
        input.shared === shared &&
        input.global === global &&
        input.tensor === tensor
      )
        return input;
    return new Knowledge(generic, shared, global, tensor);
  }

  /** With a finished asynchronous operation known: no proxy stands between it and anything later. */
  withFinished({ agent, count }: Epoch): Knowledge {
    return new Knowledge(
      this.generic.with(agent, count),
      this.shared.with(agent, count),
      this.global.with(agent, count),
      this.tensor,
    );
  }

  /** With a product or copy of a form known to be issued. */
  withIssued(form: string, { agent, count }: Epoch): Knowledge {
    const { generic, shared, global, tensor } = this;
    return new Knowledge(generic, shared, global, tensor.with(form, agent, count));
  }

  /** What a product may rely on in tensor memory, which follows those of a form. */
  following(form: string): Knowledge {
    const { generic, shared, global, tensor } = this;
    return new Knowledge(generic.join(tensor.of(form)), shared, global, tensor);
  }
}

/**
 * What the completion of an asynchronous operation releases: the operation itself and what it relied on
 * when it was issued. Not all the issuer knew: it does not wait for the issuer's ordinary accesses.
 */
export function completion(atIssue: Knowledge, finished: readonly Epoch[]): Knowledge {
  const { shared, global, tensor } = atIssue;
  return finished.reduce(
    (known, epoch) => known.withFinished(epoch),
    new Knowledge(shared.join(global), shared, global, tensor),
  );
}

/** The life of one thread: its current step and what it knows. */
export class Timeline implements Epoch {
  readonly agent: number;
  readonly #newAgent: () => number;
  #count = 1;
  #knowledge: Knowledge;
  #lastWait: Epoch | undefined;

  constructor(newAgent: () => number, start: Knowledge = Knowledge.none) {
    this.#newAgent = newAgent;
    this.agent = newAgent();
    this.#knowledge = start;
    this.#know(start.generic.with(this.agent, this.#count), start.shared, start.global);
  }

  get count(): number {
    return this.#count;
  }

  get knowledge(): Knowledge {
    return this.#knowledge;
  }

  #know(generic: Clock, shared: Clock, global: Clock): void {
    this.#knowledge = new Knowledge(generic, shared, global, this.#knowledge.tensor);
  }

  /** The step by which others can tell that its last wait has passed. */
  get lastWait(): Epoch | undefined {
    return this.#lastWait;
  }

  /** Begins the next step. */
  tick(): void {
    this.#count += 1;
    const { generic, shared, global } = this.#knowledge;
    this.#know(generic.with(this.agent, this.#count), shared, global);
  }

  /** Releases: what is known now, this step included; later accesses belong to the next step. */
  publish(): Knowledge {
    const published = this.#knowledge;
    this.tick();
    return published;
  }

  acquire(knowledge: Knowledge): void {
    this.#knowledge = this.#knowledge.join(knowledge);
  }

  /** Notes that a wait has passed: the step by which others can tell that it did. */
  passWait(): Epoch {
    const agent = this.#lastWait?.agent ?? this.#newAgent();
    this.#lastWait = { agent, count: (this.#lastWait?.count ?? 0) + 1 };
    this.finish(this.#lastWait);
    return this.#lastWait;
  }

  /** Notes a product or a copy of a form that it has issued. */
  issued(form: string, epoch: Epoch): void {
    this.#knowledge = this.#knowledge.withIssued(form, epoch);
  }

  /** Learns that an asynchronous operation has finished. */
  finish(epoch: Epoch): void {
    this.#knowledge = this.#knowledge.withFinished(epoch);
  }

  /**
   * Lets asynchronous operations rely on all accesses to one memory that the agent knows of, its own and those
   * that others told it of: a fence counts for whatever it lies behind.
   */
  fence(space: "smem" | "gmem"): void {
    const { generic, shared, global } = this.#knowledge;
    if (space === "smem") this.#know(generic, generic, global);
    else this.#know(generic, shared, generic);
    this.tick();
  }
}
