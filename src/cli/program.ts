/**
 * The grammar of the command line. Parsing only chooses a command with its settings; running it comes
 * after, so that no frame of the parser stands between the user's program and its caller.
 *
 *   ["simulate", "axpy.ts", "--seed", "7"]  ─▶  (output) => simulateCommand({ file: "axpy.ts", seed: 7, … }, output)
 */
import { Argument, Command, InvalidArgumentError, Option } from "commander";
import { dtypeNames } from "../formats/dtype.ts";
import { deviceNames } from "../runtime/open.ts";
import type { DeviceName } from "../runtime/open.ts";
import { defaultTarget, targets } from "../targets/target.ts";
import type { TargetName } from "../targets/target.ts";
import { compileCommand, emitted } from "./commands/compile.ts";
import { doctorCommand } from "./commands/doctor.ts";
import { layoutCommand } from "./commands/layout.ts";
import { placeCommand } from "./commands/place.ts";
import { runCommand } from "./commands/run.ts";
import { simulateCommand } from "./commands/simulate.ts";
import { layoutRequest } from "./layout-request.ts";
import type { LayoutOptions } from "./layout-request.ts";
import type { Output } from "./output.ts";
import { probe, thisMachine } from "./probes.ts";
import type { Dimensions } from "./random-inputs.ts";

/** A command with its settings; gives the exit status. */
export type ChosenCommand = (output: Output) => Promise<number>;

interface CommonOptions {
  readonly kernel?: string;
  readonly dim: Dimensions;
  readonly seed: number;
  readonly target: TargetName;
}

type RunOptions = CommonOptions & { readonly device: DeviceName };
type CompileOptions = CommonOptions & { readonly passes: boolean; readonly out?: string };
type SimulateOptions = CommonOptions & { readonly schedules: number; readonly checks: boolean };

export function buildProgram(version: string, choose: (command: ChosenCommand) => void): Command {
  const program = new Command("tilewright")
    .description("Runs, checks and prints GPU kernels written in TypeScript.")
    .version(version, "--version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .exitOverride()
    .showHelpAfterError("(--help lists what there is)");
  addRun(program, choose);
  addCompile(program, choose);
  addSimulate(program, choose);
  addLayout(program, choose);
  addDoctor(program, choose);
  return program.addHelpText(
    "after",
    examples([
      ["tilewright run axpy.ts", "run the file's main, or its kernels on random inputs"],
      ["tilewright simulate axpy.ts", "look for races and deadlocks under many schedules"],
      ["tilewright compile axpy.ts --emit ir", "print the tile IR"],
      ["tilewright layout axpy.ts", "where the tiles lie, and what moving them costs"],
      ["tilewright doctor", "what this machine has and what will be used"],
    ]) + "\n\nExit status: 0 fine, 1 something was found or failed, 2 the command line is wrong.",
  );
}

function addRun(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("run")
    .summary("run a file's main, or its kernels on random inputs")
    .description(
      "Imports FILE. If it exports main, calls main(device). Otherwise runs every exported kernel on " +
        "seeded random inputs and prints its outputs. A file with neither is a plain script.",
    )
    .addArgument(fileArgument())
    .argument("[arguments...]", "what the program finds in process.argv, after --")
    .addOption(
      new Option("--device <name>", "where to run").choices(deviceNames).default("simulator"),
    )
    .addOption(kernelOption("run this kernel on random inputs, even where there is a main"))
    .addOption(dimensionOption())
    .addOption(seedOption("decides the random inputs"))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright run axpy.ts", "run main, or each kernel"],
        ["tilewright run axpy.ts --kernel axpy --dim n=5000", "one kernel, on 5000 elements"],
        ["tilewright run bench.ts -- --size 512", "pass --size 512 on to the program"],
      ]),
    )
    .action((file: string, programArguments: readonly string[], options: RunOptions) => {
      const { device, kernel, dim: dimensions, seed } = options;
      choose((output) =>
        runCommand({ file, programArguments, device, kernel, dimensions, seed }, output),
      );
    });
}

function addCompile(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("compile")
    .summary("print what a file's kernels compile to")
    .description("Prints every exported kernel of FILE, compiled as far as --emit says.")
    .addArgument(fileArgument())
    .addOption(new Option("--emit <form>", "what to print").choices(emitted).default("ir"))
    .addOption(kernelOption("only this kernel"))
    .option("--no-passes", "as traced, before any pass")
    .addOption(targetOption())
    .option("--out <path>", "write to a file instead of standard output")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright compile axpy.ts --emit ir", "the IR after the passes"],
        ["tilewright compile axpy.ts --no-passes", "the IR as traced"],
        ["tilewright compile gemm.ts --kernel gemm --target sm_80", "does it fit an A100?"],
      ]),
    )
    .action((file: string, options: CompileOptions) => {
      const { kernel, passes, out } = options;
      const target = targets[options.target];
      choose((output) => compileCommand({ file, kernel, passes, target, out }, output));
    });
}

