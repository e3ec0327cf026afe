/**
 * A thread of the host as whoever started it sees it: messages there, messages back, and word of its end. Threads come from
 * Node or from a browser; the emulator and the CPU device take theirs from here, and say with each message what it is
 * (`runtime/threads/tasks.ts`).
 *
 *   openPort({ answered, ended }) ──▶ post(message)   answered(answer) …   end()   ended()
 */

export interface Port<M> {
  /** Ports among what is transferred are the thread's from then on. */
  post(message: M, transfer?: readonly object[]): void;
  /** Whether the process waits for it before it ends. */
  hold(isHeld: boolean): void;
  end(): void;
}

/** A message for a module of its own, which the thread loads by its address: `serve(message)` of it answers. */
export interface ModuleTask<M = unknown> {
  readonly task: "module";
  readonly address: string;
  readonly message: M;
}

/** What a port tells. */
export interface PortEvents<A> {
  readonly answered: (answer: A) => void;
  /** It has ended, or never began. */
  readonly ended: () => void;
}

export type OpenPort<M, A> = (events: PortEvents<A>) => Port<M>;

/** Where threads come from. */
export interface ThreadHost<M, A> {
  processors(): number;
  readonly openPort: OpenPort<M, A>;
}

/** Whether threads of this process can see the same memory: in browsers only those of pages that are isolated from other origins. */
export function canShareMemory(): boolean {
  const { crossOriginIsolated = true }: { readonly crossOriginIsolated?: boolean } = globalThis;
  return typeof SharedArrayBuffer === "function" && crossOriginIsolated;
}

/** How a message was taken: with an answer, or with the thread's end. */
export type Outcome<A> = { readonly answer: A } | "lost";

/** A thread that answers one message at a time. */
export class Helper<M, A> {
  readonly #port: Port<M>;
  #settle: ((outcome: Outcome<A>) => void) | undefined;
  #isLost = false;

  constructor(open: OpenPort<M, A>) {
    this.#port = open({
      answered: (answer) => {
        this.#finish({ answer });
      },
      ended: () => {
        this.#isLost = true;
        this.#finish("lost");
      },
    });
    this.#port.hold(false);
  }

  run(message: M): Promise<Outcome<A>> {
    if (this.#isLost) return Promise.resolve("lost");
    return new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#port.hold(true);
      try {
        this.#port.post(message);
      } catch (error) {
        this.#port.hold(false);
        this.#settle = undefined;
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  #finish(outcome: Outcome<A>): void {
    this.#port.hold(false);
    this.#settle?.(outcome);
    this.#settle = undefined;
  }

  end(): void {
    this.#port.end();
  }
}

/* ---- processes ---- */

export interface PeerEvents {
  readonly received: (frame: Uint8Array) => void;
  readonly ended: () => void;
}

export interface Peer {
  post(parts: readonly Uint8Array[]): void;
  close(): void;
}

export interface Peers {
  /** The connection to another rank; frames that came before are told first. */
  open(rank: number, events: PeerEvents): Peer;
  close(): void;
}

export interface MeetingPlace {
  readonly rank: number;
  readonly size: number;
  readonly host: string;
  readonly port: number;
  /** Milliseconds until all have to be there. */
  readonly timeout: number;
}
