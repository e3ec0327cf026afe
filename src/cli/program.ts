/**
 * The grammar of the command line. Parsing only chooses a command with its settings; running it comes
 * after, so that no frame of the parser stands between the user's program and its caller. A command's
 * module is loaded when it is chosen: help and mistakes need none of the compiler.
 *
 *   ["simulate", "axpy.ts", "--seed", "7"]  ─▶  (output) => simulateCommand({ file: "axpy.ts", seed: 7, … }, output)
 */
import { Argument, Command, Option } from "commander";
import { dtypeNames } from "../formats/dtype.ts";
import { leastRounds } from "../bench/statistics.ts";
import { checkingDevices, deviceNames } from "../runtime/open-options.ts";
import type { CheckingDevice, DeviceName } from "../runtime/open-options.ts";
import type { Target } from "../targets/target.ts";
import { parseArgument } from "./launch-arguments.ts";
import type { LaunchArgument } from "./launch-arguments.ts";
import { layoutRequest } from "./layout-request.ts";
import type { LayoutOptions } from "./layout-request.ts";
import {
  cacheActions,
  dimensionOption,
  dumpOption,
  emitted,
  examples,
  fileArgument,
  jsonOption,
  kernelOption,
  kernelsOnEvaluator,
  limitOptions,
  parseCase,
  parseCount,
  parseExtents,
  parseFrom,
  parseShape,
  parseTarget,
  parseVectorBytes,
  seedOption,
  targetOption,
  targetsOption,
  timelineExtent,
} from "./options.ts";
import type { CacheAction, Emitted, LimitOptions } from "./options.ts";
import type { Output } from "./output.ts";
import { chosenPlan, withProgramOptions } from "./stablehlo-options.ts";
import type { ProgramOptions } from "./stablehlo-options.ts";
import type { Dimensions } from "./random-inputs.ts";

/** A command with its settings; gives the exit status. */
export type ChosenCommand = (output: Output) => Promise<number>;

interface RunOptions extends LimitOptions, ProgramOptions {
  readonly device?: DeviceName | "evaluator";
  readonly inputs?: string;
  readonly compare?: string;
  readonly kernel?: string;
  readonly dim: Dimensions;
  readonly seed: number;
  readonly dump?: string;
  readonly profile?: string;
}

interface CompileOptions {
  readonly emit: Emitted;
  readonly kernel?: string;
  readonly passes: boolean;
  readonly target: readonly Target[];
  readonly out?: string;
  readonly dump?: string;
}

interface ReportOptions {
  readonly kernel?: string;
  readonly target: readonly Target[];
  readonly svg?: string;
  readonly timeline: boolean;
  readonly dim: Dimensions;
  readonly timeout: number;
}

interface SimulateOptions extends LimitOptions {
  readonly device: CheckingDevice;
  readonly kernel?: string;
  readonly dim: Dimensions;
  readonly seed: number;
  readonly schedules: number;
  readonly checks: boolean;
  readonly target: Target;
}

interface EmulateOptions extends LimitOptions {
  readonly entry?: string;
  readonly grid?: Extents;
  readonly block?: Extents;
  readonly cluster?: number;
  readonly shared: number;
  readonly arg: readonly LaunchArgument[];
  readonly seed: number;
  readonly checks: boolean;
  readonly target?: Target;
  readonly print?: number;
  readonly out?: string;
}

type Extents = readonly [number, number?, number?];

const argumentHelp = `
Values of --arg:
  1024                          a number, by the parameter's type
  f32:0.5                       a number of a format, for a parameter that is only bits (.b32)
  null                          a pointer to nothing
  "f32[1024]"                   an array that nothing has written: an output
  "f32[64,64]:random"           an array of random numbers; :zeros; :FILE for what a file holds
  "map:64x8,swizzle=128:bf16[64,256]:random"    a tensor map of an array; its box is innermost first
  bytes:FILE                    a structure by value
  name=VALUE                    any of them, with a name for reports`;

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
  addEmulate(program, choose);
  addLayout(program, choose);
  addReport(program, choose);
  addTune(program, choose);
  addCache(program, choose);
  addDoctor(program, choose);
  return program.addHelpText(
    "after",
    examples([
      ["tilewright run axpy.ts", "run the file's main, or its kernels on random inputs"],
      ["tilewright simulate axpy.ts", "look for races and deadlocks under many schedules"],
      ["tilewright compile axpy.ts --emit ptx", "print the PTX"],
      ["tilewright emulate kernel.ptx", "run PTX of any compiler, without a GPU"],
      ["tilewright layout axpy.ts", "where the tiles lie, and what moving them costs"],
      ["tilewright report axpy.ts", "registers, occupancy, vector widths and more, by line"],
      ["tilewright tune gemm.ts --case m=4096", "measure what its operations can choose"],
      ["tilewright doctor", "what this machine has and what will be used"],
    ]) + "\n\nExit status: 0 fine, 1 something was found or failed, 2 the command line is wrong.",
  );
}

