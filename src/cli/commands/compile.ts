/**
 * `tilewright compile`: the kernels of a file as far as --emit says, for each target. Everything up to PTX
 * is made on any machine; a cubin takes ptxas.
 *
 *   --emit       to standard output, or with --out DIR into
 *   ir           axpy.ir
 *   placement    axpy.sm_90a.txt
 *   ptx          axpy.sm_90a.ptx, and axpy.sm_90a.ptx.json with what a launch needs
 *   cubin        axpy.sm_90a.cubin and axpy.sm_90a.cubin.json, never to standard output
 */
import { join } from "node:path";
import type { Kernel } from "../../ir/node.ts";
import { printKernel } from "../../ir/printer.ts";
import { placementReport } from "../../layout/plan/report.ts";
import { compileAhead, compileForFiles } from "../../lower/compile-ahead.ts";
import { place } from "../../lower/stages.ts";
import { simplify } from "../../lower/simplify.ts";
import { manifestOf } from "../../ptx/compiled-kernel.ts";
import { printPtx } from "../../ptx/printer.ts";
import { requireLimits } from "../../sim/target-limits.ts";
import type { Target } from "../../targets/target.ts";
import { Dumps } from "../dump.ts";
import { makeFolder, writeFile } from "../files.ts";
import type { Emitted } from "../options.ts";
import type { Output } from "../output.ts";
import { runUserCode } from "../program-output.ts";
import { requireAssembler } from "../cuda-toolkit.ts";
import { loadUserModule, selectKernels } from "../user-module.ts";
import type { ExportedKernel } from "../user-module.ts";

export interface CompileSettings {
  readonly file: string;
  readonly kernel: string | undefined;
  readonly emit: Emitted;
  readonly passes: boolean;
  readonly targets: readonly Target[];
  /** The folder that files go to. */
  readonly out: string | undefined;
  /** The folder that takes every stage on the way. */
  readonly dump: string | undefined;
}

/** A kernel compiled for one target. */
interface Product {
  readonly name: string;
  readonly kernel: string;
  /** Undefined where it is the same for all. */
  readonly target: string | undefined;
  /** Undefined for a cubin. */
  readonly text: string | undefined;
  /** By their names. */
  readonly files: ReadonlyMap<string, string | Uint8Array>;
}

export async function compileCommand(settings: CompileSettings, output: Output): Promise<number> {
  const { file, out, passes, emit, dump } = settings;
  const module = await runUserCode(output, () => loadUserModule(file));
  const kernels = selectKernels(module, settings.kernel);
  if (dump !== undefined) await dumpAll(kernels, settings.targets, dump, output);
  const products: Product[] = [];
  for (const kernel of kernels) products.push(...(await emitters[emit](kernel, settings)));
  if (out === undefined)
    output.line(products.map(({ text }) => text?.trimEnd() ?? "").join("\n\n"));
  else writeProducts(products, out, output);
  output.document({
    file,
    emit,
    targets: settings.targets.map(({ name }) => name),
    passes,
    out,
    kernels: products.map(({ name, kernel, target, text, files }) => ({
      name,
      kernel,
      target,
      ...(text !== undefined && { [emit]: text }),
      files: out === undefined ? [] : [...files.keys()].map((path) => join(out, path)),
    })),
  });
  return 0;
}

async function dumpAll(
  kernels: readonly ExportedKernel[],
  targets: readonly Target[],
  folder: string,
  output: Output,
): Promise<void> {
  const dumps = new Dumps(folder);
  for (const { name, definition } of kernels)
    for (const target of targets) await dumps.write({ name, kernel: definition.kernel, target });
  output.report(dumps.summary());
}

function writeProducts(products: readonly Product[], folder: string, output: Output): void {
  makeFolder(folder);
  for (const { files } of products)
    for (const [name, content] of files) {
      writeFile(join(folder, name), content);
      output.line(`wrote ${join(folder, name)}`);
    }
}

type Emitter = (kernel: ExportedKernel, settings: CompileSettings) => Promise<readonly Product[]>;

const emitters: { readonly [E in Emitted]: Emitter } = {
  ir: async ({ name, definition }, { passes, targets }) => {
    const kernel = passes ? simplify(definition.kernel) : definition.kernel;
    for (const target of targets) requireLimits(kernel, target);
    const text = `${printKernel(kernel)}\n`;
    const files = new Map([[`${name}.ir`, text]]);
    return [{ name, kernel: kernel.name, target: undefined, text, files }];
  },

  placement: async (exported, { targets }) =>
    targets.map((target) => {
      const text = placementReport(place(exported.definition.kernel, target).placement);
      return product(exported, target, text, [["txt", text]]);
    }),

  ptx: async (exported, { targets }) =>
    targets.map((target) => {
      const { ptx, manifest } = compileAhead(exported.definition, target);
      return product(exported, target, ptx, [
        ["ptx", ptx],
        ["ptx.json", json(manifest)],
      ]);
    }),

  cubin: async (exported, { targets }) => {
    const products: Product[] = [];
    for (const target of targets) products.push(await cubinProduct(exported, target));
    return products;
  },
};

async function cubinProduct(exported: ExportedKernel, target: Target): Promise<Product> {
  const { kernel }: { readonly kernel: Kernel } = exported.definition;
  const assembler = requireAssembler();
  const { module, ...plan } = compileForFiles(kernel, target);
  const source = { name: kernel.name, target: target.name, ptx: printPtx(module) };
  const { cubin } = await assembler(source);
  return product(exported, target, undefined, [
    ["cubin", cubin],
    ["cubin.json", json(manifestOf(kernel, plan, cubin))],
  ]);
}

function json(manifest: unknown): string {
  return `${JSON.stringify(manifest, undefined, 2)}\n`;
}

function product(
  { name, definition }: ExportedKernel,
  target: Target,
  text: string | undefined,
  files: readonly (readonly [ending: string, content: string | Uint8Array])[],
): Product {
  return {
    name,
    kernel: definition.kernel.name,
    target: target.name,
    text,
    files: new Map(files.map(([ending, content]) => [`${name}.${target.name}.${ending}`, content])),
  };
}
