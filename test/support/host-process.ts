/**
 * A process that evaluates programs, one after another, for tests of what was built: it loads the package once, where a
 * process for each would take most of its time to start.
 *
 *   ask("const { f } = await load(url); return f();") ─▶ { value, stdout, stderr }
 *
 * Its programs share the modules and the globals of that process. What a test says of a process itself, of its exit
 * status, of its streams or of who called whom, it says of a process of its own.
 */
import { fork } from "node:child_process";
import type { Serializable } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** What a program came to, and what it wrote meanwhile. */
export interface Evaluated {
  readonly value: unknown;
  readonly stdout: string;
  readonly stderr: string;
}

type Answer = Evaluated | { readonly failure: string };

const script = fileURLToPath(new URL("./host-process.mjs", import.meta.url));

export class HostProcess {
  readonly #child;
  #last: Promise<unknown> = Promise.resolve();

  constructor(folder: string) {
    this.#child = fork(script, { cwd: folder, execArgv: [], stdio: ["ignore", 2, 2, "ipc"] });
  }

  /** Evaluates the body of an async function, which imports by `load(url)`. */
  ask(program: string): Promise<Evaluated> {
    const answer = this.#last.then(() => this.#send(program));
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  async #send(program: Serializable): Promise<Evaluated> {
    const ended = new AbortController();
    const { signal } = ended;
    const gone = once(this.#child, "exit", { signal }).then(([status]): Answer => {
      return { failure: `the host process ended with status ${String(status)}` };
    });
    gone.catch(() => undefined);
    const told = once(this.#child, "message", { signal }).then(([answer]) => answer as Answer);
    told.catch(() => undefined);
    this.#child.send(program);
    const answer = await Promise.race([told, gone]);
    ended.abort();
    if ("failure" in answer) throw new Error(answer.failure);
    return answer;
  }

  end(): void {
    this.#child.disconnect();
  }
}
