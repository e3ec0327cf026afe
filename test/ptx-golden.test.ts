/**
 * The PTX of the examples: recorded, so that a change of it is read in review, and assembled for every
 * target in one call each, without spills and without the lines that tell of serialised wgmma. A sample of
 * the matrix goes along, so that each kind of op is assembled for GPUs that no test machine has.
 */
import { relative, sep } from "node:path";
import { describe, expect, test } from "vitest";
import { TilewrightError, targets } from "tilewright";
import type { KernelDefinition, Target } from "tilewright";
import type { PtxModule } from "../src/ptx/module.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { handwrittenAttention } from "../bench/gpu/handwritten/attention.ts";
import { handwrittenProduct } from "../bench/gpu/handwritten/product.ts";
import { exampleKernels } from "./example-kernels.ts";
import { expectGolden } from "./golden.ts";
import { matrixCases } from "./matrix/index.ts";
import { combineModules, describeAssembly, hasPtxas } from "./ptxas.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { assemblyRecord } from "./support/assembly-record.ts";
import { repositoryRoot } from "./source-files.ts";
import { takesAll } from "./support/sample.ts";
import { lower } from "../src/lower/stages.ts";

/** By target and kernel: what is recorded is also assembled. */
const compiled = new Map<Target, Map<KernelDefinition, PtxModule>>();

function compile(definition: KernelDefinition, target: Target): PtxModule {
  const known = compiled.get(target) ?? new Map<KernelDefinition, PtxModule>();
  compiled.set(target, known);
  const module = known.get(definition) ?? lower(definition.kernel, target).module;
  known.set(definition, module);
  return module;
}

/** The same on every machine. */
function withRelativeFiles(module: PtxModule): PtxModule {
  const files = module.files.map((file) => relative(repositoryRoot, file).split(sep).join("/"));
  return { ...module, files };
}

test.each(Object.entries(exampleKernels))("the PTX of %s is as recorded", (name, definition) => {
  const module = withRelativeFiles(compile(definition, targets.sm_90a));
  expectGolden(`test/golden/ptx/${name}.sm_90a.ptx`, printPtx(module));
});

/** Kernels under names that PTX takes; those that need an instruction of another GPU are left out. */
function compileAll(
  definitions: readonly KernelDefinition[],
  target: Target,
): {
  readonly modules: readonly (readonly [string, PtxModule])[];
  readonly refused: readonly KernelDefinition[];
} {
  const modules: (readonly [string, PtxModule])[] = [];
  const refused: KernelDefinition[] = [];
  for (const [index, definition] of definitions.entries())
    try {
      modules.push([`kernel_${index}`, compile(definition, target)]);
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      expect(error.code, error.message).toMatch(/^(TW6105|TW3017)$/);
      refused.push(definition);
    }
  return { modules, refused };
}

const everyOtherCase = 120;

/** Each target has others. */
function sampledKernels(first: number): readonly KernelDefinition[] {
  return matrixCases()
    .filter((_, index) => index % everyOtherCase === first)
    .map((one) => one.prepare().definition);
}

/** Those that share and mask hold more than those that do neither. */
const handwritten: readonly KernelDefinition[] = [
  ...(takesAll
    ? [handwrittenProduct({ blocks: 132 }), handwrittenAttention({ length: 4096, blocks: 132 })]
    : []),
  handwrittenProduct({ blocks: 132, sharing: 2 }),
  handwrittenAttention({ length: 4096, causal: true, blocks: 132 }),
];

describe.skipIf(!hasPtxas)("ptxas", () => {
  test("assembles the examples, and kernels written by hand, without spills or serialised wgmma", () => {
    const definitions = [...Object.values(exampleKernels), ...handwritten];
    const { modules, refused } = compileAll(definitions, targets.sm_90a);
    expect(refused).toEqual([]);
    const [record, text] = [assemblyRecord(), combineModules(modules)];
    if (record.spilled(text) === 0) return;
    const said = describeAssembly(text, "sm_90a");
    expect(said.match(/Compiling entry function/g)).toHaveLength(modules.length);
    expect(said.match(/\d+ bytes spill stores/g)).toHaveLength(modules.length);
    expect(said).not.toMatch(/[1-9]\d* bytes spill/);
    expect(said).not.toContain("(C7");
    expect(said).not.toMatch(/warning|error/i);
    record.note(text, 0);
  });

  test.each([
    [targets.sm_80, 3, 0],
    [targets.sm_86, 3, 30],
    [targets.sm_89, 3, 90],
    [targets.sm_100a, 2, 60],
    [targets.sm_103a, 2, 15],
    [targets.sm_120a, 2, 45],
    [targets.sm_121a, 2, 75],
  ])("assembles what needs no Hopper for $name", (target, refusedExamples, first) => {
    const definitions = Object.values(exampleKernels);
    const { modules, refused } = compileAll([...definitions, ...sampledKernels(first)], target);
    expect(refused.filter((one) => definitions.includes(one))).toHaveLength(refusedExamples);
    expect(modules.length).toBeGreaterThan(30);
    const said = assemble(combineModules(modules), target.name);
    // It advises against multicast on sm_120a and sm_121a, which have it, for the sake of later GPUs.
    const isAdvice =
      target.features.includes("mma.block_scale") &&
      said.includes("Advisory: '.multicast::cluster'");
    expect(isAdvice ? said.match(/error|fatal/) : said).toBe(isAdvice ? null : "");
  });
});
