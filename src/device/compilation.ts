/**
 * Compiled kernels of one device, and the log of why each was compiled. A kernel made again with the
 * same content (calling its factory twice) is not compiled again; one with the same name and other
 * content is, and the log says what differs:
 *
 *   axpy: first launch
 *   axpy: differs from the kernel of this name compiled before: `… [1000] …` became `… [2000] …`
 *   axpy: compiled ahead of time
 *
 * Launches of operations may be known from an earlier process by what the operation was given. Their kernels are then traced
 * only where somebody reads of them in the log.
 */
import { kernelFor } from "../ir/target-variants.ts";
import type { Kernel, KernelInterface } from "../ir/node.ts";
import { printKernel } from "../ir/printer.ts";
import { walkOps } from "../ir/traverse.ts";
import type { CompiledKernel } from "../ptx/compiled-kernel.ts";
import { assemblerNotes, usageIn } from "../ptx/notes/assembler-notes.ts";
import type { PerformanceNote } from "../ptx/notes/note.ts";
import { formatPosition } from "../support/location.ts";
import { LruCache } from "../support/lru-cache.ts";
import type { Location } from "../support/location.ts";
import type { Backend, Compiled, KeptLaunch, KeptPlan, MachineCode } from "./backend.ts";
import { isKeepable } from "./launch-inputs.ts";
import type { LaunchInputs, ScratchArrays } from "./launch-inputs.ts";
import type { OperationPlan } from "./operation.ts";

/** Kernels that a device keeps compiled; one that it meets again after that many others is compiled anew. */
const keptKernels = 1024;

/** One compilation of a kernel: for what, why, and how long it took. */
export interface CompilationRecord {
  /** The kernel's name. */
  readonly kernel: string;
  /** The kernel as it was traced; undefined for one that was compiled ahead of time. */
  readonly traced: Kernel | undefined;
  /** What it was compiled for. */
  readonly device: string;
  /** Why it was compiled. */
  readonly reason: string;
  /** How long it took. */
  readonly milliseconds: number;
  /** Whether an earlier process had compiled it. */
  readonly cached: boolean;
  /** What makes it slower than it could be. */
  readonly notes: readonly PerformanceNote[];
  /** What the assembler made of it; undefined where there is none. */
  readonly machineCode: MachineCode | undefined;
}

/** A launch of a plan whose kernel is ready. */
export interface LoadedLaunch extends LaunchInputs {
  readonly kernel: KernelInterface;
  readonly program: unknown;
}

/** A plan whose kernels are ready, and the arrays that only its launches use. */
export interface LoadedPlan {
  readonly launches: readonly LoadedLaunch[];
  readonly scratch: ScratchArrays;
}

/** The text of kernels that are alive, which tells each from every other, by the source lines in it. */
const texts: { readonly [lines in Backend["sourceLines"]]: WeakMap<Kernel, string> } = {
  all: new WeakMap(),
  messages: new WeakMap(),
};

export class CompilationCache {
  readonly #backend: Backend;
  readonly #onCompile: (record: CompilationRecord) => void;
  /** By text, by the key of one that was kept, or by the kernel itself where it was compiled ahead of time. */
  readonly #compiled: LruCache<string | CompiledKernel, Compiled>;
  /** What kernels of a name were when one was compiled last. */
  readonly #latestText = new LruCache<string, () => string>(keptKernels);
  /** What earlier processes kept of plans. */
  readonly #keptPlans = new WeakMap<OperationPlan, KeptPlan | undefined>();
  /** Plans that were kept, as far as they can be. */
  readonly #written = new WeakSet<OperationPlan>();
  readonly #records: CompilationRecord[] = [];

