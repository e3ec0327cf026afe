/** Threads of Node. In a browser `browser.ts` stands in for this file. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { OpenPort } from "./helper.ts";
import type { Answer } from "./job.ts";

export function processors(): number {
  return availableParallelism();
}

export const openPort: OpenPort = ({ answered, ended }) => {
  const worker = new Worker(new URL("./node-worker.js", import.meta.url), { execArgv: [] });
  worker.on("message", (answer: Answer) => {
    answered(answer);
  });
  // An error, such as that of a file that is not there, comes before the exit.
  worker.on("error", () => undefined);
  worker.on("exit", ended);
  return {
    post: (job) => {
      worker.postMessage(job);
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
