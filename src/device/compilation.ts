/**
 * Compiled kernels of one device, and the log of why each was compiled. A kernel made again with the
 * same content (calling its factory twice) is not compiled again; one with the same name and other
 * content is, and the log says what differs:
 *
 *   axpy: first launch
 *   axpy: differs from the kernel of this name compiled before: `… [1000] …` became `… [2000] …`
 */
import type { Kernel } from "../ir/node.ts";
import { printKernel } from "../ir/printer.ts";
import { runPasses } from "../passes/pipeline.ts";

export interface CompilationRecord {
  readonly kernel: string;
  readonly device: string;
  readonly reason: string;
  readonly milliseconds: number;
}

export class CompilationCache {
  readonly #device: string;
  readonly #onCompile: ((record: CompilationRecord) => void) | undefined;
  readonly #byKernel = new WeakMap<Kernel, Kernel>();
  readonly #byText = new Map<string, Kernel>();
  readonly #latestText = new Map<string, string>();
  readonly #records: CompilationRecord[] = [];

  constructor(device: string, onCompile?: (record: CompilationRecord) => void) {
    this.#device = device;
    this.#onCompile = onCompile;
  }

  get records(): readonly CompilationRecord[] {
    return this.#records;
  }

  /** The kernel after the passes. */
  compile(kernel: Kernel): Kernel {
    const known = this.#byKernel.get(kernel);
    if (known !== undefined) return known;
    const text = printKernel(kernel, { locations: true });
    const compiled = this.#byText.get(text) ?? this.#compileText(kernel, text);
    this.#byKernel.set(kernel, compiled);
    return compiled;
  }

  #compileText(kernel: Kernel, text: string): Kernel {
    const start = performance.now();
    const compiled = runPasses(kernel);
    this.#record({
      kernel: kernel.name,
      device: this.#device,
      reason: explain(this.#latestText.get(kernel.name), text),
      milliseconds: performance.now() - start,
    });
    this.#byText.set(text, compiled);
    this.#latestText.set(kernel.name, text);
    return compiled;
  }

  #record(record: CompilationRecord): void {
    this.#records.push(record);
    this.#onCompile?.(record);
  }
}

function explain(before: string | undefined, after: string): string {
  if (before === undefined) return "first launch";
  const oldLines = before.split("\n");
  const newLines = after.split("\n");
  const line = newLines.findIndex((text, index) => text !== oldLines[index]);
  const [found, became] = [
    oldLines[line]?.trim() ?? "nothing",
    newLines[line]?.trim() ?? "nothing",
  ];
  return `differs from the kernel of this name compiled before: \`${found}\` became \`${became}\``;
}
