import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { repositoryRoot } from "../../../test/source-files.ts";
import { writeNpz } from "../../files/index.ts";
import { f32, fromNumbers } from "tilewright";
import type { RunLimits } from "../../support/run-limits.ts";
import { Output } from "../output.ts";
import { defaultTarget } from "../../targets/target.ts";
import { runProgramsCommand } from "./run-programs.ts";
import type { PlanSettings } from "./run-programs.ts";

const folder = mkdtempSync(join(tmpdir(), "tilewright-programs-"));
afterAll(() => {
  rmSync(folder, { recursive: true });
});

interface Outcome {
  readonly file: string;
  readonly function: string;
  readonly ok: boolean;
  readonly code: string | null;
  readonly message: string;
}

interface Ended {
  readonly status: number;
  readonly outcomes: readonly Outcome[];
}

async function run(
  files: readonly string[],
  options: {
    readonly inputs?: string;
    readonly compare?: string;
    readonly device?: "evaluator" | "simulator";
    readonly matmulPrecision?: "f32" | "tf32";
    readonly limits?: RunLimits;
    readonly plan?: PlanSettings;
  } = {},
): Promise<Ended> {
  let text = "";
  const stdout = { write: (part: string) => (text += part) };
  const output = new Output({ stdout, stderr: stdout, json: true, environment: {} });
  const { inputs, compare, device = "evaluator", limits = {} } = options;
  const { matmulPrecision = "f32" } = options;
  const given = { files, device, inputs, compare, matmulPrecision, seed: 1, limits };
  const settings = { ...given, plan: options.plan };
  const status = await runProgramsCommand(settings, output);
  return { status, outcomes: JSON.parse(text) as readonly Outcome[] };
}

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const endless = `func.func @main() -> tensor<i32> {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.while(%x = %0) : tensor<i32>
    cond {
      %2 = stablehlo.compare GE, %x, %x : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.add %x, %x : tensor<i32>
      stablehlo.return %2 : tensor<i32>
    }
  return %1 : tensor<i32>
}`;

const two = `func.func @main() -> tensor<i32> {
  %0 = stablehlo.constant dense<2> : tensor<i32>
  return %0 : tensor<i32>
}`;

const double = `func.func @twice(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %x, %x : tensor<2xf32>
  return %0 : tensor<2xf32>
}`;

describe("programs of files", () => {
  test.each([
    ["evaluator", { stepLimit: 1000 }],
    ["evaluator", { timeLimit: 50 }],
    ["simulator", { stepLimit: 20 }],
    ["simulator", { timeLimit: 50 }],
  ] as const)("one that never ends is stopped on the %s by %j", async (device, limits) => {
    const path = file("endless.mlir", endless);
    const { status, outcomes } = await run([path, file("two.mlir", two)], { device, limits });
    expect(status).toBe(1);
    expect(outcomes[0]?.code).toBe("TW3022");
    // A busy machine may take a program that ends for longer than its time.
    if (!("timeLimit" in limits)) expect(outcomes[1]?.ok).toBe(true);
  });

  test("each program of each file is told", async () => {
    const good = file(
      "good.mlir",
      `func.func @main() { return }
// -----
func.func @only() {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  check.expect_eq_const %0, dense<2> : tensor<i32>
  return
}`,
    );
    const { status, outcomes } = await run([good, file("bad.mlir", "func.func @main( {")]);
    expect(status).toBe(1);
    expect(outcomes.map(({ function: name, ok, code }) => [name, ok, code])).toEqual([
      ["main", true, null],
      ["only", false, "TW9502"],
      ["", false, "TW9001"],
    ]);
  });

  test("a part that cannot be read leaves the others of its file as they are", async () => {
    const parts = file("parts.mlir", `${two}\n// -----\nfunc.func @main( {\n// -----\n${two}`);
    const { outcomes } = await run([parts]);
    expect(outcomes.map(({ ok, code }) => [ok, code])).toEqual([
      [true, null],
      [false, "TW9001"],
      [true, null],
    ]);
    expect(outcomes[1]?.message).toContain("parts.mlir:7:");
  });

  test("inputs come from a file, results are compared with one", async () => {
    const program = file("twice.mlir", double);
    const arrays = (out: readonly number[]) =>
      writeNpz({
        in0: fromNumbers(f32, [2], [1, 2]),
        out0: fromNumbers(f32, [2], out),
      });
    const right = file("right.npz", arrays([2, 4]));
    const wrong = file("wrong.npz", arrays([2, 4.5]));
    expect((await run([program], { inputs: right, compare: right })).status).toBe(0);
    const { outcomes } = await run([program], { inputs: right, compare: wrong });
    expect(outcomes[0]?.code).toBe("TW5101");
    expect(outcomes[0]?.message).toContain("element 1 is 4, not 4.5");
    const shifted = file("shifted.npz", writeNpz({ in0: fromNumbers(f32, [2], [1, NaN]) }));
    const other = await run([program], { inputs: shifted, compare: right });
    expect(other.outcomes[0]?.code).toBe("TW5101");
    expect((await run([program])).outcomes[0]?.code).toBe("TW9505");
  });

  test("on the simulator", async () => {
    const program = file(
      "checked.mlir",
      `func.func @main() {
        %x = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
        %y = stablehlo.add %x, %x : tensor<2xf32>
        check.expect_eq_const %y, dense<[2.0, 4.0]> : tensor<2xf32>
        return
      }
// -----
func.func @main() {
        %x = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
        %y = stablehlo.multiply %x, %x : tensor<2xi32>
        check.expect_eq_const %y, dense<[1, 5]> : tensor<2xi32>
        return
      }`,
    );
    const { outcomes } = await run([program], { device: "simulator" });
    expect(outcomes.map(({ code }) => code)).toEqual([null, "TW9502"]);
  });

  test("products of f32 are of the precision that is asked for", async () => {
    const program = file(
      "product.mlir",
      `func.func @main() {
        %x = stablehlo.constant dense<1.0001220703125> : tensor<16x16xf32>
        %y = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
        check.expect_eq_const %y, dense<16.0> : tensor<16x16xf32>
        return
      }`,
    );
    const codeOf = async (matmulPrecision: "f32" | "tf32"): Promise<unknown> =>
      (await run([program], { device: "simulator", matmulPrecision })).outcomes[0]?.code;
    // 1 + 2^-13 is 1 in tf32.
    expect(await codeOf("tf32")).toBe(null);
    expect(await codeOf("f32")).toBe("TW9502");
  });

  test("a program of JAX", async () => {
    const path = (ending: string) =>
      join(repositoryRoot, `test/fixtures/programs/softmax.${ending}`);
    const npz = path("npz");
    expect((await run([path("mlir")], { inputs: npz, compare: npz })).status).toBe(0);
  });
});

