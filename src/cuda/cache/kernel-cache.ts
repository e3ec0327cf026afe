/**
 * Compiled kernels on disk. A kernel's file holds its launch plan and names the file with its code, which
 * is addressed by its text; kernels that lead to the same PTX share it.
 *
 *   launches <sha256 of compiler, target, driver, what an operation was given>
 *      └──▶ what each is given, and kernel <sha256 of compiler, target, driver, kernel>
 *              └──▶ plan, and code <sha256 of GPU, driver, PTX>
 *
 * Launches of an operation are found without its kernels' being traced.
 *
 * The code's file holds the PTX and what the driver's assembler said of it; the machine code itself is in the
 * driver's own cache, or, where that is turned off, in a file of ours under the same sum. What a file says is checked before it
 * is believed.
 */
import { createHash } from "node:crypto";
import { isFields, isLaunchInputs, isSizes } from "../../device/launch-inputs.ts";
import type { LaunchInputs, ScratchArrays } from "../../device/launch-inputs.ts";
import { dtypeNames, dtypes } from "../../formats/dtype.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import type { InterfaceData } from "../../ptx/compiled-kernel.ts";
import type { LaunchPlan } from "../../ptx/executable.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
import { isNotes } from "../../ptx/notes/note.ts";
import { isKernelData } from "../../ptx/plan-check.ts";
import { freezePlan, revivePlan } from "../../ptx/plan-json.ts";
import type { Target } from "../../targets/target.ts";
import type { FileStore } from "./store.ts";

/** What besides the kernel decides about the code. */
export interface Build {
  readonly target: Target;
  readonly driverVersion: number;
  /** The GPU's compute capability, for which the driver assembles. */
  readonly capability: string;
}

/** PTX, and what the assembler said of it, where that is known. */
export interface KeptCode {
  readonly ptx: string;
  readonly log: string | undefined;
}

/** What the driver's assembler made of PTX, and what that takes of a lane. */
export interface KeptMachineCode {
  /** A cubin. */
  readonly code: Uint8Array;
  readonly registers: number;
  readonly localBytes: number;
}

/** What the compiler made of a kernel besides PTX. */
export interface KeptKernel {
  readonly plan: LaunchPlan;
  readonly notes: readonly PerformanceNote[];
  /** The source lines that the notes speak of; undefined where there are no notes. */
  readonly lines: string | undefined;
}

export type CachedKernel = KeptCode & KeptKernel;

/** A launch of a plan, as far as it is known without its kernel. */
interface PlannedFile extends LaunchInputs {
  readonly kernel: InterfaceData;
}

/** A launch whose kernel is kept under a key. */
export interface CachedLaunch extends PlannedFile {
  readonly key: string;
}

/** A launch whose kernel `text` tells from every other. */
export interface LaunchOfKernel extends PlannedFile {
  readonly text: string;
}

/** A plan of an operation: its launches, and the arrays that only they use. */
interface PlanOf<L> {
  readonly launches: readonly L[];
  readonly scratch: ScratchArrays;
}

/** The same in a file, where formats have names. */
interface PlanFile {
  readonly launches: readonly CachedLaunch[];
  readonly scratch: {
    readonly [name: string]: { readonly dtype: DTypeName; readonly shape: readonly number[] };
  };
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
    return this.readKernelOf(this.#key("kernel", text, build), build);
  }

