/**
 * Positions as lines of the program. Stacks name the module's address, which means nothing to anybody; texts that
 * quote it are rewritten to name the program's file.
 */
import { TilewrightError } from "../../../../src/support/diagnostics.ts";
import { codes } from "../../../../src/support/diagnostic-codes/index.ts";
import type { Position } from "../../../../src/support/location.ts";
import type { Finding, Line } from "../protocol.ts";
import { fieldOf, textOf } from "./texts.ts";

/** An import that nothing answers, by the line that it is on. */
export class ImportError extends Error {
  override readonly name = "ImportError";
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.line = line;
  }
}

export class SourceLines {
  readonly #name: string;
  readonly #urls = new Set<string>();

  /** `name`: what the program's file is called. */
  constructor(name: string) {
    this.#name = name;
  }

  isProgram(url: string): void {
    this.#urls.add(url);
  }

  lineOf(position: Position | undefined): Line {
    if (position === undefined) return undefined;
    return this.#urls.has(position.file) || position.file === this.#name
      ? position.line
      : undefined;
  }

  /** A text without addresses; columns go with them, since they are those of the text without types. */
  clean(text: string): string {
    return [...this.#urls].reduce(
      (cleaned, url) =>
        cleaned
          .replace(new RegExp(`${url}:(\\d+):\\d+`, "g"), `${this.#name}:$1`)
          .replaceAll(url, this.#name),
      text,
    );
  }

  /** Anything that was thrown. */
  finding(error: unknown): Finding {
    if (error instanceof TilewrightError) return this.#report(error);
    if (!(error instanceof Error))
      return this.#plain("Error", `${textOf(error)} was thrown, which is no Error`, undefined);
    return this.#plain(fieldOf(error, "name"), fieldOf(error, "message"), this.#lineOfError(error));
  }

  #report(error: TilewrightError): Finding {
    return {
      code: error.code,
      title: codes[error.code].title,
      summary: this.clean(error.summary),
      line: this.lineOf(error.position),
      expected: error.expected && this.clean(error.expected),
      found: error.found && this.clean(error.found),
      remedy: this.clean(error.remedy),
      notes: error.notes.map(({ message, position }) => ({
        message: this.clean(message),
        line: this.lineOf(position),
      })),
    };
  }

  #plain(name: string, message: string, line: Line): Finding {
    const summary = this.clean(message).replace(/^Error transforming undefined: /, "");
    return { code: name, title: "the program failed", summary, line, notes: [] };
  }

  #lineOfError(error: Error): Line {
    if (error instanceof ImportError) return error.line;
    // The parser's own errors carry where they are.
    const { loc } = error as { readonly loc?: { readonly line?: unknown } };
    if (typeof loc?.line === "number") return loc.line;
    for (const url of this.#urls) {
      const found = new RegExp(`${url}:(\\d+)`).exec(fieldOf(error, "stack"))?.[1];
      if (found !== undefined) return Number(found);
    }
    return undefined;
  }
}
