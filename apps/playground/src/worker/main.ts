/**
 * What a worker does. It is given a port to the page, runs one program, and answers questions about it until the page
 * ends it. One that waits for its program runs a small one of its own first, so that the engine has compiled what the
 * user's will need. The frame that starts it has no origin of its own and a policy that refuses all traffic; nothing here relies on
 * the program not knowing how to reach the port.
 */
import { nameLibraryBundle } from "../../../../src/support/location.ts";
import type { PartFile } from "../parts.ts";
import { defaultSettings, mostPrinted } from "../protocol.ts";
import type { FromWorker, Question, ToWorker } from "../protocol.ts";
import { answers } from "./answers/index.ts";
import { programs } from "./modules.ts";
import { runProgram } from "./run.ts";
import type { FinishedRun } from "./finished.ts";
import { SourceLines } from "./source-lines.ts";
import { textOf } from "./texts.ts";

/** The files of the worker's own code. */
export interface WorkerCode {
  readonly addresses: ReadonlyMap<string, string>;
  readonly add: (files: readonly PartFile[]) => void;
}

/** What the build makes of `import("./parts/…")`. */
interface PartHost {
  loadPart?: (name: string) => Promise<unknown>;
}

export function serve(port: MessagePort, code: WorkerCode): void {
  const post = (message: FromWorker): void => {
    port.postMessage(message);
  };
  let run: FinishedRun | undefined;
  let warmed = Promise.resolve();
  const parts = new Parts(code, post);
  (globalThis as PartHost).loadPart = (name) => parts.load(name);
  captureConsole((text) => {
    post({ kind: "printed", text });
  });
  globalThis.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
    post({ kind: "refused", what: `${blockedURI} (${effectiveDirective})` });
  });
  port.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
    if (data.kind === "part") {
      parts.take(data.name, data.files);
      return;
    }
    if (data.kind === "warm") {
      warmed = warmUp();
      return;
    }
    if (data.kind === "run") {
      const { program, settings } = data;
      await warmed;
      run =
        program.language === "stablehlo"
          ? (await programs()).runGraph(program, settings, post)
          : await runProgram(program, settings, post);
      post({ kind: "finished", report: run.report });
      return;
    }
    const { id, question } = data;
    try {
      if (run === undefined) throw new Error("nothing has run");
      post({ kind: "answered", id, answer: await answer(run, question) });
    } catch (error) {
      const lines = run?.lines ?? new SourceLines("the program");
      post({ kind: "failed", id, finding: lines.finding(error) });
    }
  };
}

/** Parts of the code beyond the first, asked of the page when they are needed. */
class Parts {
  readonly #code: WorkerCode;
  readonly #post: (message: FromWorker) => void;
  /** Modules that were asked for, and whom the page's files are for. */
  readonly #modules = new Map<string, Promise<unknown>>();
  readonly #waiting = new Map<string, (files: readonly PartFile[] | undefined) => void>();

  constructor(code: WorkerCode, post: (message: FromWorker) => void) {
    this.#code = code;
    this.#post = post;
    this.#nameBundles();
  }

  load(name: string): Promise<unknown> {
    const known = this.#modules.get(name);
    if (known !== undefined) return known;
    const asked = this.#fetched(name);
    this.#modules.set(name, asked);
    return asked;
  }

  /** What the page has sent; undefined where it could not be fetched. */
  take(name: string, files: readonly PartFile[] | undefined): void {
    this.#waiting.get(name)?.(files);
  }

  async #fetched(name: string): Promise<unknown> {
    const files = await new Promise<readonly PartFile[] | undefined>((resolve) => {
      this.#waiting.set(name, resolve);
      this.#post({ kind: "need", part: name });
    });
    if (files === undefined) {
      this.#modules.delete(name);
      throw new Error("a part of the playground could not be loaded; is there a network?");
    }
    this.#code.add(files);
    this.#nameBundles();
    return import(this.#code.addresses.get(name) ?? "");
  }

  #nameBundles(): void {
    for (const address of this.#code.addresses.values()) nameLibraryBundle(address);
  }
}

/** A program like those that people write, with a little of everything that most have. */
const usualProgram = `import { tensor, cdiv, dim, f32, kernel, scalar, slice, toNumbers } from "tilewright";
import type { Device } from "tilewright";
import { compareWithReference } from "tilewright/testing";
import { normal } from "./support/data.ts";
const n = dim("n");
export const usual = kernel(
  {
    name: "usual",
    grid: { i: cdiv(n, 1024) },
    inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]), alpha: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, y, alpha, out }) => {
    const here = slice(i.mul(1024), 1024);
    out.at(here).store(x.at(here).load().mul(alpha).add(y.at(here).load()));
  },
);
export async function main(device: Device): Promise<unknown> {
  const [x, y] = [normal(f32, [30_000], 1), normal(f32, [30_000], 2)];
  const { out } = await device.run(usual, { x, y, alpha: 2 });
  const [xs, ys] = [toNumbers(x), toNumbers(y)];
  return compareWithReference(out, (index) => {
    const value = 2 * (xs[index] ?? NaN) + (ys[index] ?? NaN);
    return { value, bound: 1e-5 * Math.abs(value) };
  });
}
`;

/** Runs the usual program and forgets it. */
async function warmUp(): Promise<void> {
  const program = { name: "usual.ts", language: "typescript", source: usualProgram } as const;
  await runProgram(program, defaultSettings, () => undefined);
}

function answer(run: FinishedRun, question: Question): unknown {
  const ask = answers[question.name] as (run: FinishedRun, asks: Question) => unknown;
  return ask(run, question);
}

/** What programs print goes to the page. */
function captureConsole(print: (text: string) => void): void {
  let printed = 0;
  for (const level of ["log", "info", "warn", "error", "debug"] as const)
    console[level] = (...values: readonly unknown[]) => {
      printed += 1;
      if (printed <= mostPrinted) print(values.map((value) => textOf(value)).join(" "));
    };
}