function addRun(program: Command, choose: (command: ChosenCommand) => void): void {
  const [timeLimitOption, stepLimitOption] = limitOptions();
  const command: Command = withProgramOptions(program.command("run"))
    .summary("run a file's main, or its kernels on random inputs")
    .description(
      "Imports FILE. If it exports main, calls main(device). Otherwise runs every exported kernel and operation " +
        "on seeded random inputs and prints its outputs. A file with neither is a plain script. Files that end " +
        "in .mlir are programs of StableHLO: @main, or the only function, of each of them runs.",
    )
    .addArgument(fileArgument())
    .argument("[arguments...]", "what the program finds in process.argv, after --")
    .addOption(
      new Option(
        "--device <name>",
        "where to run; unless given, kernels run on the simulator, and programs on the GPU, or on the CPU where there is none",
      ).choices([...deviceNames, "evaluator"]),
    )
    .addOption(kernelOption("run this kernel on random inputs, even where there is a main"))
    .addOption(dimensionOption())
    .addOption(seedOption("decides the random inputs, and what happens first off a GPU"))
    .addOption(timeLimitOption)
    .addOption(stepLimitOption)
    .addOption(dumpOption())
    .option(
      "--profile <file>",
      "write how long profile scopes took, as .svg, or as .json for Perfetto",
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright run axpy.ts", "run main, or each kernel"],
        ["tilewright run axpy.ts --kernel axpy --dim n=5000", "one kernel, on 5000 elements"],
        ["tilewright run axpy.ts --device gpu --dump stages", "on a GPU, keeping every stage"],
        ["tilewright run softmax.ts --profile softmax.svg", "how long its profile scopes took"],
        ["tilewright run bench.ts -- --size 512", "pass --size 512 on to the program"],
        ["tilewright run f.mlir --inputs f.npz --compare f.npz", "a program that JAX printed"],
        ["tilewright run f.mlir --plan --explain", "where its time would go on a GPU"],
      ]),
    );
  command.action((file: string, programArguments: readonly string[], options: RunOptions) => {
    const { kernel, dim: dimensions, seed, dump, inputs, compare, profile } = options;
    const { matmulPrecision, timeLimit, stepLimit, ranks } = options;
    const limits = { timeLimit, stepLimit };
    const isProgram = file.endsWith(".mlir");
    const plan = chosenPlan(command, options, isProgram);
    if (profile !== undefined && !/\.(?:svg|json)$/.test(profile))
      command.error("error: --profile writes files that end in .svg or .json");
    // An option that would do nothing is a mistake: nobody should take what was not compared for equal.
    const [others, kind] = isProgram
      ? [{ profile, dump, kernel, dim: Object.keys(dimensions)[0] }, "kernels"]
      : [
          { inputs, compare, plan, ranks, "matmul-precision": matmulPrecision },
          "programs of StableHLO",
        ];
    for (const [name, value] of Object.entries(others))
      if (value !== undefined) command.error(`error: --${name} goes with ${kind}`);
    if (isProgram) {
      const { device } = options;
      if (device === "evaluator" && matmulPrecision !== undefined && plan === undefined)
        command.error("error: --matmul-precision goes with devices: the evaluator is exact");
      const files = [file, ...programArguments];
      choose(async (output) => {
        const { runProgramsCommand } = await import("./commands/run-programs.ts");
        const settings = { files, device, ranks, inputs, compare, seed, limits };
        const chosen = { matmulPrecision: matmulPrecision ?? "f32", plan } as const;
        return runProgramsCommand({ ...settings, ...chosen }, output);
      });
      return;
    }
    const { device = "simulator", target } = options;
    if (target !== undefined && device !== "simulator" && device !== "emulator")
      command.error(`error: --target goes with the simulator and the emulator, not ${device}`);
    choose(async (output) => {
      if (device === "evaluator") throw kernelsOnEvaluator(file);
      const { runCommand } = await import("./commands/run.ts");
      const chosen = { device, target, kernel, dimensions, seed, dump, profile, limits };
      return runCommand({ file, programArguments, ...chosen }, output);
    });
  });
}

