/** The tables of planted bugs as a whole; the files beside this one run them. */
import { expect, test } from "vitest";
import { hasPtxas } from "../ptxas.ts";
import { assemble } from "../support/accepted-assembly.ts";
import { collectiveKernels } from "./collective.ts";
import { copyKernels } from "./copies.ts";
import { descriptorKernels } from "./descriptors.ts";
import { memoryKernels } from "./memory.ts";
import { planted } from "./planted.ts";

const kernels = [...memoryKernels, ...copyKernels, ...collectiveKernels, ...descriptorKernels];

test("there are enough bugs, each with a name of its own", () => {
  const names = kernels.flatMap(({ bugs }) => bugs.map(({ name }) => name));
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThanOrEqual(30);
});

test.skipIf(!hasPtxas)("all of it is PTX that assembles", () => {
  const texts = kernels.flatMap((kernel) => [
    kernel.text,
    ...kernel.bugs.map((bug) => planted(kernel, bug)),
  ]);
  const [header = ""] = texts[0]?.split(".visible") ?? [];
  const entries = texts.map((text, index) =>
    text.slice(header.length).replace(/\.entry (\w+)/, `.entry $1_${index}`),
  );
  expect(assemble(header + entries.join("\n"), "sm_90a")).not.toMatch(/error|fatal/);
});
