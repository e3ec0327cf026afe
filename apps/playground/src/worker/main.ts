/**
 * Where a worker begins. It is given a port to the page, runs one program, and answers questions about it until the page
 * ends it. The frame that starts it has no origin of its own and a policy that refuses all traffic; nothing here relies on
 * the program not knowing how to reach the port.
 */
import type { FromWorker, Question, ToWorker } from "../protocol.ts";
import { answers } from "./answers/index.ts";
import { runProgram } from "./run.ts";
import type { FinishedRun } from "./run.ts";
import { SourceLines } from "./source-lines.ts";

function serve(port: MessagePort): void {
  const post = (message: FromWorker): void => {
    port.postMessage(message);
  };
  let run: FinishedRun | undefined;
  captureConsole((text) => {
    post({ kind: "printed", text });
  });
  globalThis.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
    post({ kind: "refused", what: `${blockedURI} (${effectiveDirective})` });
  });
  port.onmessage = async ({ data }: MessageEvent<ToWorker>) => {
    if (data.kind === "run") {
      const { program, settings } = data;
      run =
        program.language === "stablehlo"
          ? (await import("./run-graph.ts")).runGraph(program, settings, post)
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
  post({ kind: "ready" });
}

function answer(run: FinishedRun, question: Question): unknown {
  const ask = answers[question.name] as (run: FinishedRun, asks: Question) => unknown;
  return ask(run, question);
}

/** What programs print goes to the page. */
function captureConsole(print: (text: string) => void): void {
  for (const level of ["log", "info", "warn", "error", "debug"] as const)
    console[level] = (...values: readonly unknown[]) => {
      print(values.map((value) => (typeof value === "string" ? value : show(value))).join(" "));
    };
}

function show(value: unknown): string {
  if (value instanceof Error) return value.message;
  if (typeof value !== "object" || value === null) return String(value);
  if (ArrayBuffer.isView(value)) {
    const items = Array.from(value as unknown as ArrayLike<number | bigint>);
    return `[${items.slice(0, 32).join(", ")}${items.length > 32 ? ", …" : ""}]`;
  }
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === "bigint" ? `${each}n` : each,
  );
}

globalThis.onmessage = ({ ports }: MessageEvent) => {
  const [port] = ports;
  if (port !== undefined) serve(port);
};