function addCompile(program: Command, choose: (command: ChosenCommand) => void): void {
  const command: Command = program
    .command("compile")
    .summary("compile a file's kernels, as far as wanted, for any GPU")
    .description(
      "Compiles every exported kernel of FILE as far as --emit says, for each target, and prints it or " +
        "writes it into a folder. PTX and cubins come with a JSON file that says what a launch needs: " +
        "loadKernel() reads them back. No GPU is needed; a cubin takes ptxas.",
    )
    .addArgument(fileArgument())
    .addOption(new Option("--emit <form>", "how far to compile").choices(emitted).default("ir"))
    .addOption(kernelOption("only this kernel"))
    .option("--no-passes", "IR as traced, before any pass")
    .addOption(targetsOption())
    .option("--out <folder>", "write files into this folder instead of printing")
    .addOption(dumpOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright compile axpy.ts --emit ir", "the IR after the passes"],
        ["tilewright compile axpy.ts --no-passes", "the IR as traced"],
        ["tilewright compile gemm.ts --emit placement --target sm_80", "does it fit an A100?"],
        [
          "tilewright compile axpy.ts --emit cubin --target sm_90a,sm_100a --out kernels",
          "ahead of time",
        ],
      ]),
    );
  command.action((file: string, options: CompileOptions) => {
    const { emit, kernel, passes, target, out, dump } = options;
    if (emit === "cubin" && out === undefined)
      command.error("error: a cubin cannot be printed: give a folder with --out");
    if (emit !== "ir" && !passes) command.error("error: --no-passes goes with --emit ir");
    choose(async (output) => {
      const { compileCommand } = await import("./commands/compile.ts");
      return compileCommand({ file, emit, kernel, passes, targets: target, out, dump }, output);
    });
  });
}

function addSimulate(program: Command, choose: (command: ChosenCommand) => void): void {
  const [timeLimit, stepLimit] = limitOptions();
  program
    .command("simulate")
    .summary("look for races and deadlocks under many schedules")
    .description(
      "Runs main, or every exported kernel and operation on random inputs, under the fixed schedule and under " +
        "seeded random and adversarial ones, with every check of the simulator; or on the emulator, which " +
        "runs their PTX. Prints each finding once and exits with status 1 if there is any.",
    )
    .addArgument(fileArgument())
    .addOption(
      new Option("--device <name>", "what looks for mistakes, in tiles or in PTX")
        .choices(checkingDevices)
        .default("simulator"),
    )
    .addOption(kernelOption("only this kernel, on random inputs, even where there is a main"))
    .addOption(dimensionOption())
    .addOption(seedOption("the first schedule's seed; also decides the random inputs"))
    .addOption(
      new Option("--schedules <count>", "how many schedules besides the fixed one")
        .argParser(parseCount)
        .default(20),
    )
    .option("--no-checks", "only run; do not look for races and the like")
    .addOption(timeLimit)
    .addOption(stepLimit)
    .addOption(targetOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright simulate axpy.ts", "21 schedules"],
        ["tilewright simulate axpy.ts --schedules 500", "a longer search"],
        ["tilewright simulate axpy.ts --seed 7 --schedules 1", "the schedule of seed 7 again"],
        ["tilewright simulate axpy.ts --device emulator", "the same of its PTX"],
        ["tilewright simulate axpy.ts --json", "findings as data, for an editor or a CI job"],
      ]),
    )
    .action((file: string, options: SimulateOptions) => {
      const { dim: dimensions, kernel, ...settings } = options;
      choose(async (output) => {
        const { simulateCommand } = await import("./commands/simulate.ts");
        return simulateCommand({ ...settings, file, kernel, dimensions }, output);
      });
    });
}