describe("plans", () => {
  const planned = (explain: boolean) => ({ explain, target: defaultTarget });

  test("are printed, and nothing runs", async () => {
    let text = "";
    const stdout = { write: (part: string) => (text += part) };
    const output = new Output({ stdout, stderr: stdout, json: false, environment: {} });
    const settings = {
      files: [file("double.mlir", double)],
      device: "evaluator",
      inputs: undefined,
      compare: undefined,
      matmulPrecision: "tf32",
      seed: 1,
      limits: {},
    } as const;
    expect(await runProgramsCommand({ ...settings, plan: planned(true) }, output)).toBe(0);
    expect(text).toContain("plan twice, target sm_90a, matmul precision tf32");
    expect(text).toMatch(/launch add\(arg0\) -> result0 \/\/ .*at least 2\.5 µs, estimated 2\.5/);
    expect(text).toMatch(/launches: at least 2\.5 µs, estimated 2\.5 µs/);
    // The program has no inputs here: to run it would have been refused.
    expect(text).not.toContain("failed");
  });

  test("as data", async () => {
    const { outcomes } = await run([file("planned.mlir", double)], { plan: planned(false) });
    expect(outcomes[0]).toMatchObject({
      ok: true,
      message: "planned",
      launches: [{ kernel: "add", runs: 1, at: { line: 2 } }],
      notes: [],
    });
  });
});

describe("mistakes", () => {
  test("no such file", async () => {
    expect((await run([join(folder, "missing.mlir")])).outcomes[0]?.code).toBe("TW5003");
  });

  test("what cannot be read is told apart from what is not there", async () => {
    const loop = join(folder, "loop.mlir");
    symlinkSync(loop, loop);
    const { outcomes } = await run([loop]);
    expect(outcomes[0]?.code).toBe("TW5016");
    expect(outcomes[0]?.message).toContain(`${loop} cannot be read`);
  });

  test.each([
    ["cut.npz", writeNpz({ in0: fromNumbers(f32, [2], [1, 2]) }).subarray(0, 40)],
    ["text.npz", "in0"],
  ])("arrays of %s are refused by the file's name", async (name, content) => {
    const inputs = file(name, content);
    await expect(run([file("twice.mlir", double)], { inputs })).rejects.toMatchObject({
      code: expect.stringMatching(/^TW01/) as unknown,
      summary: expect.stringContaining(`${inputs}: `) as unknown,
    });
  });

  test("a file without a program does not pass", async () => {
    const { status, outcomes } = await run([file("empty.mlir", "// nothing\n")]);
    expect([status, outcomes[0]?.code]).toEqual([1, "TW9504"]);
  });
});
