/**
 * Kernels compiled and assembled by helper processes, ahead of their use. A helper fills two caches, ours of compiled
 * kernels and the driver's of machine code; whoever compiles the same kernel afterwards finds both filled.
 *
 *   this process   text of kernels ──▶ helper 1  parse ▶ compile ▶ driver's assembler ──▶ caches
 *                                  └─▶ helper 2  …                                          │
 *                  device.bind(…)  ◀────────────────────────────────────────────────────────┘
 *
 * They are processes rather than threads, since the driver assembles one program at a time for each of its contexts.
 */
import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { cacheSettings } from "./cache/settings.ts";

export interface BackgroundCompileOptions {
  /** As many as there are processors, up to eight, unless given. */
  readonly helpers?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Each helper takes a context's memory of the GPU. */
const mostHelpers = 8;

/** Written so that no bundler follows it: of a helper alone, without what it imports, nothing is gained. */
const ownAddress = import.meta.url;

/** There is none in the sources, nor in bundles: everything is then compiled where it is used. */
function helperFile(): string | undefined {
  try {
    const file = fileURLToPath(new URL("./compile-helper.js", ownAddress));
    return existsSync(file) ? file : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Compiles kernels, given as text with locations; gives how many. What a helper cannot compile is left to whoever
 * needs it, who gets the error.
 */
export async function compileInBackground(
  texts: readonly string[],
  { helpers = availableParallelism(), signal }: BackgroundCompileOptions = {},
): Promise<number> {
  const file = helperFile();
  if (file === undefined || cacheSettings().folder === undefined) return 0;
  const count = Math.min(helpers, mostHelpers, texts.length);
  // The longest first, so that none of them is begun when the others are done.
  const waiting = [...texts].sort((a, b) => b.length - a.length);
  const done = await Promise.all(
    Array.from({ length: count }, () => compileWith(file, waiting, signal)),
  );
  signal?.throwIfAborted();
  return done.reduce((sum, each) => sum + each, 0);
}

/** One helper, which takes the next kernel whenever it is done with one; ends with it, however that comes. */
function compileWith(
  file: string,
  waiting: string[],
  signal: AbortSignal | undefined,
): Promise<number> {
  return new Promise((resolve) => {
    let done = 0;
    const helper = fork(file, [], {
      execArgv: [],
      stdio: ["ignore", "ignore", "ignore", "ipc"],
    });
    const next = (): void => {
      const text = signal?.aborted === true ? undefined : waiting.shift();
      if (text === undefined) helper.disconnect();
      else helper.send(text);
    };
    helper.on("message", (answer) => {
      if (answer === "compiled") done += 1;
      next();
    });
    helper.on("error", () => {
      resolve(done);
    });
    helper.on("exit", () => {
      resolve(done);
    });
  });
}
