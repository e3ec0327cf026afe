/**
 * Products, copies and shifts under way. They run some time after their issue, in any order but for those that
 * hardware keeps in order (`order.ts`); a commit runs once everything that its thread has issued before is done:
 *
 *   issue    mma d    cp s    mma d    commit
 *   queue    1        2       3 after 1, 2     4 after 1, 2, 3
 */
import { Clock } from "../../happens-before/clock.ts";
import { Knowledge } from "../../happens-before/knowledge.ts";
import type { Epoch } from "../../happens-before/knowledge.ts";
import type { Issue } from "../asynchronous.ts";
import type { BlockView, MachineView, WarpView } from "../collective.ts";

export interface QueuedItem {
  readonly warp: WarpView;
  readonly lane: number;
  /** Kinds by which later instructions stay in order with it. */
  readonly kinds: readonly string[];
  readonly after: readonly QueuedItem[];
  /** Its reads of shared memory. */
  readonly issue: Issue;
  /** Its accesses to tensor memory. */
  readonly epochs: readonly Epoch[];
  /** What is done in tensor memory once it is. */
  readonly done: Clock;
  readonly run: () => void;
  isDone: boolean;
}

/** All that one thread has issued and not committed to an end that it knows of. */
interface Issued {
  items: QueuedItem[];
  /** What ended items tell: they are forgotten, and a later commit tells it still. */
  told: Knowledge;
  done: Clock;
}

/** Ended items that are kept one by one. */
const keptItems = 64;

class TensorQueue {
  readonly #waiting: QueuedItem[] = [];
  readonly #issued = new Map<WarpView, Map<number, Issued>>();

  issuedBy(warp: WarpView, lane: number): Issued {
    const ofWarp = this.#issued.get(warp) ?? new Map<number, Issued>();
    this.#issued.set(warp, ofWarp);
    const known = ofWarp.get(lane) ?? { items: [], told: Knowledge.none, done: Clock.empty };
    ofWarp.set(lane, known);
    return known;
  }

  /** Items that have not ended and stay before one that follows these kinds. */
  before(kinds: readonly string[]): readonly QueuedItem[] {
    return this.#waiting.filter((item) => item.kinds.some((kind) => kinds.includes(kind)));
  }

  add(machine: MachineView, item: QueuedItem): void {
    this.#waiting.push(item);
    machine.schedule(() => this.#runOne(machine));
  }

  /** One of the items that need not wait for another. */
  #runOne(machine: MachineView): void {
    const ready = this.#waiting.filter(({ after }) => after.every(({ isDone }) => isDone));
    const item = ready[machine.random.below(ready.length)];
    if (item === undefined) return;
    this.#waiting.splice(this.#waiting.indexOf(item), 1);
    item.isDone = true;
    item.run();
    machine.changed();
  }
}

const queues = new WeakMap<object, TensorQueue>();

/** One for a cluster: products of a pair are in the order of both its blocks. */
export function queueOf({ cluster }: BlockView): TensorQueue {
  const known = queues.get(cluster);
  if (known !== undefined) return known;
  const made = new TensorQueue();
  queues.set(cluster, made);
  return made;
}

/** What a thread has issued; ended items beyond some are told together. */
export function issuedBefore(
  { block }: WarpView,
  warp: WarpView,
  lane: number,
): { readonly items: readonly QueuedItem[]; readonly told: Knowledge; readonly done: Clock } {
  const issued = queueOf(block).issuedBy(warp, lane);
  if (issued.items.length > keptItems) {
    const ended = issued.items.filter(({ isDone }) => isDone);
    issued.items = issued.items.filter(({ isDone }) => !isDone);
    for (const item of ended) {
      issued.told = issued.told.join(toldBy(item));
      issued.done = issued.done.join(item.done);
    }
  }
  return issued;
}

/** What whoever knows of an item's end may rely on. */
export function toldBy({ issue, epochs }: QueuedItem): Knowledge {
  return epochs.reduce((known, epoch) => known.withFinished(epoch), issue.finished);
}

export function enqueue(machine: MachineView, item: QueuedItem): void {
  const queue = queueOf(item.warp.block);
  queue.issuedBy(item.warp, item.lane).items.push(item);
  queue.add(machine, item);
}
