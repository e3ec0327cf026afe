/**
 * What the user's program prints to standard output while it runs, led elsewhere: with `--json` it must
 * not mix with the document, and under many schedules it is worth seeing once.
 */
import type { Output } from "./output.ts";

/** Runs `work` with everything written to standard output given to `take` instead. */
export async function redirectOutput<T>(
  take: (text: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  const restore = replaceWrite(process.stdout, writer(take) as (...written: unknown[]) => boolean);
  try {
    return await work();
  } finally {
    restore();
  }
}

/** Gives a stream another `write`; what comes back gives it its own again. */
function replaceWrite(
  stream: NodeJS.WriteStream,
  write: (...written: unknown[]) => boolean,
): () => void {
  const original = Object.getOwnPropertyDescriptor(stream, "write");
  Object.defineProperty(stream, "write", { value: write, configurable: true, writable: true });
  return () => {
    if (original === undefined) Reflect.deleteProperty(stream, "write");
    else Object.defineProperty(stream, "write", original);
  };
}

type WriteCallback = (error?: Error | null) => void;

/** A stand-in for a stream's `write`, in both of its forms. */
function writer(take: (text: string) => void) {
  return (
    chunk: string | Uint8Array,
    encoding?: BufferEncoding | WriteCallback,
    done?: WriteCallback,
  ): boolean => {
    take(typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8"));
    const callback = typeof encoding === "function" ? encoding : done;
    callback?.();
    return true;
  };
}

/** Runs the user's code; what it prints stays out of the document of --json. */
export function runUserCode<T>(output: Output, work: () => Promise<T>): Promise<T> {
  if (!output.json) return work();
  return redirectOutput((text) => {
    output.text(text);
  }, work);
}

/** Runs `work`; says whether anything was written to standard output or standard error meanwhile. */
export async function noticingOutput<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly hasPrinted: boolean }> {
  let hasPrinted = false;
  const restore = [process.stdout, process.stderr].map((stream) => {
    const write = stream.write.bind(stream) as (...written: unknown[]) => boolean;
    return replaceWrite(stream, (...written) => {
      hasPrinted = true;
      return write(...written);
    });
  });
  try {
    return { result: await work(), hasPrinted };
  } finally {
    for (const each of restore) each();
  }
}

/** Waits until the program has nothing left to do. */
export function idle(): Promise<void> {
  return new Promise((resolve) => {
    process.once("beforeExit", () => {
      resolve();
    });
  });
}
