/** Threads of a browser; they share memory only on pages that are isolated from other origins. */
import type { Port, PortEvents } from "./port.ts";

export function processors(): number {
  // What a bundler made for browsers may run elsewhere.
  return typeof navigator === "object" ? navigator.hardwareConcurrency : 1;
}

/** Pages have no variables. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return {};
}

export function readText(): undefined {
  return undefined;
}

export function meetPeers(): Promise<never> {
  return Promise.reject(new Error("pages have no sockets"));
}

export function openPort<M, A>({ answered, ended }: PortEvents<A>): Port<M> {
  const worker = new Worker(new URL("../runtime/threads/browser-worker.js", import.meta.url), {
    type: "module",
  });
  worker.onmessage = ({ data }: MessageEvent<A>) => {
    answered(data);
  };
  worker.onerror = () => {
    worker.terminate();
    ended();
  };
  return {
    post: (message, transfer = []) => {
      worker.postMessage(
        message,
        transfer.filter((each) => each instanceof MessagePort),
      );
    },
    hold: () => undefined,
    end: () => {
      worker.terminate();
      ended();
    },
  };
}