  /** The same, by the key under which it is kept. */
  readKernelOf(key: string, build: Build): CachedKernel | undefined {
    if (this.#store === undefined || this.#compiler === undefined) return undefined;
    const file = this.#store.read(key);
    if (file === undefined || !isManifest(file.header)) return undefined;
    const plan = revivePlan(file.header.plan, build);
    const code = this.#code(file.header.code, build);
    const { notes, lines } = file.header;
    return plan === undefined || code === undefined ? undefined : { plan, notes, lines, ...code };
  }

  /** What is kept of a plan, by the text that tells it from every other. */
  readPlan(text: string, build: Build): PlanOf<CachedLaunch> | undefined {
    if (this.#store === undefined || this.#compiler === undefined) return undefined;
    const header = this.#store.read(this.#key("launches", text, build))?.header;
    if (!isPlanFile(header)) return undefined;
    const scratch = mapFields(header.scratch, ({ dtype, shape }) => ({
      dtype: dtypes[dtype],
      shape,
    }));
    return { launches: header.launches, scratch };
  }

  writePlan(text: string, build: Build, { launches, scratch }: PlanOf<LaunchOfKernel>): void {
    if (this.#store === undefined || this.#compiler === undefined) return;
    const file: PlanFile = {
      launches: launches.map(({ text: own, ...launch }) => ({
        ...launch,
        key: this.#key("kernel", own, build),
      })),
      scratch: mapFields(scratch, ({ dtype, shape }) => ({ dtype: dtype.name, shape })),
    };
    this.#store.write(this.#key("launches", text, build), file, new Uint8Array(0));
  }

  /** What is known of this PTX from before. */
  readCode(ptx: string, build: Build): KeptCode | undefined {
    return this.#code(codeKey(ptx, build), build);
  }

  writeKernel(text: string, ptx: string, build: Build, kept: KeptKernel): void {
    if (this.#store === undefined || this.#compiler === undefined) return;
    const { plan, notes, lines } = kept;
    const manifest: Manifest = { code: codeKey(ptx, build), plan: freezePlan(plan), notes, lines };
    this.#store.write(this.#key("kernel", text, build), manifest, new Uint8Array(0));
  }

  writeCode(build: Build, kernel: string, { ptx, log }: KeptCode): void {
    const header: CodeHeader = { kernel, target: build.target.name, log };
    this.#store?.write(codeKey(ptx, build), header, new TextEncoder().encode(ptx));
  }

  /** Machine code of this PTX, where the driver itself keeps none. */
  readMachineCode(ptx: string, build: Build): KeptMachineCode | undefined {
    const file = this.#store?.read(machineKey(ptx, build));
    if (file === undefined || !isMachineHeader(file.header)) return undefined;
    const { registers, localBytes } = file.header;
    return { code: file.body, registers, localBytes };
  }

  writeMachineCode(ptx: string, build: Build, kernel: string, kept: KeptMachineCode): void {
    const { code, registers, localBytes } = kept;
    const header: MachineHeader = { kernel, registers, localBytes };
    this.#store?.write(machineKey(ptx, build), header, code);
  }

  #code(key: string, build: Build): KeptCode | undefined {
    const file = this.#store?.read(key);
    if (file === undefined || !isCodeHeader(file.header)) return undefined;
    const ptx = new TextDecoder().decode(file.body);
    return codeKey(ptx, build) === key ? { ptx, log: file.header.log } : undefined;
  }

  #key(of: "kernel" | "launches", text: string, { target, driverVersion }: Build): string {
    const build = JSON.stringify([this.#compiler, target, driverVersion]);
    return `${of}-${hash(build, text)}`;
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
    if (file === undefined || !isCodeHeader(file.header)) return [];
    const { kernel: name, target } = file.header;
    return [{ name, target, codeBytes: file.body.byteLength, used }];
  });
  return { kernels, bytes: files.reduce((sum, { bytes }) => sum + bytes, 0) };
}

interface Manifest extends Omit<KeptKernel, "plan"> {
  readonly code: string;
  readonly plan: unknown;
}

interface CodeHeader {
  readonly kernel: string;
  readonly target: string;
  readonly log: string | undefined;
}

interface MachineHeader {
  readonly kernel: string;
  readonly registers: number;
  readonly localBytes: number;
}

function fieldsOf(header: unknown): { readonly [name: string]: unknown } {
  return typeof header === "object" && header !== null ? { ...header } : {};
}

function isManifest(header: unknown): header is Manifest {
  const { code, notes, lines } = fieldsOf(header);
  const noted = isNotes(notes) && (lines === undefined || typeof lines === "string");
  return noted && typeof code === "string" && /^code-[0-9a-f]{64}$/.test(code);
}

function mapFields<A, B>(
  record: { readonly [name: string]: A },
  change: (value: A) => B,
): { readonly [name: string]: B } {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}

function isPlanFile(header: unknown): header is PlanFile {
  const { launches, scratch } = fieldsOf(header);
  if (!Array.isArray(launches) || launches.length === 0) return false;
  return (
    launches.every(isCachedLaunch) && isFields(scratch) && Object.values(scratch).every(isArray)
  );
}

/** Whether data from a file says what an array holds, and how many of it. */
function isArray(value: unknown): boolean {
  const { dtype, shape } = fieldsOf(value);
  const isFormat = dtypeNames.some((name) => name === dtype);
  return isFormat && Array.isArray(shape) && isSizes(shape);
}

function isCachedLaunch(value: unknown): value is CachedLaunch {
  const { key, kernel } = fieldsOf(value);
  const named = typeof key === "string" && /^kernel-[0-9a-f]{64}$/.test(key);
  return named && isKernelData(kernel) && isLaunchInputs(value);
}

function isCodeHeader(header: unknown): header is CodeHeader {
  const { kernel, target, log } = fieldsOf(header);
  const named = typeof kernel === "string" && typeof target === "string";
  return named && (log === undefined || typeof log === "string");
}

function isMachineHeader(header: unknown): header is MachineHeader {
  const { registers, localBytes } = fieldsOf(header);
  return Number.isSafeInteger(registers) && Number.isSafeInteger(localBytes);
}

function machineKey(ptx: string, build: Build): string {
  return codeKey(ptx, build).replace("code", "machine");
}

function codeKey(ptx: string, { target, driverVersion, capability }: Build): string {
  return `code-${hash(JSON.stringify([target.name, driverVersion, capability]), ptx)}`;
}

function hash(...parts: readonly string[]): string {
  const digest = createHash("sha256");
  for (const part of parts) digest.update(`${part.length} ${part}`);
  return digest.digest("hex");
}
