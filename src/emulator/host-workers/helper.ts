/**
 * A thread as the calling thread sees it. Threads come from Node or from a browser; what they have in common is a
 * port: messages there, messages back, and word of their end.
 */
import type { Answer, Job } from "./job.ts";

export interface Port {
  post(job: Job): void;
  /** Whether the process waits for it before it ends. */
  hold(isHeld: boolean): void;
  end(): void;
}

/** What a port tells. */
export interface PortEvents {
  readonly answered: (answer: Answer) => void;
  /** It has ended, or never began. */
  readonly ended: () => void;
}

export type OpenPort = (events: PortEvents) => Port;

/** How a job ended: with an answer, or with the thread. */
export type Outcome = { readonly answer: Answer } | "lost";

export class Helper {
  readonly #port: Port;
  /** The modules that it has. */
  readonly modules = new Set<number>();
  #settle: ((outcome: Outcome) => void) | undefined;
  #isLost = false;

  constructor(open: OpenPort) {
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

  run(job: Job): Promise<Outcome> {
    if (this.#isLost) return Promise.resolve("lost");
    return new Promise((resolve, reject) => {
      this.#settle = resolve;
      this.#port.hold(true);
      try {
        this.#port.post(job);
      } catch (error) {
        this.#port.hold(false);
        this.#settle = undefined;
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
  }

  #finish(outcome: Outcome): void {
    this.#port.hold(false);
    this.#settle?.(outcome);
    this.#settle = undefined;
  }

  end(): void {
    this.#port.end();
  }
}
