/** Threads of a browser; they share memory only on pages that are isolated from other origins. */
import type { OpenPort } from "./helper.ts";
import type { Answer } from "./job.ts";

export function processors(): number {
  // What a bundler made for browsers may run elsewhere.
  return typeof navigator === "object" ? navigator.hardwareConcurrency : 1;
}

export const openPort: OpenPort = ({ answered, ended }) => {
  const worker = new Worker(new URL("../host-workers/browser-worker.js", import.meta.url), {
    type: "module",
  });
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    answered(data);
  };
  worker.onerror = () => {
    worker.terminate();
    ended();
  };
  return {
    post: (job) => {
      worker.postMessage(job);
    },
    hold: () => undefined,
    end: () => {
      worker.terminate();
      ended();
    },
  };
};
