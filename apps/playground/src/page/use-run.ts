/** Runs of the program as state of the page: how the last one stands, what it printed, what it was refused. */
import { useCallback, useRef, useState } from "preact/hooks";
import { mostPrinted } from "../protocol.ts";
import type { Runner } from "./runner.ts";
import type { RunState, Session } from "./state.ts";

const mostRefused = 20;

export interface RunControl {
  /** How many runs were started. */
  readonly started: number;
  readonly run: RunState;
  readonly printed: readonly string[];
  readonly refused: readonly string[];
  /** Whether a run will start soon, unless something else is done before. */
  readonly isDue: boolean;
  readonly start: (session: Session) => Promise<void>;
  /** Starts after so many milliseconds in which nothing else was asked for. */
  readonly startLater: (session: Session, delay: number) => void;
  readonly cancelLater: () => void;
  /** Shows nothing of the last run any more. */
  readonly forget: () => void;
}

export function useRun(runner: Runner): RunControl {
  const [run, setRun] = useState<RunState>({ kind: "none" });
  const [printed, setPrinted] = useState<readonly string[]>([]);
  const [refused, setRefused] = useState<readonly string[]>([]);
  const number = useRef(0);
  const [started, setStarted] = useState(0);
  const pause = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [isDue, setDue] = useState(false);
  const cancelLater = useCallback(() => {
    clearTimeout(pause.current);
    setDue(false);
  }, []);
  const start = useCallback(async ({ program, settings, seconds }: Session): Promise<void> => {
    cancelLater();
    const own = (number.current += 1);
    setStarted(own);
    setRun({ kind: "running", message: "Starting", since: performance.now() });
    setPrinted([]);
    setRefused([]);
    const lines: string[] = [];
    let refusals = 0;
    let told = "";
    const end = await runner.run(program, settings, seconds, {
      printed: (text) => {
        if (lines.length < mostPrinted) lines.push(text);
      },
      refused: (what) => {
        if (++refusals <= mostRefused) setRefused((before) => [...before, what]);
      },
      progress: (message) => {
        if (message === told) return;
        told = message;
        if (own === number.current)
          setRun((before) => (before.kind === "running" ? { ...before, message } : before));
      },
    });
    // Another run has taken its place.
    if (own !== number.current) return;
    setPrinted(lines);
    setRun(end.kind === "finished" ? { ...end, number: own } : end);
  }, []);
  const startLater = useCallback((session: Session, delay: number) => {
    clearTimeout(pause.current);
    setDue(true);
    pause.current = setTimeout(() => void start(session), delay);
  }, []);
  const forget = useCallback(() => {
    cancelLater();
    number.current += 1;
    setRun({ kind: "none" });
  }, []);
  return { started, run, printed, refused, isDue, start, startLater, cancelLater, forget };
}
