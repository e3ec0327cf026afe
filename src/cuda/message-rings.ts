/**
 * The rings that kernels write messages to, on the GPU. A launch of a kernel that prints or asserts marks
 * its ring; at the next point where the host waits, marked rings are copied and emptied in the order of
 * the stream, so that a launch after that point loses nothing.
 *
 *   launch ── launch ── (copy, empty) ── launch ── (copy, empty)
 *                            │                          │
 *                            └ lines of the first two   └ of the third
 */
import type { DimensionValues } from "../ir/size.ts";
import type { LaunchPlan } from "../ptx/executable.ts";
import { readMessages } from "../ptx/print-ring.ts";
import { runEach } from "../support/run-all.ts";
import type { TilewrightError } from "../support/diagnostics.ts";
import type { CudaContext } from "./context.ts";
import { handled } from "./issue-queue.ts";
import type { Begun } from "./issue-queue.ts";
import type { DeviceMemory } from "./memory.ts";
import { MemoryRecord } from "./streams.ts";
import type { Transfers } from "./transfers.ts";

export const ringWords = 2 ** 16;
const ringBytes = 4 * ringWords;

/** A ring in use: who writes to it, and with which grid. */
export interface Ring {
  readonly address: number;
  readonly plan: LaunchPlan;
  readonly dimensions: DimensionValues;
}

export class MessageRings {
  readonly #context: CudaContext;
  readonly #memory: DeviceMemory;
  readonly #transfers: Transfers;
  readonly #print: (line: string) => void;
  /** Addresses of rings that are empty and nobody's. */
  readonly #spare: number[] = [];
  readonly #marked = new Set<Ring>();
  /** Marked rings that are nobody's once they are read. */
  readonly #returning = new Set<Ring>();
  /** All rings are one piece of memory to streams: who writes messages takes turns. */
  readonly record = new MemoryRecord();

  constructor(
    context: CudaContext,
    memory: DeviceMemory,
    transfers: Transfers,
    print: (line: string) => void,
  ) {
    this.#context = context;
    this.#memory = memory;
    this.#transfers = transfers;
    this.#print = print;
  }

  /** An empty ring for one user. */
  take(plan: LaunchPlan, dimensions: DimensionValues): Ring {
    return { address: this.#spare.pop() ?? this.#make(), plan, dimensions };
  }

  /** A ring for launches that nobody tells apart: the one that the last of them used, until it is read. */
  share(plan: LaunchPlan, dimensions: DimensionValues): Ring {
    const alike = [...this.#returning].find(
      (ring) => ring.plan === plan && sameDimensions(ring.dimensions, dimensions),
    );
    if (alike !== undefined) return alike;
    const ring = this.take(plan, dimensions);
    this.#marked.add(ring);
    this.#returning.add(ring);
    return ring;
  }

  /** Takes a ring back, once what it holds has been read. */
  give(ring: Ring): void {
    if (this.#marked.has(ring)) this.#returning.add(ring);
    else this.#spare.push(ring.address);
  }

  /** Remembers that a launch writes to the ring. */
  mark(ring: Ring): void {
    this.#marked.add(ring);
  }

  /** Whether a launch has written to a ring that was not read since. */
  get isMarked(): boolean {
    return this.#marked.size > 0;
  }

  /** Copies and empties all marked rings; gives the first failed assertion of each that has one. */
  read(): Begun<ReadonlyMap<Ring, TilewrightError>> {
    const reads = [...this.#marked].map((ring) => ({ ring, ...this.#readOne(ring) }));
    this.#marked.clear();
    for (const { address } of this.#returning) this.#spare.push(address);
    this.#returning.clear();
    const failures = async (): Promise<ReadonlyMap<Ring, TilewrightError>> => {
      const found = new Map<Ring, TilewrightError>();
      for (const { ring, result } of reads) {
        const { lines, failure } = readMessages(await result, ring.plan, ring.dimensions);
        for (const line of lines) this.#print(line);
        if (failure !== undefined) found.set(ring, failure);
      }
      return found;
    };
    const pending = reads.flatMap(({ issued }) => (issued === undefined ? [] : [issued]));
    const issued = pending.length === 0 ? undefined : Promise.all(pending).then(() => undefined);
    return { issued, result: handled(failures()) };
  }

  dispose(): void {
    const left = new Set([...this.#marked, ...this.#returning].map(({ address }) => address));
    const addresses = [...this.#spare.splice(0), ...left];
    runEach(
      addresses.map((address) => () => {
        this.#memory.give(address);
      }),
    );
  }

  #readOne({ address }: Ring): Begun<Uint32Array> {
    const words = new Uint32Array(ringWords);
    const copied = this.#transfers.download(address, new Uint8Array(words.buffer));
    const emptied = copied.issued?.then(() => this.#empty(address));
    if (copied.issued === undefined) this.#empty(address);
    return { issued: emptied, result: copied.result.then(() => words) };
  }

  #make(): number {
    const address = this.#memory.take(ringBytes);
    try {
      this.#empty(address);
      return address;
    } catch (error) {
      this.#memory.give(address);
      throw error;
    }
  }

  /** No records, no failure, and all its words free. */
  #empty(address: number): void {
    const { driver, stream } = this.#context;
    const { calls } = driver;
    const cleared = calls.cuMemsetD8Async(address, 0, ringBytes, stream);
    this.#context.check(cleared, "cuMemsetD8Async", "clear memory");
    const sized = calls.cuMemsetD32Async(address + 4, ringWords, 1, stream);
    this.#context.check(sized, "cuMemsetD32Async", "clear memory");
  }
}

function sameDimensions(left: DimensionValues, right: DimensionValues): boolean {
  return left.size === right.size && [...left].every(([name, value]) => right.get(name) === value);
}
