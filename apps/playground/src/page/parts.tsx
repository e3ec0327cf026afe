/** Small pieces that several views are made of. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Finding, Line } from "../protocol.ts";
import type { Answer } from "./use-answer.ts";

/** What views share: the line that is marked, and how to mark another. */
export interface Marking {
  readonly marked: number | undefined;
  readonly mark: (line: number | undefined) => void;
}

/** A line of the program as a button that marks it. */
export function LineButton({ line, marking }: { readonly line: Line; readonly marking: Marking }) {
  if (line === undefined) return null;
  return (
    <button
      type="button"
      class="line-button"
      aria-pressed={marking.marked === line}
      onClick={() => {
        marking.mark(line);
      }}
    >
      line {line}
    </button>
  );
}

/** The answer to a question once it is there; until then that it is asked, and for how long if that is long. */
export function Answered<T>({
  answer,
  what,
  marking,
  children,
}: {
  readonly answer: Answer<T>;
  readonly what: string;
  readonly marking: Marking;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (answer.kind === "asked") return <Progress message={what} />;
  if (answer.kind === "failed") return <FindingCard finding={answer.finding} marking={marking} />;
  return <>{children(answer.value)}</>;
}

/** Shown after a moment, with seconds once there are some. */
export function Progress({
  message,
  since,
}: {
  readonly message: string;
  readonly since?: number;
}) {
  const [begin] = useState(() => since ?? performance.now());
  const [now, setNow] = useState(begin);
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(performance.now());
    }, 250);
    return () => {
      clearInterval(timer);
    };
  }, []);
  const seconds = Math.floor((now - begin) / 1000);
  return (
    <div class="progress" role="status">
      <span class="spinner" aria-hidden="true" />
      {message}
      {seconds >= 1 ? ` — ${seconds} s` : ""} …
    </div>
  );
}

export function FindingCard({
  finding,
  marking,
}: {
  readonly finding: Finding;
  readonly marking: Marking;
}) {
  const { code, title, summary, line, expected, found, remedy, notes } = finding;
  return (
    <article class="finding" aria-label={`${code}: ${summary}`}>
      <h3>
        <span class="code">{code}</span> {title}
      </h3>
      <p class="summary">
        {summary} <LineButton line={line} marking={marking} />
      </p>
      <dl>
        {expected !== undefined && <Pair name="Expected" text={expected} />}
        {found !== undefined && <Pair name="Found" text={found} />}
        {notes.map((note, index) => (
          <div key={index}>
            <dt>Note</dt>
            <dd>
              {note.message} <LineButton line={note.line} marking={marking} />
            </dd>
          </div>
        ))}
        {remedy !== undefined && <Pair name="Remedy" text={remedy} />}
      </dl>
    </article>
  );
}

function Pair({ name, text }: { readonly name: string; readonly text: string }) {
  return (
    <div class={name === "Remedy" ? "remedy" : undefined}>
      <dt>{name}</dt>
      <dd>{text}</dd>
    </div>
  );
}

/** A choice among a few, such as kernels. */
export function Choice<T extends string | number>({
  label,
  value,
  options,
  choose,
}: {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [T, string])[];
  readonly choose: (value: NoInfer<T>) => void;
}) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select
        name={label}
        value={String(value)}
        onChange={({ currentTarget }) => {
          const chosen = options.find(([each]) => String(each) === currentTarget.value);
          if (chosen !== undefined) choose(chosen[0]);
        }}
      >
        {options.map(([each, text]) => (
          <option key={each} value={String(each)}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** Of a run on another device than the simulator. */
export function AsSimulated() {
  return (
    <p class="note" data-testid="as-simulated">
      Only the simulator has steps of the program: this is the same launch there.
    </p>
  );
}

/** 1234567 as 1.23 M; bytes and flops alike. */
export function amount(value: number): string {
  if (!Number.isFinite(value)) return "∞";
  const units = ["", " k", " M", " G", " T", " P"];
  const power =
    value === 0 ? 0 : Math.min(5, Math.max(0, Math.floor(Math.log10(Math.abs(value)) / 3)));
  const scaled = value / 1000 ** power;
  return `${Number(scaled.toPrecision(3))}${units[power] ?? ""}`;
}

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 1024 * 1024
    ? `${Number((bytes / 1024).toFixed(1))} KiB`
    : `${Number((bytes / 1024 / 1024).toFixed(2))} MiB`;
}

export function timeText(seconds: number): string {
  if (seconds === 0) return "0 s";
  const units: readonly (readonly [number, string])[] = [
    [1, "s"],
    [1e-3, "ms"],
    [1e-6, "µs"],
    [1e-9, "ns"],
  ];
  const [scale, unit] = units.find(([each]) => seconds >= each) ?? [1e-9, "ns"];
  return `${Number((seconds / scale).toPrecision(3))} ${unit}`;
}
