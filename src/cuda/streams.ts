/**
 * The streams of a GPU, and who waits for whom. Memory remembers which stream used it last; work that comes after a
 * use on another stream, where one of the two writes, waits for it by an event. Nothing else waits:
 *
 *   main   write a ──●                         ●── read c
 *                    └▶ side   read a, write c ┘
 *
 * A device that has but its main stream keeps no record. A stream that is made then begins after everything that
 * the main stream has been given so far, so that nothing before it need be known.
 */
import type { BackendStream } from "../device/backend.ts";
import type { CudaContext } from "./context.ts";

const streamNonBlocking = 1;
/** Events that order streams take no times. */
const withoutTiming = 2;

/** Which streams have used a piece of memory, and how far each was then. */
export class MemoryRecord {
  writer: { readonly stream: CudaStream; readonly position: number } | undefined;
  readonly readers = new Map<CudaStream, number>();
}

/** The memory that a piece of work uses. */
export interface MemoryUses {
  readonly reads?: readonly MemoryRecord[];
  readonly writes?: readonly MemoryRecord[];
}

export class CudaStream implements BackendStream {
  readonly handle: number;
  /** Marks the end of what was issued so far, for others to wait for. */
  readonly event: number;
  /** Pieces of work issued so far. */
  position = 0;
  /** How far other streams had come where this one waited for them. */
  readonly known = new Map<CudaStream, number>();
  readonly #close: (stream: CudaStream) => void;

  constructor(handle: number, event: number, close: (stream: CudaStream) => void) {
    this.handle = handle;
    this.event = event;
    this.#close = close;
  }

  dispose(): void {
    this.#close(this);
  }
}

export class Streams {
  readonly #context: CudaContext;
  readonly #close: (stream: CudaStream) => void;
  readonly #sides = new Set<CudaStream>();
  #main: CudaStream | undefined;

  /** `close` is called where a program disposes of a stream, and calls `close` here in its turn. */
  constructor(context: CudaContext, close: (stream: CudaStream) => void) {
    this.#context = context;
    this.#close = close;
  }

  /** Whether there is but the main one, so that nobody waits for anybody. */
  get isSingle(): boolean {
    return this.#sides.size === 0;
  }

  /** Another stream, which begins after what the main one was given so far. */
  open(): CudaStream {
    this.#context.enter();
    const main = this.#mainStream();
    const event = this.#makeEvent();
    let handle: number | undefined;
    try {
      handle = this.#context.make("cuStreamCreate", "make a stream", streamNonBlocking);
      const stream = new CudaStream(handle, event, this.#close);
      for (const [other, position] of main.known) stream.known.set(other, position);
      this.#waitFor(stream, main);
      this.#sides.add(stream);
      return stream;
    } catch (error) {
      const { calls } = this.#context.driver;
      if (handle !== undefined) calls.cuStreamDestroy(handle);
      calls.cuEventDestroy(event);
      throw error;
    }
  }

  /** Has the stream, the main one unless given, wait for what its next piece of work depends on. */
  before(uses: MemoryUses, stream: CudaStream | undefined): void {
    if (this.isSingle) return;
    const current = stream ?? this.#mainStream();
    for (const record of [...(uses.reads ?? []), ...(uses.writes ?? [])])
      if (record.writer !== undefined)
        this.#waitUntil(current, record.writer.stream, record.writer.position);
    for (const record of uses.writes ?? [])
      for (const [reader, position] of record.readers) this.#waitUntil(current, reader, position);
    this.#note(uses, current);
  }

  #note({ reads = [], writes = [] }: MemoryUses, stream: CudaStream): void {
    stream.position += 1;
    const { position } = stream;
    for (const record of reads) record.readers.set(stream, position);
    for (const record of writes) {
      record.writer = { stream, position };
      record.readers.clear();
    }
  }

  /** Has the main stream wait for all others, so that what it is given next comes after everything. */
  join(): void {
    if (this.isSingle) return;
    const main = this.#mainStream();
    for (const side of this.#sides) this.#waitUntil(main, side, side.position);
  }

  /** Has all other streams wait for the main one. */
  fork(): void {
    for (const side of this.#sides) this.#waitFor(side, this.#mainStream());
  }

  /** Whether other streams have work that the main one has not waited for. */
  get isAhead(): boolean {
    return [...this.#sides].some((side) => (this.#main?.known.get(side) ?? 0) < side.position);
  }

  /** Gives a stream back; all others wait for what it was given. */
  close(stream: CudaStream): void {
    if (!this.#sides.delete(stream)) return;
    const { calls } = this.#context.driver;
    try {
      if (this.#context.loss === undefined) {
        this.#context.enter();
        for (const other of [this.#mainStream(), ...this.#sides]) {
          this.#waitUntil(other, stream, stream.position);
          other.known.set(stream, Infinity);
        }
      }
    } finally {
      calls.cuStreamDestroy(stream.handle);
      calls.cuEventDestroy(stream.event);
    }
  }

  dispose(): void {
    for (const stream of this.#sides) this.close(stream);
    if (this.#main !== undefined) this.#context.driver.calls.cuEventDestroy(this.#main.event);
    this.#main = undefined;
  }

  /** Made with the first other stream: until then nobody waits for it. */
  #mainStream(): CudaStream {
    return (this.#main ??= new CudaStream(this.#context.stream, this.#makeEvent(), this.#close));
  }

  #makeEvent(): number {
    return this.#context.make("cuEventCreate", "make an event", withoutTiming);
  }

  #waitUntil(stream: CudaStream, other: CudaStream, position: number): void {
    if (stream === other || (stream.known.get(other) ?? 0) >= position) return;
    this.#waitFor(stream, other);
  }

  /** Everything that `stream` is given next comes after what `other` was given so far. */
  #waitFor(stream: CudaStream, other: CudaStream): void {
    const { calls } = this.#context.driver;
    const recorded = calls.cuEventRecord(other.event, other.handle);
    this.#context.check(recorded, "cuEventRecord", "order streams");
    const waited = calls.cuStreamWaitEvent(stream.handle, other.event, 0);
    this.#context.check(waited, "cuStreamWaitEvent", "order streams");
    stream.known.set(other, other.position);
    // What the other one has waited for is over as well.
    for (const [third, position] of other.known)
      if (third !== stream && (stream.known.get(third) ?? 0) < position)
        stream.known.set(third, position);
  }
}
