/** Threads of Node that run the source as it is, without a build. */
import { MessagePort, Worker } from "node:worker_threads";
import type { Port, PortEvents } from "../../src/workers/port.ts";

const entry = new URL("../../src/runtime/threads/node-worker.ts", import.meta.url);
const types = new URL("register-types.mjs", import.meta.url).href;

export class SourceThreads {
  readonly started: Worker[] = [];

  processors(): number {
    return 2;
  }

  readonly openPort = <M, A>({ answered, ended }: PortEvents<A>): Port<M> => {
    const worker = new Worker(entry, { execArgv: ["--import", types] });
    this.started.push(worker);
    worker.on("message", (answer: A) => {
      answered(answer);
    });
    worker.on("error", () => undefined);
    worker.on("exit", ended);
    return {
      post: (message, transfer = []) => {
        worker.postMessage(
          message,
          transfer.filter((each) => each instanceof MessagePort),
        );
      },
      hold: (isHeld) => {
        if (isHeld) worker.ref();
        else worker.unref();
      },
      end: () => {
        void worker.terminate();
      },
    };
  };
}
