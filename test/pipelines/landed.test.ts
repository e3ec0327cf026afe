/** Outputs are in global memory when a pipeline returns. */
import { expect, test } from "vitest";
import { block, f32, fromNumbers, kernel, pipeline, tensor, warpSpecialized } from "tilewright";
import type { KernelDefinition } from "tilewright";
import { runKernel } from "../simulation.ts";
import { requireClean, requireEmulated } from "./run.ts";

const [rows, width] = [32, 32];
const spec = {
  inputs: { x: tensor(f32, [rows, width]) },
  outputs: { y: tensor(f32, [rows, width]), z: tensor(f32, [rows, width]) },
};
const given = Array.from({ length: rows * width }, (_, place) => place % 100);
const doubled = given.map((value) => 2 * value);
const expected = {
  inputs: { x: fromNumbers(f32, [rows, width], given) },
  results: { y: doubled, z: doubled },
};

const alone = (waitReadOnly: boolean): KernelDefinition =>
  kernel({ name: "alone", ...spec }, ({ x, y, z }) => {
    pipeline(
      {
        grid: { step: 4 },
        inputs: { from: ({ step }) => x.at(block(step, 8)) },
        outputs: { into: ({ step }) => y.at(block(step, 8)) },
        waitReadOnly,
      },
      ({ from, into }) => {
        into.store(from.load().mul(2));
      },
    );
    z.store(y.load());
  });

const specialized = (waitReadOnly: boolean): KernelDefinition =>
  kernel({ name: "specialized", threads: ["copy", "compute"], ...spec }, ({ x, y, z, compute }) => {
    warpSpecialized(
      {
        grid: { step: 4 },
        inputs: { from: ({ step }) => x.at(block(step, 8)) },
        outputs: { into: ({ step }) => y.at(block(step, 8)) },
        waitReadOnly,
      },
      ({ steps }) => {
        steps(({ from, into }) => {
          into.store(from.load().mul(2));
        });
      },
    );
    compute(() => {
      z.store(y.load());
    });
  });

for (const [name, make] of Object.entries({ pipeline: alone, warpSpecialized: specialized })) {
  test(`outputs of ${name} have landed`, async () => {
    await requireClean(make(false), expected);
    await requireEmulated(make(false), expected);
  });

  test(`outputs of ${name} have only been read where that is asked for`, async () => {
    const { findings } = await runKernel(make(true), expected.inputs, {});
    expect(findings.map(({ code }) => code)).toContain("TW3001");
  });
}