function addEmulate(program: Command, choose: (command: ChosenCommand) => void): void {
  const [timeLimit, stepLimit] = limitOptions();
  program
    .command("emulate")
    .summary("run PTX of any compiler, with checks")
    .description(
      "Runs an entry of a PTX file thread by thread: of nvcc, Triton or any other compiler, for sm_80 to " +
        "sm_90a. Prints races, accesses outside of arrays, deadlocks and what else is wrong, then what the " +
        "kernel wrote, and exits with status 1 if anything was found. With a file alone, lists its entries " +
        "and their parameters.",
    )
    .argument("<file>", "PTX text")
    .option("--entry <name>", "the entry; may be left out where there is one")
    .addOption(new Option("--grid <extents>", "blocks, along x,y,z").argParser(parseExtents))
    .addOption(new Option("--block <extents>", "threads of a block, x,y,z").argParser(parseExtents))
    .addOption(
      new Option(
        "--cluster <count>",
        "blocks of a cluster; else what the entry requires",
      ).argParser(parseCount),
    )
    .addOption(
      new Option("--shared <bytes>", "dynamic shared memory").argParser(parseCount).default(0),
    )
    .addOption(
      new Option("--arg <value>", "a parameter, in order; may be repeated (see below)")
        .argParser(parseArgument)
        .default([], "none"),
    )
    .addOption(seedOption("decides the random arrays, and what happens first"))
    .addOption(timeLimit)
    .addOption(stepLimit)
    .option("--no-checks", "only run; do not look for races and the like")
    .addOption(
      new Option("--target <name>", "the GPU whose limits hold; else the file's").argParser(
        parseTarget,
      ),
    )
    .addOption(
      new Option("--print <count>", "print so many elements of each output").argParser(parseCount),
    )
    .option("--out <folder>", "write each output into this folder, as it lies in memory")
    .addOption(jsonOption())
    .addHelpText("after", argumentHelp)
    .addHelpText(
      "after",
      examples([
        ["tilewright emulate kernel.ptx", "entries and parameters"],
        [
          'tilewright emulate axpy.ptx --grid 4 --block 256 --arg "f32[1000]:random" --arg "out=f32[1000]" --arg 1000',
          "a launch",
        ],
        [
          'tilewright emulate axpy.ptx --block 256 --arg "f32[256]:x.bin" --arg "out=f32[256]" --arg 256 --out results',
          "from files, to files",
        ],
      ]),
    )
    .action((file: string, options: EmulateOptions) => {
      const { entry, grid, block, cluster, target, print, out, arg, ...settings } = options;
      const given = { file, entry, grid, block, cluster, target, print, out, arguments: arg };
      choose(async (output) => {
        const { emulateCommand } = await import("./commands/emulate.ts");
        return emulateCommand({ ...settings, ...given }, output);
      });
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
        "what a thread moves at a time; else what it can",
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
    choose(async (output) => {
      if (request.kind === "file") {
        const { placeCommand } = await import("./commands/place.ts");
        return placeCommand(request, options.svg, output);
      }
      const { layoutCommand } = await import("./commands/layout.ts");
      return layoutCommand(request, options.svg, output);
    });
  });
}

function addReport(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("report")
    .summary("what kernels take of a GPU, by source line")
    .description(
      "Compiles every exported kernel of FILE and says what came of it: registers and spills, shared " +
        "memory, how many blocks run at a time, and for each source line its instructions, how wide its " +
        "accesses to memory are, conversions between layouts, and conflicts of banks.",
    )
    .addArgument(fileArgument())
    .addOption(kernelOption("only this kernel"))
    .addOption(targetsOption())
    .option("--timeline", "who copies, multiplies and waits when, by a model", false)
    .addOption(dimensionOption(timelineExtent))
    .option("--svg <file>", "draw the report")
    .addOption(
      new Option("--timeout <seconds>", "for ptxas, for each kernel and target")
        .argParser(parseCount)
        .default(120),
    )
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright report matmul.ts", "for an H200"],
        ["tilewright report axpy.ts --target sm_80,sm_100a", "for others"],
        ["tilewright report matmul.ts --svg matmul.svg", "as a drawing, too"],
        ["tilewright report gemm.ts --timeline --dim k=1024", "with a launch over time"],
      ]),
    )
    .action((file: string, { kernel, target, svg, timeline, dim, timeout }: ReportOptions) => {
      choose(async (output) => {
        const { reportCommand } = await import("./commands/report.ts");
        return reportCommand(
          { file, kernel, targets: target, svg, timeline, dimensions: dim, timeout },
          output,
        );
      });
    });
}

