/**
 * Compiled kernels on disk. A kernel's file holds its launch plan and names the file with its code, which
 * is addressed by what it was assembled from; kernels that lead to the same PTX share it.
 *
 *   kernel <sha256 of compiler, target, driver, kernel> ──▶ plan ──▶ code <sha256 of target, driver, PTX>
 */
import { createHash } from "node:crypto";
import type { LaunchPlan } from "../../ptx/executable.ts";
import { freezePlan, revivePlan } from "../../ptx/plan-json.ts";
import type { Target } from "../../targets/target.ts";
import type { Assembled } from "../assemble.ts";
import type { FileStore } from "./store.ts";

/** What besides the kernel decides about the code. */
export interface Build {
  readonly target: Target;
  readonly driverVersion: number;
}

export interface CachedKernel extends Assembled {
  readonly plan: LaunchPlan;
}

export class KernelCache {
  readonly #store: FileStore | undefined;
  readonly #compiler: string | undefined;

  /** Without a store nothing is kept; without a compiler's fingerprint only code is. */
  constructor(store: FileStore | undefined, compiler: string | undefined) {
    this.#store = store;
    this.#compiler = compiler;
  }

  /** Everything a launch of this kernel needs. */
  readKernel(text: string, build: Build): CachedKernel | undefined {
    if (this.#store === undefined || this.#compiler === undefined) return undefined;
    const file = this.#store.read(this.#kernelKey(text, build));
    if (file === undefined) return undefined;
    const manifest = file.header as Manifest;
    const code = this.#code(manifest.code);
    return code === undefined ? undefined : { plan: revivePlan(manifest.plan, build), ...code };
  }

  /** What the assembler made of this PTX before. */
  readCode(ptx: string, build: Build): Assembled | undefined {
    return this.#code(codeKey(ptx, build));
  }

  writeKernel(text: string, ptx: string, build: Build, plan: LaunchPlan): void {
    if (this.#store === undefined || this.#compiler === undefined) return;
    const manifest: Manifest = { code: codeKey(ptx, build), plan: freezePlan(plan) };
    this.#store.write(this.#kernelKey(text, build), manifest, new Uint8Array(0));
  }

  writeCode(ptx: string, build: Build, kernel: string, { cubin, warnings }: Assembled): void {
    const header: CodeHeader = { kernel, target: build.target.name, warnings };
    this.#store?.write(codeKey(ptx, build), header, cubin);
  }

  #code(key: string): Assembled | undefined {
    const file = this.#store?.read(key);
    if (file === undefined) return undefined;
    const { warnings } = file.header as CodeHeader;
    return { cubin: file.body, warnings };
  }

  #kernelKey(text: string, { target, driverVersion }: Build): string {
    const build = JSON.stringify([this.#compiler, target, driverVersion]);
    return `kernel-${hash(build, text)}`;
  }
}

/** Code that is kept, as `tilewright cache list` shows it. */
export interface CacheEntry {
  readonly name: string;
  readonly target: string;
  readonly codeBytes: number;
  readonly used: Date;
}

/** What a store holds, most recently used first, and the bytes of all its files. */
export function cacheEntries(store: FileStore): {
  readonly kernels: readonly CacheEntry[];
  readonly bytes: number;
} {
  const files = store.list();
  const kernels = files.flatMap(({ key, used }) => {
    const file = key.startsWith("code-") ? store.peek(key) : undefined;
    if (file === undefined) return [];
    const { kernel: name, target } = file.header as CodeHeader;
    return [{ name, target, codeBytes: file.body.byteLength, used }];
  });
  return { kernels, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
}

interface Manifest {
  readonly code: string;
  readonly plan: unknown;
}

interface CodeHeader {
  readonly kernel: string;
  readonly target: string;
  readonly warnings: readonly string[];
}

function codeKey(ptx: string, { target, driverVersion }: Build): string {
  return `code-${hash(JSON.stringify([target.name, driverVersion]), ptx)}`;
}

function hash(...parts: readonly string[]): string {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(`${part.length} ${part}`);
  return digest.digest("hex");
}
