/**
 * Placed kernels: recorded for the examples on every target, read back from their text, and the same as the
 * traced kernels to the simulator, to which layouts and conversions mean nothing.
 */
import { describe, expect, test } from "vitest";
import { TilewrightError, targets } from "tilewright";
import type { KernelDefinition, Target } from "tilewright";
import type { Kernel } from "../src/ir/node.ts";
import { parseModule } from "../src/ir/parser/parser.ts";
import { printKernel } from "../src/ir/printer.ts";
import { verifyKernel } from "../src/ir/verify/index.ts";
import { allocate } from "../src/layout/plan/allocate.ts";
import { guardBounds } from "../src/lower/guard-bounds.ts";
import { assignTensorMaps } from "../src/lower/tensor-maps.ts";
import { place } from "../src/lower/stages.ts";
import { verifyPlaced } from "../src/lower/verify/index.ts";
import { SimulatorBackend } from "../src/runtime/simulator-backend.ts";
import { Device } from "../src/device/device.ts";
import { exampleKernels } from "./example-kernels.ts";
import { expectGolden } from "./golden.ts";
import { pipelinedDot, rolledProducts, sortedRows } from "./support/lowered-kernels.ts";
import { flashAttention, rowSoftmax } from "./support/placed-kernels.ts";
import { randomArguments, runRandom } from "./support/random-runs.ts";
import { randomKernel } from "./support/random-kernel.ts";
import { isTaken } from "./support/sample.ts";

const kernels: { readonly [name: string]: KernelDefinition } = {
  ...exampleKernels,
  dot: pipelinedDot(),
  rolled: rolledProducts(),
  sort: sortedRows(),
  attention: flashAttention(),
  "row-softmax": rowSoftmax(),
};

/** The placed kernel; undefined where the target lacks an instruction, or layouts contradict each other. */
function placed(kernel: Kernel, target: Target): Kernel | undefined {
  try {
    return place(kernel, target).kernel;
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    expect(error.code, error.message).toMatch(/^(TW6101|TW6105|TW3017)$/);
    return undefined;
  }
}

function readBack(text: string): Kernel {
  const [kernel] = parseModule(text).kernels;
  return kernel ?? expect.fail();
}

/** Targets that place kernels as another does, whose records count for them, too. */
const alike: { readonly [target: string]: Target } = {
  sm_103a: targets.sm_100a,
  sm_121a: targets.sm_120a,
};

describe.each(Object.values(targets))("on $name", (target) => {
  test.each(Object.entries(kernels))("%s is placed as recorded", (name, { kernel }) => {
    const found = placed(kernel, target);
    if (found === undefined) return;
    const like = alike[target.name] ?? target;
    const text = printKernel(found).replace(`target ${target.name} `, `target ${like.name} `);
    expectGolden(`test/golden/placed/${name}.${like.name}.ir`, `${text}\n`);
  });
});

test("texts of placed kernels read back to the same kernels, which the traced rules hold of too", () => {
  for (const [name, { kernel }] of Object.entries(kernels)) {
    const found = placed(kernel, targets.sm_90a) ?? expect.fail(name);
    const text = printKernel(found);
    expect(printKernel(readBack(text))).toBe(text);
    verifyKernel(found);
    verifyKernel(readBack(text));
  }
});

describe("allocate", () => {
  /** The kernel as it is before and after its shared memory is allocated. */
  function around(kernel: Kernel): { readonly before: Kernel; readonly after: Kernel } {
    const stages = new Map<string, Kernel>();
    place(kernel, targets.sm_90a, { observe: (stage, each) => stages.set(stage, each) });
    const [before, after] = [stages.get("place"), stages.get("allocate")];
    return before && after ? { before, after } : expect.fail(kernel.name);
  }

  test("is a stage of its own, recorded for kernels with buffers, barriers and scratch", () => {
    for (const name of ["attention", "sort", "dot"] as const) {
      const { before, after } = around(kernels[name]?.kernel ?? expect.fail(name));
      for (const [stage, kernel] of Object.entries({ place: before, allocate: after }))
        expectGolden(`test/golden/stages/${name}.${stage}.ir`, `${printKernel(kernel)}\n`);
    }
  });

  test("gives every buffer its bytes, from the text of the placed kernel alone", () => {
    for (const { kernel } of Object.values(kernels)) {
      const { before, after } = around(kernel);
      const text = printKernel(before);
      expect(text).not.toMatch(/\bat = |\bshared \d/);
      expect(printKernel(allocate(readBack(text)))).toBe(printKernel(after));
      expect(printKernel(readBack(printKernel(after)))).toBe(printKernel(after));
    }
  });

  test("may not be left out", () => {
    const { before } = around(kernels["attention"]?.kernel ?? expect.fail());
    expect(() => {
      verifyPlaced(assignTensorMaps(guardBounds(before)));
    }).toThrow(expect.objectContaining({ code: "TW6201" }) as Error);
  });
});

test("random kernels compute the same on the simulator before and after they are placed", async () => {
  const simulator = new Device(new SimulatorBackend({ checks: false }));
  for (let seed = 0; seed < 40; seed += 1) {
    if (!isTaken(seed, 3)) continue;
    const kernel = randomKernel(seed, { exact: true });
    const found = placed(kernel, targets.sm_90a);
    if (found === undefined) continue;
    verifyKernel(found);
    const given = randomArguments(kernel, seed);
    const expected = await runRandom(simulator, kernel, given);
    const text = printKernel(found);
    expect(await runRandom(simulator, readBack(text), given), `seed ${seed}:\n${text}`).toBe(
      expected,
    );
  }
  simulator.dispose();
});
