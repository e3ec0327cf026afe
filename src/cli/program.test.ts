import { describe, expect, test } from "vitest";
import { targetNames, targets } from "../targets/target.ts";
import { parseCount, parseDimension, parseShape, parseTargets } from "./options.ts";
import { buildProgram } from "./program.ts";

/** Parses a command line; gives whether a command was chosen. */
function choose(...parameters: readonly string[]): boolean {
  let chosen = false;
  const program = buildProgram("1.2.3", () => {
    chosen = true;
  });
  for (const command of [program, ...program.commands])
    command.configureOutput({ writeOut: () => undefined, writeErr: () => undefined });
  program.parse(parameters, { from: "user" });
  return chosen;
}

describe("the grammar", () => {
  test.each([
    [["run", "a.ts"]],
    [["run", "a.ts", "--device", "simulator", "--dim", "n=1", "--dim", "m=2", "--json"]],
    [["run", "a.ts", "--", "--unknown", "x"]],
    [["run", "a.ts", "--device", "gpu", "--dump", "stages"]],
    [["run", "a.mlir", "b.mlir", "--inputs", "a.npz", "--compare", "a.npz", "--json"]],
    [["compile", "a.ts", "--emit", "ir", "--no-passes", "--target", "sm_90a", "--out", "b"]],
    [["compile", "a.ts", "--emit", "cubin", "--target", "sm_90a,sm_100a", "--out", "b"]],
    [["compile", "a.ts", "--emit", "placement", "--dump", "stages"]],
    [["simulate", "a.ts", "--seed", "7", "--schedules", "0", "--no-checks"]],
    [["simulate", "a.ts", "--device", "emulator"]],
    [["emulate", "a.ptx"]],
    [["emulate", "a.ptx", "--grid", "4,2", "--block", "16x8", "--arg", "f32[4]", "--arg", "-1"]],
    [["emulate", "a.ptx", "--cluster", "2", "--shared", "1024", "--no-checks", "--print", "8"]],
    [["report", "a.ts", "--kernel", "k", "--target", "sm_80", "--svg", "a.svg"]],
    [["cache"]],
    [["cache", "clear", "--json"]],
    [["layout", "a.ts", "--kernel", "k", "--target", "sm_90a", "--svg", "drawings"]],
    [["layout", "--register", "wgmma", "--shape", "64x16", "--svg", "a.svg"]],
    [["layout", "--register", "wgmma", "--to", "splat", "--shape", "64"]],
    [
      [
        "layout",
        "--shared",
        "shared()",
        "--register",
        "wgmma",
        "--shape",
        "1",
        "--vector-bytes",
        "8",
      ],
    ],
    [["doctor", "--json"]],
  ])("takes %j", (parameters) => {
    expect(choose(...parameters)).toBe(true);
  });

  test.each([
    [["frobnicate"], "unknown command 'frobnicate'"],
    [["run"], "missing required argument 'file'"],
    [
      ["run", "a.ts", "--device", "abacus"],
      "Allowed choices are gpu, cpu, emulator, simulator, evaluator",
    ],
    [["run", "a.ts", "--compare", "a.npz"], "--compare goes with programs of StableHLO"],
    [["run", "a.ts", "--inputs", "a.npz"], "--inputs goes with programs of StableHLO"],
    [
      ["run", "a.ts", "--matmul-precision", "tf32"],
      "--matmul-precision goes with programs of StableHLO",
    ],
    [
      ["run", "a.mlir", "--device", "gpu", "--matmul-precision", "bf16"],
      "Allowed choices are f32, tf32",
    ],
    [
      ["run", "a.mlir", "--device", "evaluator", "--matmul-precision", "tf32"],
      "--matmul-precision goes with devices",
    ],
    [["run", "a.mlir", "--kernel", "k"], "--kernel goes with kernels"],
    [["run", "a.mlir", "--target", "sm_80"], "--target goes with --plan"],
    [
      ["run", "a.ts", "--target", "sm_100a", "--device", "cpu"],
      "--target goes with the simulator and the emulator, not cpu",
    ],
    [["run", "a.mlir", "--dim", "n=4"], "--dim goes with kernels"],
    [["run", "a.mlir", "--dump", "stages"], "--dump goes with kernels"],
    [["run", "a.mlir", "--profile", "a.svg"], "--profile goes with kernels"],
    [["run", "a.ts", "--unknown"], "unknown option '--unknown'"],
    [["emulate", "a.ptx", "--block", "0"], "It must look like 128 or 16,8,1"],
    [["emulate", "a.ptx", "--grid", "1,2,3,4"], "It must look like 128 or 16,8,1"],
    [["emulate", "a.ptx", "--arg", "f31[4]"], 'It must look like 1024, f32:0.5, null, "f32[1024]"'],
    [["emulate", "a.ptx", "--arg", "map:4,swirl=3:f32[4]"], "It must look like 1024"],
    [["compile", "a.ts", "--emit", "sass"], "Allowed choices are ir, placement, ptx, cubin"],
    [["compile", "a.ts", "--emit", "cubin"], "give a folder with --out"],
    [["compile", "a.ts", "--emit", "ptx", "--no-passes"], "--no-passes goes with --emit ir"],
    [["compile", "a.ts", "--target", "sm_90a,sm_75"], "sm_75 has no cp.async"],
    [["compile", "a.ts", "--target", "sm_90"], "without wgmma and setmaxnreg of sm_90a"],
    [["compile", "a.ts", "--target", "sm_100"], "without tcgen05 and setmaxnreg of sm_100a"],
    [["compile", "a.ts", "--target", "sm_87"], "PTX for sm_80 runs on every later GPU"],
    [["compile", "a.ts", "--target", "hopper"], "It must be the name of a target"],
    [["simulate", "a.ts", "--device", "gpu"], "Allowed choices are simulator, emulator"],
    [["cache", "fill"], "Allowed choices are list, clear, path"],
    [["compile", "a.ts", "--target", "sm_1"], `Allowed choices are ${targetNames.join(", ")}`],
    [["simulate", "a.ts", "--seed", "many"], "It must be a whole number"],
    [["simulate", "a.ts", "--dim", "n=1", "--dim", "n=2"], "n is given twice"],
    [["run", "a.ts", "--dim", "n=2147483648"], "It must be below 2^31"],
    [["layout"], "give a file, --register or --shared"],
    [["layout", "a.ts", "--shape", "64"], "a file, or a layout to draw, not both"],
    [["layout", "--register", "wgmma", "--shape", "1", "--kernel", "k"], "goes with a file"],
    [["layout", "--to", "wgmma", "--shape", "64"], "give a file, --register or --shared"],
    [["layout", "--register", "wgmma"], "give the tile with --shape"],
    [["layout", "--register", "wgmma", "--shape", "64,16"], "It must look like 64x16"],
    [["layout", "--register", "a", "--shape", "1", "--vector-bytes", "4"], "goes with --shared"],
    [
      ["layout", "--shared", "shared()", "--shape", "64", "--vector-bytes", "4"],
      "needs --register",
    ],
    [["layout", "--shared", "shared()", "--shape", "64", "--to", "wgmma"], "--register alone"],
    [
      ["layout", "--shared", "shared()", "--shape", "64", "--vector-bytes", "3"],
      "1, 2, 4, 8 or 16",
    ],
  ])("refuses %j", (parameters, message) => {
    expect(() => choose(...parameters)).toThrow(message);
  });

  test("every command has help with examples", () => {
    const { commands } = buildProgram("1.2.3", () => undefined);
    expect(commands.map((command) => command.name())).toEqual([
      "run",
      "compile",
      "simulate",
      "emulate",
      "layout",
      "report",
      "tune",
      "cache",
      "doctor",
    ]);
    for (const command of commands) {
      let help = "";
      command.configureOutput({ writeOut: (text) => (help += text) });
      command.outputHelp();
      expect(help).toContain(`Usage: tilewright ${command.name()}`);
      expect(help).toContain(`Examples:\n  tilewright ${command.name()}`);
      expect(help).toContain("--json");
    }
  });
});

