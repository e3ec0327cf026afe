/**
 * Threads that are kept from one device to the next: to start them takes longer than what a soak does with most of them.
 *
 *   device    opens ─ jobs ─ ends │ opens ─ jobs ─ ends │ …
 *   thread    ──────────────────────────────────────────▶
 */
import type { Port, PortEvents } from "../../src/workers/port.ts";
import { openPort } from "../../src/workers/node.ts";
import type { Answer, Job } from "../../src/emulator/host-workers/job.ts";
import type { ThreadHost } from "../../src/emulator/host-workers/worker-pool.ts";

interface Thread {
  readonly port: Port<Job>;
  /** Whose thread it is now. */
  owner: PortEvents<Answer> | undefined;
}

export class KeptThreads implements ThreadHost {
  readonly #idle: Thread[] = [];

  processors(): number {
    return 8;
  }

  readonly openPort: ThreadHost["openPort"] = (events) => {
    const thread = this.#idle.pop() ?? started();
    thread.owner = events;
    const { port } = thread;
    return {
      post: (job) => port.post(job),
      hold: (isHeld) => port.hold(isHeld),
      end: () => {
        // Devices end threads in their turn, when no job is under way.
        thread.owner = undefined;
        this.#idle.push(thread);
      },
    };
  };

  /** Ends those that no device has. */
  end(): void {
    for (const { port } of this.#idle.splice(0)) port.end();
  }
}

function started(): Thread {
  const thread: { port?: Port<Job>; owner: PortEvents<Answer> | undefined } = { owner: undefined };
  const port = openPort<Job, Answer>({
    answered: (answer) => thread.owner?.answered(answer),
    ended: () => thread.owner?.ended(),
  });
  return Object.assign(thread, { port });
}
