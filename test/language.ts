/**
 * Helpers for tests of the kernel language: the text of a traced body, and mistakes with the line they
 * are reported on. The line is marked in the test itself:
 *
 *   x.at(-1).load(); // <- here
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { f32 } from "../src/formats/dtype.ts";
import { tensor, kernel, smem, zeros } from "../src/lang/index.ts";
import type { Ref, Scalar, Tile } from "../src/lang/index.ts";
import { TilewrightError } from "../src/support/diagnostics.ts";
import type { DiagnosticCode } from "../src/support/diagnostics.ts";

/** The ops of a kernel as text, without header and indentation. */
export function bodyText(definition: { toString(): string }): string {
  const lines = definition.toString().split("\n");
  const start = lines.findIndex((line) => line.startsWith(")"));
  return lines
    .slice(start + 1, -1)
    .map((line) => line.slice(2))
    .join("\n");
}

export interface Mistake {
  readonly name: string;
  readonly code: DiagnosticCode;
  readonly make: () => unknown;
  /** Part of the report's first line. */
  readonly message?: string;
  readonly expected?: string;
  readonly found?: string;
  readonly remedy?: string;
  /** Messages of the notes, in order. */
  readonly notes?: readonly string[];
}

function failureOf(make: () => unknown): TilewrightError {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

const marker = "// <- here";
const libraryFolder = fileURLToPath(new URL("../src/", import.meta.url));

/** The report is on a marked line of a test and shows no frame of the library. */
function expectUserLine(error: TilewrightError): void {
  const { file, line } = error.position ?? { file: "", line: 0 };
  expect(file, error.message).toMatch(/\.test\.ts$/);
  expect(readFileSync(file, "utf8").split("\n")[line - 1], error.message).toContain(marker);
  const frames = (error.stack ?? "").split("\n").filter((text) => text.includes(libraryFolder));
  expect(frames.filter((text) => !text.includes(".test.ts"))).toEqual([]);
}

/** Each mistake is reported with its code and words, on the line that makes it. */
export function testMistakes(title: string, mistakes: readonly Mistake[]): void {
  describe(title, () => {
    test.each(mistakes)("$code, $name", (mistake) => {
      const error = failureOf(mistake.make);
      expect(error.message).toMatch(new RegExp(`^${mistake.code}: `));
      expectUserLine(error);
      expect(error.summary).toContain(mistake.message ?? "");
      expect(error.expected ?? "").toContain(mistake.expected ?? "");
      expect(error.found ?? "").toContain(mistake.found ?? "");
      expect(error.remedy).toContain(mistake.remedy ?? "");
      if (mistake.notes === undefined) return;
      expect(error.notes.map(({ message }) => message)).toEqual(mistake.notes);
      for (const { position } of error.notes) expect(position).toBeDefined();
    });
  });
}

/** What most mistakes are made with. */
export interface Things {
  readonly i: Scalar<"i32">;
  readonly x: Ref<"f32">;
  readonly shared: Ref<"f32">;
  readonly row: Tile<"f32">;
  readonly matrix: Tile<"f32">;
}

/** A kernel whose body is `body`. */
export function trace(body: (things: Things) => unknown): { toString(): string } {
  return kernel(
    {
      name: "traced",
      grid: { i: 4 },
      inputs: { x: tensor(f32, [8, 64]) },
      scratch: { shared: smem(f32, [8, 64]) },
    },
    ({ i, x, shared }) =>
      body({ i, x, shared, row: zeros(f32, [64]), matrix: zeros(f32, [8, 64]) }),
  );
}

/** An argument that the types refuse, as a JavaScript program might give it. */
export function wrong(item: unknown): never {
  return item as never;
}