describe("values of options", () => {
  test.each(["0", "7", "9007199254740991"])("%s is a count", (text) => {
    expect(parseCount(text)).toBe(Number(text));
  });

  test.each(["", "-1", "1.5", "1e3", "0x10", "9007199254740992", "many"])(
    "%j is no count",
    (text) => {
      expect(() => parseCount(text)).toThrow("whole number");
    },
  );

  test("a shape is extents with x between", () => {
    expect(parseShape("64x16")).toEqual([64, 16]);
    expect(parseShape("128")).toEqual([128]);
  });

  test.each(["", "0", "64x", "x64", "64x0", "64 x 16", "-1", "64,16"])("%j is no shape", (text) => {
    expect(() => parseShape(text)).toThrow("It must look like 64x16");
  });

  test("targets have commas between, and each counts once", () => {
    expect(parseTargets("sm_90a, sm_80,sm_90a")).toEqual([targets.sm_90a, targets.sm_80]);
  });

  test("a dimension is a name and an extent", () => {
    expect(parseDimension("n=1000", { m: 8 })).toEqual({ m: 8, n: 1000 });
  });

  test.each(["n", "=5", "n=", "n=x", "n=1=2"])("%j is no dimension", (text) => {
    expect(() => parseDimension(text, {})).toThrow(/must/);
  });
});

test("a kernel on the evaluator, which runs programs, is a mistake", async () => {
  let work: Promise<unknown> | undefined;
  const program = buildProgram("1.2.3", (command) => {
    work = Promise.resolve(command(undefined as never));
  });
  program.parse(["run", "a.ts", "--device", "evaluator"], { from: "user" });
  await expect(work).rejects.toMatchObject({ code: "TW5013" });
});