  constructor(backend: Backend, onCompile: (record: CompilationRecord) => void) {
    this.#backend = backend;
    this.#onCompile = onCompile;
    this.#compiled = new LruCache(keptKernels, ({ program }) => {
      backend.forget(program);
    });
  }

  /** The newest ones, as many as there are kernels kept. */
  get records(): readonly CompilationRecord[] {
    return this.#records;
  }

  /** The kernel as the back end runs it. */
  compile(kernel: Kernel): unknown {
    const text = this.#textOf(kernel);
    return (this.#compiled.get(text) ?? this.#compileText(kernel, text)).program;
  }

  /** Has kernels compiled beside this process, where the back end can; each is found when it is used. */
  async compileInBackground(kernels: readonly Kernel[]): Promise<void> {
    if (this.#backend.compileInBackground === undefined) return;
    const missing = new Map<string, Kernel>();
    for (const each of kernels) {
      const kernel = kernelFor(each, this.#backend.target);
      const text = this.#textOf(kernel);
      if (this.#compiled.get(text) === undefined) missing.set(text, kernel);
    }
    await this.#backend.compileInBackground(
      Array.from(missing, ([text, kernel]) => ({
        text,
        located: printKernel(kernel, { locations: true }),
      })),
    );
  }

  #textOf(kernel: Kernel): string {
    const known = texts[this.#backend.sourceLines];
    const text = known.get(kernel) ?? kernelText(kernel, this.#backend.sourceLines);
    known.set(kernel, text);
    return text;
  }

  /** A kernel compiled ahead of time, as the back end runs it. */
  load(kernel: CompiledKernel): unknown {
    const known = this.#compiled.get(kernel);
    if (known !== undefined) return known.program;
    const start = performance.now();
    const loaded = this.#backend.load(kernel);
    this.#record({
      kernel: kernel.name,
      traced: undefined,
      device: this.#backend.name,
      reason: "compiled ahead of time",
      milliseconds: performance.now() - start,
      ...outcomeOf(loaded),
    });
    this.#compiled.set(kernel, loaded);
    return loaded.program;
  }

  /** A plan as an earlier process compiled it, without its being made; undefined where its launches are not all there. */
  keptPlan(plan: OperationPlan, location: Location): LoadedPlan | undefined {
    const { keptPlans } = this.#backend;
    if (keptPlans === undefined) return undefined;
    if (!this.#keptPlans.has(plan)) {
      const { text } = plan;
      this.#keptPlans.set(plan, text === undefined ? undefined : keptPlans.read(text, location));
    }
    const kept = this.#keptPlans.get(plan);
    if (kept === undefined) return undefined;
    const launches: LoadedLaunch[] = [];
    for (const [position, launch] of kept.launches.entries()) {
      const compiled = this.#compiled.get(launch.key) ?? this.#loadKept(launch, plan, position);
      if (compiled === undefined) {
        this.#keptPlans.set(plan, undefined);
        return undefined;
      }
      launches.push({ ...launch, program: compiled.program });
    }
    return { launches, scratch: kept.scratch };
  }

  /** Keeps the launches of a plan, which have been compiled, for later processes. */
  keep(plan: OperationPlan): void {
    const { keptPlans } = this.#backend;
    if (keptPlans === undefined || this.#written.has(plan)) return;
    this.#written.add(plan);
    const { launches, scratch, text } = plan;
    if (text === undefined || launches.length === 0 || !launches.every(isKeepable)) return;
    keptPlans.write(
      text,
      launches.map(({ kernel: definition, ...inputs }) => {
        const kernel = kernelFor(definition.kernel, this.#backend.target);
        return { ...inputs, kernel, text: this.#textOf(kernel) };
      }),
      scratch,
    );
  }

  #loadKept(launch: KeptLaunch, plan: OperationPlan, position: number): Compiled | undefined {
    const start = performance.now();
    const compiled = launch.load();
    if (compiled === undefined) return undefined;
    const { name } = launch.kernel;
    const before = this.#latestText.get(name);
    const traced = (): Kernel => {
      const kernel = plan.launches[position]?.kernel.kernel;
      if (kernel === undefined) throw new Error(`${name} was kept as launch ${position}`);
      return kernel;
    };
    const text = (): string => this.#textOf(traced());
    this.#record({
      kernel: name,
      get traced() {
        return traced();
      },
      device: this.#backend.name,
      get reason() {
        return explain(before, text);
      },
      milliseconds: performance.now() - start,
      ...outcomeOf(compiled),
    });
    this.#compiled.set(launch.key, compiled);
    this.#latestText.set(name, text);
    return compiled;
  }

  #compileText(kernel: Kernel, text: string): Compiled {
    const start = performance.now();
    const compiled = this.#backend.compile(kernel, text);
    this.#record({
      kernel: kernel.name,
      traced: kernel,
      device: this.#backend.name,
      reason: explain(this.#latestText.get(kernel.name), () => text),
      milliseconds: performance.now() - start,
      ...outcomeOf(compiled),
    });
    this.#compiled.set(text, compiled);
    this.#latestText.set(kernel.name, () => text);
    return compiled;
  }

  #record(record: CompilationRecord): void {
    this.#records.push(record);
    if (this.#records.length > keptKernels) this.#records.shift();
    this.#onCompile(record);
  }
}

function outcomeOf({
  cached,
  machineCode,
  notes,
}: Compiled): Pick<CompilationRecord, "cached" | "notes" | "machineCode"> {
  return { cached, notes: [...notes, ...machineNotes(machineCode)], machineCode };
}

/** What the assembler's log tells of speed, or, where there is none, that something was spilled. */
function machineNotes(code: MachineCode | undefined): readonly PerformanceNote[] {
  if (code === undefined) return [];
  const { log, localBytes } = code;
  if (log !== undefined) return assemblerNotes(usageIn(log));
  return assemblerNotes({ spillStores: localBytes, spillLoads: localBytes, warnings: [] });
}

/** The kernel as text, with the source lines that a program made from it carries. */
export function kernelText(kernel: Kernel, sourceLines: Backend["sourceLines"]): string {
  if (sourceLines === "all") return printKernel(kernel, { locations: true });
  const lines = [printKernel(kernel)];
  walkOps(kernel.body, ({ kind, location }) => {
    if (kind === "debug_print" || kind === "assert")
      lines.push(`${kind} at ${formatPosition(location.position)}`);
  });
  return lines.join("\n");
}

function explain(before: (() => string) | undefined, after: () => string): string {
  if (before === undefined) return "first launch";
  const oldLines = before().split("\n");
  const newLines = after().split("\n");
  const line = newLines.findIndex((text, index) => text !== oldLines[index]);
  const [found, became] = [
    oldLines[line]?.trim() ?? "nothing",
    newLines[line]?.trim() ?? "nothing",
  ];
  return `differs from the kernel of this name compiled before: \`${found}\` became \`${became}\``;
}
