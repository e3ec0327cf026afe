/** Plain loops of products that the compiler pipelines. */
import { describe, expect, test } from "vitest";
import { tensor, bf16, block, dot, f32, kernel, loop, open, zeros } from "tilewright";
import type { RunArguments } from "tilewright";
import type { Kernel, Region } from "../../src/ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../../src/ir/rewrite/substitute.ts";
import { walkOps } from "../../src/ir/traverse.ts";
import { pipelineLoops } from "../../src/lower/software-pipelining/index.ts";
import { lower, lowerWithNotes } from "../../src/lower/stages.ts";
import { simplify } from "../../src/lower/simplify.ts";
import { targets } from "../../src/targets/target.ts";
import { compiledCases, plainCases } from "./compiled.ts";
import { takesAll } from "../support/sample.ts";
import { requireClean, requireResults } from "./run.ts";

function kindsOf({ body }: Kernel): readonly string[] {
  const kinds: string[] = [];
  walkOps(body, ({ kind }) => kinds.push(kind));
  return kinds;
}

const count = (kernel: Kernel, kind: string): number =>
  kindsOf(kernel).filter((each) => each === kind).length;

describe.each(Object.entries(compiledCases))("a loop with %s", (_, given) => {
  const { definition, expected, dimensions = {}, products, depth } = given;
  const simplified = simplify(definition.kernel);

  test("copies ahead, and multiplies in flight where there is wgmma", () => {
    for (const target of [targets.sm_80, targets.sm_90a]) {
      const kernel = pipelineLoops(simplified, target);
      expect(count(kernel, "copy_async"), target.name).toBeGreaterThan(0);
      expect(count(kernel, "wgmma"), target.name).toBe(target.name === "sm_90a" ? products : 0);
    }
  });

  test.runIf(depth !== undefined)("has room for its steps", () => {
    const depths: unknown[] = [];
    walkOps(pipelineLoops(simplified, targets.sm_90a).body, (op) => {
      if (op.kind === "alloc") depths.push(op.attributes.shape[0]);
    });
    expect(depths).toEqual([depth, depth]);
  });

  test.each(["sm_80", "sm_90a"] as const)("is right under schedules for %s", async (name) => {
    const kernel = pipelineLoops(simplified, targets[name]);
    await requireClean({ ...definition, kernel }, expected, takesAll ? 5 : 2, dimensions);
  });

  test.each(["sm_80", "sm_90a"] as const)("is right on the emulator for %s", async (target) => {
    const device = await open("emulator", { seed: 11, target });
    try {
      const inputs = expected.inputs as RunArguments<typeof definition>;
      requireResults(await device.run(definition, inputs, { dimensions }), expected, "emulator");
    } finally {
      device.dispose();
    }
  });
});

/** The kernel with loops that ask for room for three steps. */
function asking(kernel: Kernel): Kernel {
  const change = (region: Region): Region =>
    changeOps(
      region,
      region.ops.map((op) => {
        const changed = changeRegions(op, change);
        return changed.kind === "loop" ? { ...changed, attributes: { depth: 3 } } : changed;
      }),
    );
  return changeBody(kernel, change(kernel.body));
}

test.each([
  ["rows are not known to be aligned", "rows of b are not known to begin at multiples of 16 bytes"],
  ["it stores in every step", "it stores, waits or does something else that others see"],
  ["what it reads may be written", "what it loads is no input, so that somebody may write it"],
  [
    "a step decides what the next one reads",
    "where it loads from does not follow from its index alone",
  ],
])("a loop that asks for copies ahead is told that it has none where %s", (name, because) => {
  const { kernel } = plainCases[name] ?? {};
  if (kernel === undefined) throw new Error(`no case ${name}`);
  const { notes } = lowerWithNotes(asking(kernel), targets.sm_90a);
  const found = notes.filter(({ code }) => code === "TW7509");
  expect(found.map((note) => note.because)).toEqual([because]);
  expect(found[0]?.position?.file).toContain("compiled.ts");
});

test("a loop that is pipelined is told nothing", () => {
  const { definition } = compiledCases["room for 2 steps"] ?? {};
  if (definition === undefined) throw new Error("no such case");
  const { notes } = lowerWithNotes(definition.kernel, targets.sm_90a);
  expect(notes.map(({ code }) => code)).not.toContain("TW7509");
});

test("the stage is seen", () => {
  const steps: string[] = [];
  const { definition } = compiledCases["as many steps as fit"] ?? {};
  if (definition === undefined) throw new Error("no such case");
  lower(definition.kernel, targets.sm_90a, {
    observe: (step) => steps.push(step),
  });
  const last = [
    "pipeline",
    "select",
    "place",
    "allocate",
    "guard-bounds",
    "tensor-maps",
    "barriers",
    "product-groups",
  ];
  expect(steps.slice(-last.length)).toEqual(last);
});

describe("what fits in shared memory", () => {
  const tileOf = (rows: number, columns: number) =>
    kernel(
      {
        name: "tile",
        inputs: { a: tensor(bf16, [256, 1024]), b: tensor(bf16, [1024, 256]) },
        outputs: { c: tensor(f32, [rows, columns]) },
      },
      ({ a, b, c }) => {
        const carry = zeros(f32, [rows, columns]);
        const sum = loop({ to: 16, carry }, (step, accumulator) => {
          const left = a.at(block(0, rows), block(step, 64)).load();
          return dot(left, b.at(block(step, 64), block(0, columns)).load(), {
            accumulator,
          });
        });
        c.store(sum);
      },
    );

  test.each([
    ["sm_90a", 128, 128, 3],
    ["sm_90a", 64, 256, 4],
    ["sm_90a", 64, 64, 4],
    ["sm_80", 128, 128, 4],
  ] as const)("on %s, blocks of %i and %i have %i steps", (name, rows, columns, depth) => {
    const kernel = pipelineLoops(simplify(tileOf(rows, columns).kernel), targets[name]);
    const depths: unknown[] = [];
    walkOps(kernel.body, (op) => {
      if (op.kind === "alloc") depths.push(op.attributes.shape[0]);
    });
    expect(depths).toEqual([depth, depth]);
  });
});
