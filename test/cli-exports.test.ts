/**
 * What `tilewright run` and `simulate` do with what files export: operations run as kernels do, a file that does nothing is
 * refused, and what is thrown once the file was read is told once.
 */
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BuiltCommand } from "./support/built-command.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "tilewright-exports-")));
const user = join(folder, "user");
const command = new BuiltCommand(join(folder, "installed"), user);

beforeAll(async () => {
  await command.build();
});
afterAll(() => {
  command.end();
  rmSync(folder, { recursive: true });
});

function write(name: string, ...lines: readonly string[]): string {
  writeFileSync(join(user, name), lines.join("\n"));
  return join(user, name);
}

describe("a file that exports operations alone", () => {
  const operations = (): string =>
    write(
      "operations.ts",
      'import { tensor, dim, f32 } from "tilewright";',
      'import { softmax, sort } from "tilewright/kernels";',
      "export const soft = softmax({ x: tensor(f32, [dim('m'), dim('n')]) });",
      "export const order = sort({ x: f32 });",
    );

  test("runs them on random inputs", async () => {
    const { status, stdout } = await command.run([
      "run",
      operations(),
      "--dim",
      "m=3",
      "--dim",
      "n=5",
    ]);
    expect(status).toBe(0);
    expect(stdout).toMatch(/soft: m = 3, n = 5, seed 1,[^]*out = f32\[3, 5\]/);
    expect(stdout).toMatch(/order: n = 5, seed 1,[^]*out = f32\[5\]/);
  });

  test("runs the one that is named, and knows its dimensions", async () => {
    const { status, stdout } = await command.run([
      "run",
      operations(),
      "--kernel",
      "order",
      "--json",
    ]);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      kernels: [{ name: "order", dimensions: { n: 1000 } }],
    });
    const unknown = await command.run(["run", operations(), "--kernel", "order", "--dim", "m=3"]);
    expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining("TW5006")]);
    const other = await command.run(["run", operations(), "--kernel", "scale"]);
    expect(other.status).toBe(1);
    expect(other.stderr).toContain("TW5005");
    expect(other.stderr).toContain("order, soft");
  });

  test("is simulated under schedules", async () => {
    const parameters = [
      "simulate",
      operations(),
      "--dim",
      "m=2",
      "--dim",
      "n=4",
      "--schedules",
      "1",
    ];
    const { status, stdout } = await command.run(parameters);
    expect(status).toBe(0);
    expect(stdout).toMatch(/order +2 +none/);
    expect(stdout).toMatch(/soft +2 +none/);
  });

  test("is refused where kernels are needed", async () => {
    for (const name of ["compile", "report"]) {
      const { status, stderr } = await command.run([name, operations()]);
      expect(status).toBe(1);
      expect(stderr).toMatch(/TW5001[^]*found: +order \(an operation\), soft \(an operation\)/);
    }
  });
});

describe("a file that exports nothing to run", () => {
  const exports = [
    'import { array, jit, mul } from "tilewright/arrays";',
    'import type { NDArray } from "tilewright/arrays";',
    'export const step = jit((x: Array<"f32">) => mul(x, 2));',
    "export const w = array([1, 2, 3]);",
    "export const rate = 3;",
    "export function loss() {}",
  ];

  test("and prints nothing is told what it exports and what to do", async () => {
    const { status, stdout, stderr } = await command.start(["run", write("silent.ts", ...exports)]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("TW5017");
    expect(stderr).toContain(
      "loss (a function), rate (3), step (a function of arrays, compiled by jit), w (an array f32[3])",
    );
    expect(stderr).toMatch(/remedy: .*main\(device\).*calls loss/);
  });

  test("is a script where it prints, at once or later", async () => {
    const now = write("now.ts", ...exports, "console.log('printed', rate);");
    expect(await command.run(["run", now])).toMatchObject({ status: 0, stdout: "printed 3\n" });
    const later = write(
      "later.ts",
      ...exports,
      "setTimeout(() => { console.error('printed', rate); }, 20);",
    );
    expect(await command.start(["run", later])).toMatchObject({ status: 0, stderr: "printed 3\n" });
  });

  test("is a script where it exports nothing at all", async () => {
    const plain = write("plain.ts", "const rate = 3; void rate;");
    expect(await command.run(["run", plain])).toEqual({ status: 0, stdout: "", stderr: "" });
  });

  test("is refused by every command that needs something", async () => {
    const file = write("silent.ts", ...exports);
    for (const [code, ...parameters] of [
      ["TW5001", "simulate", file],
      ["TW5001", "compile", file],
      ["TW5001", "report", file],
      ["TW5014", "tune", file, "--case", "n=3", "--file", join(user, "none.jsonl")],
    ]) {
      const { status, stderr } = await command.run(parameters);
      expect([status, stderr]).toEqual([1, expect.stringContaining(code ?? "")]);
    }
  });
});

describe("what a program throws and nobody catches", () => {
  const wrong = "matmul({ a: bf16, b: bf16, foo: 1 } as never)";
  const imports = [
    'import { bf16 } from "tilewright";',
    'import { matmul } from "tilewright/kernels";',
  ];

  test.each([
    ["in a callback", `setTimeout(() => ${wrong}, 1);`],
    ["in a promise that nobody waits for", `void (async () => { await null; ${wrong}; })();`],
  ])("%s is one report with its line", async (_, line) => {
    const file = write("throws.ts", ...imports, line);
    const { status, stdout, stderr } = await command.start(["run", file]);
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^TW1033: unknown option foo of matmul\n  at .*throws\.ts:3:\d+\n/);
    for (const once of ["TW1033", "expected", "unknown option", "throws.ts", "remedy"])
      expect(stderr.split(once)).toHaveLength(2);
  });

  test("goes to the program's own listener where it has one", async () => {
    const listener = "process.on('uncaughtException', (e) => { console.log('own', e.code); });";
    const file = write("listens.ts", ...imports, listener, `setTimeout(() => ${wrong}, 1);`);
    const ended = await command.start(["run", file]);
    expect(ended).toEqual({ status: 0, stdout: "own TW1033\n", stderr: "" });
  });
});
