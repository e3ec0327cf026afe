/**
 * The tools of the CUDA toolkit, as far as they are installed: the assembler, which makes machine code and
 * tells what a kernel takes of a GPU, and the disassemblers. Nothing needs them to run kernels.
 *
 *   ptxas info    : Used 168 registers, used 4 barriers                 Usage.registers, barriers
 *       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads   Usage.spillStores, spillLoads
 *   ptxas info    : (C7510) Potential Performance Loss: wgmma …          Usage.warnings
 */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix, win32 } from "node:path";
import process from "node:process";
import { environmentValues } from "../cuda/environment.ts";
import { usageIn } from "../ptx/notes/assembler-notes.ts";
import type { Usage } from "../ptx/notes/assembler-notes.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";

/** Where programs are looked for. */
export interface Surroundings {
  readonly platform: string;
  readonly environment: { readonly [name: string]: string | undefined };
  readonly exists: (path: string) => boolean;
}

/** The path of a program of the toolkit: on PATH, or in the folder that CUDA_HOME or CUDA_PATH names. */
export function findTool(
  name: string,
  { platform, environment, exists }: Surroundings = thisProcess(),
): string | undefined {
  const [file, paths] = platform === "win32" ? [`${name}.exe`, win32] : [name, posix];
  const folders = (environment["PATH"] ?? "").split(paths.delimiter).filter((each) => each !== "");
  for (const home of [environment["CUDA_HOME"], environment["CUDA_PATH"]])
    if (home !== undefined) folders.push(paths.join(home, "bin"));
  return folders.map((folder) => paths.join(folder, file)).find(exists);
}

function thisProcess(): Surroundings {
  const environment = environmentValues(["PATH", "CUDA_HOME", "CUDA_PATH"]);
  return { platform: process.platform, environment, exists: existsSync };
}

/** PTX for one target. */
export interface Source {
  /** The kernel's name, for reports. */
  readonly name: string;
  readonly target: string;
  readonly ptx: string;
}

export interface AssembledKernel {
  readonly cubin: Uint8Array;
  readonly log: string;
  readonly usage: Usage;
}

/** The assembler; undefined where none is installed. */
export type Assembler = (source: Source) => Promise<AssembledKernel>;

/** With a limit in seconds, an assembler that takes longer is stopped (TW5012). */
export function findAssembler(limit?: number): Assembler | undefined {
  const path = findTool("ptxas");
  return path === undefined ? undefined : (source) => assemble(path, source, limit);
}

/** The assembler where there is no doing without it. */
export function requireAssembler(): Assembler {
  const assembler = findAssembler();
  if (assembler !== undefined) return assembler;
  throw new TilewrightError({
    code: "TW5009",
    message: "ptxas, which makes a cubin, is not installed",
    location: unknownLocation,
    expected: "ptxas on PATH, or in the bin folder of CUDA_HOME",
    found: "none",
  });
}

function assemble(
  ptxas: string,
  { name, target, ptx }: Source,
  limit: number | undefined,
): Promise<AssembledKernel> {
  return inFolder(async (folder) => {
    const [source, result] = [join(folder, "kernel.ptx"), join(folder, "kernel.cubin")];
    writeFileSync(source, ptx);
    const parameters = ["-v", "--generate-line-info", `-arch=${target}`, "-o", result, source];
    const { status, text, stopped } = await runTool(ptxas, parameters, limit);
    if (stopped)
      throw new TilewrightError({
        code: "TW5012",
        message: `ptxas did not finish kernel ${name} for ${target}`,
        location: unknownLocation,
        expected: `at most ${limit} seconds`,
        found: `${ptx.split("\n").length} lines of PTX`,
      });
    const log = text.replaceAll(source, `${name}.ptx`);
    if (status === 0) return { cubin: readFileSync(result), log, usage: usageIn(log) };
    throw new TilewrightError({
      code: "TW5010",
      message: `ptxas refused kernel ${name} for ${target}`,
      location: unknownLocation,
      expected: "PTX that this version of ptxas assembles",
      found: log.trim(),
    });
  });
}

/** Machine code as text; undefined where no disassembler is installed, or none can read it. */
export function disassemble(cubin: Uint8Array): Promise<string | undefined> {
  return inFolder(async (folder) => {
    const path = join(folder, "kernel.cubin");
    writeFileSync(path, cubin);
    for (const [name, ...parameters] of [
      ["nvdisasm", "-g", path],
      ["cuobjdump", "-sass", path],
    ]) {
      const tool = name === undefined ? undefined : findTool(name);
      const ran = tool === undefined ? undefined : await runTool(tool, parameters);
      if (ran?.status === 0) return ran.text;
    }
    return undefined;
  });
}

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "tilewright-toolkit-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Ran {
  readonly status: number;
  /** Whether it ran out of time. */
  readonly stopped: boolean;
  readonly text: string;
}

const mostOutput = 2 ** 28;

function runTool(path: string, parameters: readonly string[], limit = 0): Promise<Ran> {
  const settings = { maxBuffer: mostOutput, timeout: 1000 * limit, killSignal: "SIGKILL" } as const;
  return new Promise((resolve) => {
    execFile(path, parameters, settings, (error, stdout, stderr) => {
      const stopped = limit > 0 && error?.killed === true;
      const status = error === null ? 0 : typeof error.code === "number" ? error.code : 1;
      const text = `${stdout}${stderr}`;
      resolve({ status, stopped, text: text === "" ? (error?.message ?? "") : text });
    });
  });
}
