/** Runs of the program as state of the page: how the last one stands, what it printed, what it was refused. */
import { useCallback, useRef, useState } from "preact/hooks";
import type { Runner } from "./runner.ts";
import type { RunState, Session } from "./state.ts";

/** A program may print without end. */
const mostPrinted = 500;
const mostRefused = 20;

export interface RunControl {
  /** How many runs were started. */
  readonly started: number;
  readonly run: RunState;
  readonly printed: readonly string[];
  readonly refused: readonly string[];
  readonly start: (session: Session) => Promise<void>;
  /** Shows nothing of the last run any more. */
  readonly forget: () => void;
}

export function useRun(runner: Runner): RunControl {
  const [run, setRun] = useState<RunState>({ kind: "none" });
  const [printed, setPrinted] = useState<readonly string[]>([]);
  const [refused, setRefused] = useState<readonly string[]>([]);
  const number = useRef(0);
  const [started, setStarted] = useState(0);
  const start = useCallback(async ({ program, settings, seconds }: Session): Promise<void> => {
    const own = (number.current += 1);
    setStarted(own);
    setRun({ kind: "running", message: "Starting", since: performance.now() });
    setPrinted([]);
    setRefused([]);
    const lines: string[] = [];
    const end = await runner.run(program, settings, seconds, {
      printed: (text) => {
        if (lines.length < mostPrinted) lines.push(text);
      },
      refused: (what) => {
        setRefused((before) => (before.length < mostRefused ? [...before, what] : before));
      },
      progress: (message) => {
        if (own === number.current)
          setRun((before) => (before.kind === "running" ? { ...before, message } : before));
      },
    });
    // Another run has taken its place.
    if (own !== number.current) return;
    setPrinted(lines);
    setRun(end.kind === "finished" ? { ...end, number: own } : end);
  }, []);
  const forget = useCallback(() => {
    number.current += 1;
    setRun({ kind: "none" });
  }, []);
  return { started, run, printed, refused, start, forget };
}