function addSimulate(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("simulate")
    .summary("look for races and deadlocks under many schedules")
    .description(
      "Runs main, or every exported kernel on random inputs, under the fixed schedule and under " +
        "seeded random and adversarial ones, with every check of the simulator. Prints each finding " +
        "once and exits with status 1 if there is any.",
    )
    .addArgument(fileArgument())
    .addOption(kernelOption("only this kernel, on random inputs, even where there is a main"))
    .addOption(dimensionOption())
    .addOption(seedOption("the first schedule's seed; also decides the random inputs"))
    .addOption(
      new Option("--schedules <count>", "how many schedules besides the fixed one")
        .argParser(parseCount)
        .default(20),
    )
    .option("--no-checks", "only run; do not look for races and the like")
    .addOption(targetOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright simulate axpy.ts", "21 schedules"],
        ["tilewright simulate axpy.ts --schedules 500", "a longer search"],
        ["tilewright simulate axpy.ts --seed 7 --schedules 1", "the schedule of seed 7 again"],
        ["tilewright simulate axpy.ts --json", "findings as data, for an editor or a CI job"],
      ]),
    )
    .action((file: string, options: SimulateOptions) => {
      const { kernel, dim: dimensions, seed, schedules, checks } = options;
      const target = targets[options.target];
      choose((output) =>
        simulateCommand({ file, kernel, dimensions, seed, schedules, checks, target }, output),
      );
    });
}

function addLayout(program: Command, choose: (command: ChosenCommand) => void): void {
  const command: Command = program
    .command("layout")
    .summary("where tiles lie: of a file's kernels, or of layouts given by hand")
    .description(
      "Places every exported kernel of FILE: prints the layout of each tile, the instructions that " +
        "were chosen, each conversion with its cost, and shared memory. Without FILE, draws a register layout on a tile, a tile before and after its layout changes, or the banks " +
        "of a tile in shared memory with the conflicts of an access. A register layout is given by " +
        "its text or its name.",
    )
    .argument("[file]", "a TypeScript or JavaScript module")
    .addOption(kernelOption("only this kernel of the file"))
    .addOption(targetOption())
    .option("--register <layout>", "the register layout of a tile, or of who accesses --shared")
    .option("--to <layout>", "the register layout that the tile changes to")
    .option("--shared <layout>", "a layout of shared memory, such as shared(swizzle 128)")
    .addOption(new Option("--shape <extents>", "the tile").argParser(parseShape))
    .addOption(
      new Option("--dtype <name>", "the format of elements").choices(dtypeNames).default("f32"),
    )
    .addOption(
      new Option(
        "--vector-bytes <count>",
        "what a lane moves at a time; else what it can",
      ).argParser(parseVectorBytes),
    )
    .option("--svg <path>", "write drawings: a folder with FILE, else a file")
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright layout matmul.ts --svg drawings", "place the kernels, draw every layout"],
        ["tilewright layout --register wgmma --shape 64x16", "by name"],
        ['tilewright layout --register "(L0 L1 L2 | R0 L3 L4)" --shape 8x8', "by text"],
        ["tilewright layout --register wgmma --to tmemNative --shape 64x8", "before and after"],
        [
          'tilewright layout --shared "shared(swizzle 128)" --shape 64x64 --dtype bf16 --register wgmma',
          "banks and conflicts",
        ],
      ]),
    );
  command.action((file: string | undefined, options: LayoutOptions) => {
    const request = layoutRequest(file, options);
    if (typeof request === "string") command.error(`error: ${request}`);
    choose((output) =>
      request.kind === "file"
        ? placeCommand(request, options.svg, output)
        : layoutCommand(request, options.svg, output),
    );
  });
}

function addDoctor(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("doctor")
    .summary("what this machine has and what will be used")
    .description("Lists Node, driver, GPU and tools, and says what open() will use and why.")
    .addOption(jsonOption())
    .addHelpText("after", examples([["tilewright doctor --json", "the same as data"]]))
    .action(() => {
      choose((output) => doctorCommand(probe(thisMachine()), output));
    });
}

function fileArgument(): Argument {
  return new Argument("<file>", "a TypeScript or JavaScript module");
}

function jsonOption(): Option {
  return new Option("--json", "print one JSON document on standard output");
}

function kernelOption(description: string): Option {
  return new Option("--kernel <name>", description);
}

function seedOption(description: string): Option {
  return new Option("--seed <number>", description).argParser(parseCount).default(1);
}

function targetOption(): Option {
  return new Option("--target <name>", "the GPU whose limits hold")
    .choices(Object.keys(targets))
    .default(defaultTarget.name);
}

function dimensionOption(): Option {
  return new Option("--dim <name=extent>", "the extent of a named dimension; may be repeated")
    .argParser(parseDimension)
    .default({}, "1000 each, rounded up to the promised multiple");
}

/** A whole number that is exact, from zero up. */
export function parseCount(text: string): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new InvalidArgumentError("It must be a whole number from 0 up.");
}

/** Extents with x between them. */
export function parseShape(text: string): readonly number[] {
  const extents = text.split("x").map(Number);
  if (/^\d+(x\d+)*$/.test(text) && extents.every((extent) => extent >= 1)) return extents;
  throw new InvalidArgumentError("It must look like 64x16.");
}

function parseVectorBytes(text: string): number {
  const count = Number(text);
  if (["1", "2", "4", "8", "16"].includes(text)) return count;
  throw new InvalidArgumentError("It must be 1, 2, 4, 8 or 16.");
}

export function parseDimension(text: string, before: Dimensions): Dimensions {
  const [, name, extent] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  if (name === undefined || extent === undefined)
    throw new InvalidArgumentError("It must look like n=1000.");
  if (Object.hasOwn(before, name)) throw new InvalidArgumentError(`${name} is given twice.`);
  return { ...before, [name]: parseCount(extent) };
}

function examples(rows: readonly (readonly [command: string, purpose: string])[]): string {
  const width = Math.max(...rows.map(([command]) => command.length));
  const lines = rows.map(([command, purpose]) => `  ${command.padEnd(width)}  ${purpose}`);
  return ["\nExamples:", ...lines].join("\n");
}