function addCache(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("cache")
    .summary("the compiled kernels that are kept on disk")
    .description(
      "Lists the compiled kernels that runs on a GPU have kept, removes them, or says where they are. " +
        "TILEWRIGHT_CACHE names another folder, or off; TILEWRIGHT_CACHE_LIMIT the bytes that it may take, such as 500M.",
    )
    .addArgument(new Argument("[action]", "what to do").choices(cacheActions).default("list"))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright cache list", "kernels, with their sizes"],
        ["tilewright cache clear", "remove them all"],
        ["tilewright cache path", "the folder"],
      ]),
    )
    .action((action: CacheAction) => {
      choose(async (output) => {
        const { cacheCommand } = await import("./commands/cache.ts");
        return cacheCommand(action, output);
      });
    });
}

interface TuneOptions {
  readonly case: readonly Dimensions[];
  readonly operation?: string;
  readonly file: string;
  readonly device?: DeviceName;
  readonly seconds?: number;
  readonly rounds?: number;
  readonly workers?: number;
}

function addTune(program: Command, choose: (command: ChosenCommand) => void): void {
  const count = (flags: string, description: string, least: number): Option =>
    new Option(flags, description).argParser(parseFrom(least));
  program
    .command("tune")
    .summary("measure the choices of a file's operations, and keep the results")
    .description(
      "Measures every choice of the operations that FILE exports, for each case, on the GPU: compiled by several " +
        "processes, checked against each other, timed in turns. What the results already have is not measured " +
        "again. Without a GPU choices are ranked by a model. open({ tuning: [FILE] }) or TILEWRIGHT_TUNING=FILE " +
        "makes programs use the results. Ctrl-C ends it in order, with status 130; the same command goes on after it.",
    )
    .addArgument(fileArgument())
    .addOption(
      new Option("--case <sizes>", "sizes to tune for, such as m=4096,n=4096; may be repeated")
        .argParser(parseCase)
        .makeOptionMandatory(),
    )
    .option("--operation <name>", "only this export")
    .option("--file <file>", "where results are kept", "tuning.jsonl")
    .addOption(
      new Option("--device <name>", "where to measure; what there is unless given").choices(
        deviceNames,
      ),
    )
    .addOption(count("--seconds <number>", "start nothing more after so many seconds", 1))
    .addOption(
      count("--rounds <number>", "rounds of the last comparison; 15 unless given", leastRounds),
    )
    .addOption(count("--workers <number>", "processes that compile; as many as processors", 0))
    .addOption(jsonOption())
    .addHelpText(
      "after",
      examples([
        ["tilewright tune mine.ts --case n=4096", "every operation with choices"],
        ["tilewright tune mine.ts --case m=1,n=64 --case m=16,n=64", "two cases"],
        ["tilewright tune mine.ts --case n=4096 --seconds 60 --file h200.jsonl", "a minute of it"],
      ]),
    )
    .action((file: string, options: TuneOptions) => {
      const { case: cases, operation, file: results, device, seconds, rounds, workers } = options;
      choose(async (output) => {
        const { tuneCommand } = await import("./commands/tune.ts");
        const settings = { file, operation, cases, results, device, seconds, rounds, workers };
        return tuneCommand(settings, output);
      });
    });
}

function addDoctor(program: Command, choose: (command: ChosenCommand) => void): void {
  program
    .command("doctor")
    .summary("what this machine has, and whether kernels run on it")
    .description(
      "Lists Node, driver, GPU, tools and the cache, runs a kernel on every device that opens, and says " +
        "what open() will use and why.",
    )
    .addOption(jsonOption())
    .addHelpText("after", examples([["tilewright doctor --json", "the same as data"]]))
    .action(() => {
      choose(async (output) => {
        const [{ doctorCommand }, { thisMachine }] = await Promise.all([
          import("./commands/doctor.ts"),
          import("./doctor-probes.ts"),
        ]);
        return doctorCommand(thisMachine(), output);
      });
    });
}
