/** Threads of Node. In a browser `browser.ts` stands in for this file. */
import { existsSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { MessagePort, Worker } from "node:worker_threads";
import process from "node:process";
import type { MeetingPlace, Peers, Port, PortEvents } from "./port.ts";

/** Written so that no bundler follows it: of a worker alone, without what it imports, nothing is gained. */
const ownAddress = import.meta.url;

/** Throws in bundles whose format has no place of its own. */
function workerFile(): URL {
  return new URL("../runtime/threads/node-worker.js", ownAddress);
}

/** One where threads would find no file to load: in the sources, and in bundles. */
export function processors(): number {
  try {
    return existsSync(workerFile()) ? availableParallelism() : 1;
  } catch {
    return 1;
  }
}

/** The variables of the process. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/** The text of a file; undefined where there is none. */
export function readText(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/** Sockets are loaded by those who need them. */
export async function meetPeers(place: MeetingPlace): Promise<Peers> {
  const { meetPeers: meet } = await import("./node-peers.ts");
  return meet(place);
}

export function openPort<M, A>({ answered, ended }: PortEvents<A>): Port<M> {
  const worker = new Worker(workerFile(), { execArgv: [] });
  worker.on("message", (answer: A) => {
    answered(answer);
  });
  // An error, such as that of a file that is not there, comes before the exit.
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
}
