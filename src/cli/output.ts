/**
 * What a command prints. People get text on standard output and reports on standard error; with
 * `--json`, standard output carries exactly one document and everything else moves to standard error.
 *
 *              people                    --json
 *   stdout     text, tables              one document
 *   stderr     reports, progress         what the user's program prints
 */

/** The parts of a process's stream that are used here. */
export interface Stream {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

export interface OutputSettings {
  readonly stdout: Stream;
  readonly stderr: Stream;
  readonly json: boolean;
  readonly environment: { readonly [name: string]: string | undefined };
}

/** A command's way to its two streams. */
export class Output {
  readonly json: boolean;
  readonly #stdout: Stream;
  readonly #stderr: Stream;
  readonly #styled: boolean;
  #progressShown = false;

  constructor({ stdout, stderr, json, environment }: OutputSettings) {
    this.json = json;
    this.#stdout = stdout;
    this.#stderr = stderr;
    this.#styled = stdout.isTTY === true && (environment["NO_COLOR"] ?? "") === "";
  }

  /** A line for people; nothing with --json. */
  line(text = ""): void {
    if (!this.json) this.#stdout.write(`${text}\n`);
  }

  /** Text for people as it is, such as what a program printed. */
  text(text: string): void {
    (this.json ? this.#stderr : this.#stdout).write(text);
  }

  report(text: string): void {
    this.#stderr.write(`${text}\n`);
  }

  /** The one document of --json; nothing for people. */
  document(value: unknown): void {
    if (this.json) this.#stdout.write(`${JSON.stringify(value, jsonValue, 2)}\n`);
  }

  /** Replaces the line that tells how far a command is; only a terminal can show one. */
  progress(text: string): void {
    if (this.#stderr.isTTY !== true) return;
    this.#stderr.write(`\r\u001B[2K${text}`);
    this.#progressShown = true;
  }

  clearProgress(): void {
    if (this.#progressShown) this.#stderr.write("\r\u001B[2K");
    this.#progressShown = false;
  }

  bold(text: string): string {
    return this.#styled ? `\u001B[1m${text}\u001B[22m` : text;
  }
}

/** What JSON has no form for: wide integers and non-finite numbers as strings, typed arrays as lists. */
function jsonValue(_key: string, value: unknown): unknown {
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (ArrayBuffer.isView(value) && !(value instanceof DataView))
    return Array.from(value as unknown as ArrayLike<unknown>);
  return value;
}

/** Columns two spaces apart, each as wide as its widest cell; the first row is the heading. */
export function formatTable(rows: readonly (readonly string[])[]): readonly string[] {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd(),
  );
}

/** A number of bytes as people read it. */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const value = bytes / 2 ** (10 * step);
  return `${Number.isInteger(value) ? value : value.toFixed(1)} ${units[step] ?? ""}`;
}

/** A time as people read it. */
export function formatTime(milliseconds: number): string {
  return milliseconds < 1000
    ? `${Math.round(milliseconds)} ms`
    : `${(milliseconds / 1000).toFixed(1)} s`;
}
