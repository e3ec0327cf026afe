/**
 * What `doctor` asks the machine, behind an interface, so that both answers to each question can be
 * tested anywhere.
 */
import { execFile } from "node:child_process";
import process from "node:process";
import { promisify } from "node:util";
import { cacheEntries } from "../cuda/cache/kernel-cache.ts";
import { cacheSettings } from "../cuda/cache/settings.ts";
import { FileStore } from "../cuda/cache/store.ts";
import type { Gpu } from "../cuda/gpu.ts";
import { openGpu } from "../cuda/open.ts";
import { Device } from "../device/device.ts";
import { open } from "../runtime/open.ts";
import type { CheckingDevice } from "../runtime/open-options.ts";
import { hostOf } from "./host.ts";
import type { Host } from "./host.ts";
import { findTool } from "./cuda-toolkit.ts";
import { testLaunch } from "./test-launch.ts";

export interface Tool {
  readonly path: string;
  readonly version: string | undefined;
}

/** The cache of compiled kernels; without a folder it is turned off. */
export interface CacheState {
  readonly folder: string | undefined;
  readonly kernels: number;
  readonly bytes: number;
  readonly limitBytes: number;
  /** Why nothing can be written into the folder. */
  readonly problem?: string | undefined;
}

/** A GPU that was opened, and how a launch on it went. */
export interface GpuTrial {
  readonly gpu: Gpu;
  /** What kernels are compiled for. */
  readonly target: string;
  /** Milliseconds, or what went wrong. */
  readonly launch: number | Error;
}

export interface Probes {
  readonly host: Host;
  readonly platform: string;
  readonly architecture: string;
  readonly findTool: (name: string) => Promise<Tool | undefined>;
  /** Throws where the folder cannot be used. */
  readonly cache: () => CacheState;
  /** Milliseconds that a kernel took; rejects with what went wrong. */
  readonly launch: (device: CheckingDevice | "cpu") => Promise<number>;
  /** Rejects with why there is no GPU to open. */
  readonly tryGpu: () => Promise<GpuTrial>;
}

/** The machine that this runs on. */
export function thisMachine(): Probes {
  return {
    host: hostOf(process),
    platform: process.platform,
    architecture: process.arch,
    findTool: probeTool,
    cache: probeCache,
    launch: async (name) => {
      const device = await open(name);
      try {
        return await testLaunch(device);
      } finally {
        device.dispose();
      }
    },
    tryGpu,
  };
}

async function probeTool(name: string): Promise<Tool | undefined> {
  const path = findTool(name);
  if (path === undefined) return undefined;
  const answer = await promisify(execFile)(path, ["--version"], { timeout: 10_000 }).catch(
    () => undefined,
  );
  return { path, version: /release (\d+(?:\.\d+)*)/.exec(answer?.stdout ?? "")?.[1] };
}

function probeCache(): CacheState {
  const { folder, limitBytes } = cacheSettings();
  if (folder === undefined) return { folder, kernels: 0, bytes: 0, limitBytes };
  const store = new FileStore(folder, limitBytes);
  const problem = store.writeProblem();
  const { kernels, bytes } = cacheEntries(store);
  return { folder, kernels: kernels.length, bytes, limitBytes, problem };
}

async function tryGpu(): Promise<GpuTrial> {
  const backend = await openGpu();
  const device = new Device(backend);
  try {
    const { gpu, target } = backend;
    const launch = await testLaunch(device).catch((error: unknown) =>
      error instanceof Error ? error : new Error(String(error)),
    );
    return { gpu, target: target.name, launch };
  } finally {
    device.dispose();
  }
}
