/**
 * The form of the tables in this folder. Each entry is a short program with one mistake, written as a
 * user writes it; the line that must be reported ends in a comment with the mistake's name:
 *
 *   {
 *     name: "rows added to columns",
 *     code: "TW1010",
 *     make: () => program(({ tile }) => {
 *       tile.add(tile.transpose()); // <- rows added to columns
 *     }),
 *     expected: "[8, 64]",
 *     found: "[64, 8]",
 *   }
 *
 * `@ts-expect-error` stands where the types refuse the mistake as well.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { tensor, barrier, bf16, dim, f32, i32, kernel, scalar, semaphore, smem } from "tilewright";
import type { Barrier, DiagnosticCode, Ref, Scalar, Semaphore, Tile } from "tilewright";

export interface Mistake {
  readonly name: string;
  readonly code: DiagnosticCode;
  readonly make: () => unknown;
  /** Part of the report's first line. */
  readonly message?: string;
  readonly expected?: string;
  readonly found?: string;
  readonly remedy?: string;
  /** Part of each note, in order. */
  readonly notes?: readonly string[];
}

/** The mistakes of one file, with where each must be reported. */
export interface MistakeTable {
  readonly file: string;
  readonly mistakes: readonly Mistake[];
  lineOf(name: string): number;
}

export function mistakeTable(url: string, mistakes: readonly Mistake[]): MistakeTable {
  const file = fileURLToPath(url);
  const lines = readFileSync(file, "utf8").split("\n");
  return {
    file,
    mistakes,
    lineOf(name) {
      const marked = lines.flatMap((line, index) =>
        line.endsWith(`// <- ${name}`) ? [index + 1] : [],
      );
      const [line] = marked;
      if (line === undefined || marked.length > 1)
        throw new Error(`${marked.length} lines are marked "${name}" in ${file}`);
      return line;
    },
  };
}

/** What most programs work with. */
export interface Things {
  readonly i: Scalar<"i32">;
  readonly x: Ref<"f32">;
  readonly halves: Ref<"bf16">;
  readonly counts: Ref<"i32">;
  /** Of an extent that is known at launch. */
  readonly list: Ref<"f32">;
  readonly factor: Scalar<"f32">;
  readonly out: Ref<"f32">;
  readonly shared: Ref<"f32">;
  readonly ready: Barrier;
  readonly ring: Barrier;
  readonly done: Semaphore;
  /** The contents of x, 8 by 64. */
  readonly tile: Tile<"f32">;
}

/** A kernel with `body` for its body. */
export function program(body: (things: Things) => unknown): unknown {
  const spec = {
    name: "program",
    grid: { i: 4 },
    inputs: {
      x: tensor(f32, [8, 64]),
      halves: tensor(bf16, [8, 64]),
      counts: tensor(i32, [8, 64]),
      list: tensor(f32, [dim("n")]),
      factor: scalar(f32),
    },
    outputs: { out: tensor(f32, [8, 64]) },
    scratch: {
      shared: smem(f32, [8, 64]),
      ready: barrier(),
      ring: barrier({ count: 2 }),
      done: semaphore([4]),
    },
  };
  return kernel(spec, (things) => body({ ...things, tile: things.x.load() }));
}
