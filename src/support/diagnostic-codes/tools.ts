/** Codes of the command line and the test helpers: TW5xxx. */
import { registerCodes } from "./entry.ts";

export const toolCodes = registerCodes({
  TW5001: {
    title: "no kernel in the file",
    cause: "The module exports nothing that tilewright can run.",
    example: "tilewright compile empty.ts",
    remedy: "export a kernel made with `kernel(...)`",
  },
  TW5002: {
    title: "TypeScript that cannot be erased",
    cause:
      "Types are erased before a file runs. The file has a syntax error, or uses TypeScript syntax that would have to be compiled: an enum, a namespace, a parameter property.",
    example: "enum Mode { fast }",
    remedy: "use syntax that disappears with the types, such as a union of string literals",
  },
  TW5003: {
    title: "no such file",
    cause: "The path named on the command line leads to no file.",
    example: "tilewright run missing.ts",
    remedy: "check the path; it is relative to the working directory",
  },
  TW5004: {
    title: "file of another kind",
    cause: "Only TypeScript and JavaScript modules can be imported.",
    example: "tilewright run kernel.py",
    remedy: "give a file whose name ends in .ts, .mts, .js, .mjs or .cjs",
  },
  TW5005: {
    title: "no kernel of this name in the file",
    cause: "Neither an export nor a kernel of the file has the name given with --kernel.",
    example: "tilewright compile axpy.ts --kernel apxy",
    remedy: "use one of the names that the message lists",
  },
  TW5006: {
    title: "dimension that nothing takes",
    cause:
      "--dim gives a value to a dimension that none of the kernels to run has; `main` chooses its own sizes.",
    example: "tilewright run axpy.ts --kernel axpy --dim m=8",
    remedy: "use the names given to dim(...), and --kernel where the file exports main",
  },
  TW5007: {
    title: "command line not understood",
    cause: "A command, an option or its value is not one that tilewright knows.",
    example: "tilewright simulate axpy.ts --schedules many",
    remedy: "see tilewright --help, or --help after a command",
  },
  TW5008: {
    title: "file cannot be written",
    cause: "The system refused to write the output file.",
    example: "tilewright compile axpy.ts --emit ptx --out axpy.ts",
    remedy: "give a path that may be written to, and that no file stands in the way of",
  },
  TW5009: {
    title: "no assembler for a cubin",
    cause:
      "A cubin is made by ptxas, which comes with the CUDA toolkit. Kernels run without it: the driver assembles PTX by itself.",
    example: "tilewright compile axpy.ts --emit cubin --out kernels",
    remedy: "install the CUDA toolkit, or compile with --emit ptx, which needs no tool",
  },
  TW5010: {
    title: "kernel refused by ptxas",
    cause: "The assembler of the CUDA toolkit could not assemble the kernel's PTX.",
    example:
      "tilewright compile axpy.ts --emit cubin --target sm_100a  # with a toolkit before 12.8",
    remedy:
      "read the assembler's lines in the report; use a toolkit that knows the target, or --emit ptx",
  },
  TW5011: {
    title: "data file that does not fit",
    cause: "The file of an --arg is not there, or does not have the bytes of the array.",
    example: 'tilewright emulate axpy.ptx --block 128 --arg "f32[1024]:short.bin"',
    remedy: "give a file with as many bytes as the elements have in memory, or random or zeros",
  },
  TW5012: {
    title: "ptxas takes too long",
    cause:
      "The assembler did not finish in time. Its work grows faster than a kernel's instructions, and tiles of which a thread holds hundreds of registers of make very many of them.",
    example: "tilewright report huge.ts --timeout 10",
    remedy: "make the tiles smaller, or give ptxas more seconds with --timeout",
  },
  TW5013: {
    title: "device that does not run this kind of file",
    cause:
      "The evaluator runs programs of StableHLO; kernels in TypeScript files run on the simulator, the emulator or a GPU.",
    example: "tilewright run axpy.ts --device evaluator",
    remedy: "leave --device out, or name a device that runs files of this kind",
  },
  TW5014: {
    title: "file with nothing to tune",
    cause:
      "`tilewright tune` measures the operations that a file exports and that have something to choose: those of tunable(…), and those of the library without a configuration.",
    example: "tilewright tune axpy.ts --case n=1000",
    remedy: "export what tunable(…) gives, or an operation of tilewright/kernels",
  },
  TW5015: {
    title: "nothing to profile",
    cause:
      "--profile shows the scopes of kernels that a program runs or launches. Kernels that are bound, compiled ahead of time or part of an operation have none.",
    example: "tilewright run axpy.ts --profile axpy.svg // a kernel without scopes",
    remedy: 'put profile("name", () => …) around parts of the kernel',
  },
  TW5016: {
    title: "file that cannot be read",
    cause:
      "There is something under the path named on the command line, and the system does not let it be read, or it is no plain file where a module must be one.",
    example: "tilewright run step.mlir --inputs step.npz  # of another user, who alone may read it",
    remedy: "give a file that may be read, or the right to read this one",
  },
  TW5017: {
    title: "file that does nothing",
    cause:
      "The file exports functions, arrays or other values, none of which `tilewright run` can run by itself: it calls main(device), and runs kernels and operations. Its own lines printed nothing, so nobody would see that anything ran.",
    example: "export const step = jit((x) => mul(x, 2))   // nobody calls it",
    remedy: "export async function main(device) { … } that calls it and prints what it gives",
  },
  TW5018: {
    title: "Node too old for the command line",
    cause: "Files are loaded through hooks of Node's, which this version does not have yet.",
    example: "tilewright run axpy.ts with Node 20.0",
    remedy: "use Node 20.6 or later",
  },
  TW5019: {
    title: "TypeScript of a package",
    cause:
      "Deno erases types itself, without asking the hooks by which the command line loads files, and refuses to do so for files in node_modules, such as the package's own examples.",
    example: "deno run -A npm:tilewright compile node_modules/tilewright/examples/axpy.ts",
    remedy: "copy the file out of node_modules, or run the command with Node.js or Bun",
  },
  TW5101: {
    title: "result differs from its reference",
    cause: "Elements lie further from the reference than the arithmetic allows.",
    example: "compareWithReference(out, (index) => ({ value: wanted[index], bound: 0 }))",
    remedy:
      "look at the worst elements first: whole rows or tiles point at indexing, scattered ones at rounding",
  },
  TW5102: {
    title: "result depends on the schedule",
    cause:
      "Two interleavings of the same kernel gave different bits although no race was found, as atomic updates of floats do.",
    example: "out.atomicAdd(partial); // floats added in the order the blocks arrive",
    remedy: "order the updates, or pass { deterministic: false } and compare within a bound",
  },
  TW5103: {
    title: "derivative that is not the slope",
    cause:
      "checkMeaning compares the derivative of a kernel's meaning with differences of the meaning's values in float64. They differ where a function within it has a derivative of its own, or none, that is not that of its values.",
    example:
      "fromKernel(scale, (x) => mul(stopGradient(x), 2))   // its derivative is 0, its slope 2",
    remedy:
      "mend customVjp or stopGradient in the meaning, or pass { derivatives: false } where that is meant",
  },
});
