/**
 * What `doctor` asks the machine, behind an interface, so that both answers to each question can be
 * tested anywhere. Every probe takes silence for "no".
 */
import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

export interface Tool {
  readonly path: string;
  readonly version: string | undefined;
}

export interface Probes {
  readonly nodeVersion: string;
  readonly platform: string;
  readonly architecture: string;
  /** The path of the driver's library. */
  readonly findDriverLibrary: () => string | undefined;
  readonly readDriverVersion: () => string | undefined;
  /** Names of the GPUs, as the driver gives them. */
  readonly listGpus: () => Promise<readonly string[]>;
  readonly findPtxas: () => Promise<Tool | undefined>;
  readonly hasPackage: (name: string) => boolean;
}

/** What the probes themselves look at. */
export interface Machine {
  readonly nodeVersion: string;
  readonly platform: string;
  readonly architecture: string;
  readonly environment: { readonly [name: string]: string | undefined };
  readonly exists: (path: string) => boolean;
  readonly readText: (path: string) => string | undefined;
  /** What a program prints; undefined where it is missing or fails. */
  readonly run: (program: string, parameters: readonly string[]) => Promise<string | undefined>;
  readonly resolvePackage: (name: string) => string | undefined;
}

const linuxFolders = [
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/usr/lib64",
  "/usr/lib",
  "/lib/x86_64-linux-gnu",
  "/usr/lib/wsl/lib",
  "/usr/local/nvidia/lib64",
  "/run/opengl-driver/lib",
];

export function probe(machine: Machine): Probes {
  const { nodeVersion, platform, architecture } = machine;
  return {
    nodeVersion,
    platform,
    architecture,
    findDriverLibrary: () => driverPaths(machine).find(machine.exists),
    readDriverVersion: () =>
      /(?:Kernel Module|x86_64|aarch64)\s+(\d+(?:\.\d+)+)/.exec(
        machine.readText("/proc/driver/nvidia/version") ?? "",
      )?.[1],
    listGpus: () => listGpus(machine),
    findPtxas: () => findPtxas(machine),
    hasPackage: (name) => machine.resolvePackage(name) !== undefined,
  };
}

function driverPaths({ platform, environment }: Machine): readonly string[] {
  if (platform === "win32")
    return [`${environment["SystemRoot"] ?? "C:\\Windows"}\\System32\\nvcuda.dll`];
  const named = (environment["LD_LIBRARY_PATH"] ?? "").split(":").filter((folder) => folder !== "");
  return [...named, ...linuxFolders].map((folder) => `${folder}/libcuda.so.1`);
}

async function listGpus(machine: Machine): Promise<readonly string[]> {
  const answer = await machine.run("nvidia-smi", ["--query-gpu=name", "--format=csv,noheader"]);
  return (answer ?? "")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

async function findPtxas(machine: Machine): Promise<Tool | undefined> {
  const { environment, platform } = machine;
  const file = platform === "win32" ? "ptxas.exe" : "ptxas";
  const folders = (environment["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  for (const home of [environment["CUDA_HOME"], environment["CUDA_PATH"]])
    if (home !== undefined) folders.push(join(home, "bin"));
  const path = folders.map((folder) => join(folder, file)).find(machine.exists);
  if (path === undefined) return undefined;
  const answer = await machine.run(path, ["--version"]);
  return { path, version: /release (\d+(?:\.\d+)*)/.exec(answer ?? "")?.[1] };
}

/** The machine that this runs on. */
export function thisMachine(): Machine {
  return {
    nodeVersion: process.version,
    platform: process.platform,
    architecture: process.arch,
    environment: process.env,
    exists: existsSync,
    readText: (path) => attempt(() => readFileSync(path, "utf8")),
    run: async (program, parameters) => {
      try {
        return (await promisify(execFile)(program, parameters, { timeout: 10_000 })).stdout;
      } catch {
        return undefined;
      }
    },
    resolvePackage: (name) => attempt(() => createRequire(import.meta.url).resolve(name)),
  };
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
