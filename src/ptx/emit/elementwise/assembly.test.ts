import { describe, expect, test } from "vitest";
import { allElementwise, elementwiseProbe } from "../../../../test/elementwise-probes.ts";
import { joinedModule } from "../../../../test/ptx-probe.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { assemble } from "../../../../test/support/accepted-assembly.ts";
import { isTaken } from "../../../../test/support/sample.ts";
import { targets } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const cases = allElementwise().flatMap((computes) => [
  elementwiseProbe(computes, "element"),
  elementwiseProbe(computes, "words"),
]);

test("every function of every format and every conversion is probed", () => {
  const casts = cases.filter(({ computes }) => computes.kind === "cast");
  // 22 formats to 21 others, two of them in two ways, each on elements and words.
  expect(casts).toHaveLength(2 * (22 * 21 + 2 * 21));
});

describe.skipIf(!hasPtxas)("the assembler (skipped where there is no ptxas)", () => {
  const all = [targets.sm_80, targets.sm_89, targets.sm_90a, targets.sm_120a];
  test.each(all)("accepts all sequences for $name", (target) => {
    // Each target has some of its own.
    const place = all.indexOf(target);
    const some = cases.filter((_, index) => isTaken(all.length * index + place, 3));
    expect(assemble(printPtx(joinedModule(target, some)), target.name)).toBe("");
  });
});
