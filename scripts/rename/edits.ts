/**
 * Changes of a text by position. Whatever is not renamed stays as it was written, spaces and comments included.
 */
import type ts from "typescript-api";
import type { Rename } from "./table.ts";

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** What was done to a file, and what somebody has to look at. */
export interface Renamed {
  readonly text: string;
  /** How often each row was applied. */
  readonly applied: ReadonlyMap<Rename, number>;
  readonly notes: readonly string[];
}

export class Edits {
  readonly #source: ts.SourceFile;
  readonly #edits = new Map<string, Edit>();
  readonly #applied = new Map<Rename, number>();
  readonly #notes = new Set<string>();

  constructor(source: ts.SourceFile) {
    this.#source = source;
  }

  /** Puts `text` in the place of a node; the same change twice is one. */
  replace(row: Rename, node: ts.Node, text: string): void {
    this.range(row, node.getStart(this.#source), node.getEnd(), text);
  }

  range(row: Rename, start: number, end: number, text: string): void {
    if (this.#place(start, end, text)) this.#applied.set(row, (this.#applied.get(row) ?? 0) + 1);
  }

  /** Puts `before` and `after` around what lies between two places. */
  surround(row: Rename, start: number, before: string, end: number, after: string): void {
    this.range(row, start, start, before);
    this.#place(end, end, after);
  }

  /** A further part of a change that is counted already. */
  also(start: number, end: number, text: string): void {
    this.#place(start, end, text);
  }

  /** Something that only a reader can decide. */
  note(node: ts.Node, text: string): void {
    const { line } = this.#source.getLineAndCharacterOfPosition(node.getStart(this.#source));
    this.#notes.add(`${line + 1}: ${text}`);
  }

  finish(): Renamed {
    const { text } = this.#source;
    const all = [...this.#edits.values()];
    // A setting that is replaced as a whole takes the renaming of its key along.
    const isWithin = (edit: Edit): boolean =>
      all.some(
        ({ start, end }) =>
          start <= edit.start && edit.end <= end && end - start > edit.end - edit.start,
      );
    const edits = all
      .filter((edit) => edit.start === edit.end || !isWithin(edit))
      .sort((a, b) => a.start - b.start || a.end - b.end);
    const parts: string[] = [];
    let from = 0;
    for (const edit of edits) {
      parts.push(text.slice(from, edit.start), edit.text);
      from = edit.end;
    }
    parts.push(text.slice(from));
    return { text: parts.join(""), applied: this.#applied, notes: [...this.#notes] };
  }

  #place(start: number, end: number, text: string): boolean {
    const key = `${start} ${end} ${text}`;
    if (this.#edits.has(key) || this.#source.text.slice(start, end) === text) return false;
    this.#edits.set(key, { start, end, text });
    return true;
  }
}
