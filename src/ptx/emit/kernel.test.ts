/** What a launch is told about a kernel: names, sizes, clusters, and what it may do early. */
import { describe, expect, test } from "vitest";
import { f32 } from "../../formats/dtype.ts";
import {
  tensor,
  cdiv,
  dim,
  full,
  kernel,
  launchNextKernel,
  slice,
  smem,
  waitForPreviousKernel,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { evaluateSize } from "../../ir/size.ts";
import { targets } from "../../targets/target.ts";
import type { Executable } from "../executable.ts";
import { printPtx } from "../printer.ts";
import { lower } from "../../lower/stages.ts";

const compiled = ({ kernel: own }: KernelDefinition): Executable => lower(own, targets.sm_90a);

function early(wait: boolean): KernelDefinition {
  return kernel(
    { name: "early", inputs: { x: tensor(f32, [64]) }, outputs: { out: tensor(f32, [64]) } },
    ({ x, out }) => {
      if (wait) waitForPreviousKernel();
      launchNextKernel();
      out.store(x.load());
    },
  );
}

describe("a launch plan", () => {
  test("has the grid, the threads and the clusters of its kernel", () => {
    const n = dim("n");
    const plan = compiled(
      kernel(
        {
          name: "planned",
          grid: { i: cdiv(n, 64), j: 4 },
          cluster: { j: 2 },
          threads: ["a", "b"],
          inputs: { x: tensor(f32, [n]) },
          outputs: { out: tensor(f32, [4, n]) },
          scratch: { buffer: smem(f32, [64]) },
        },
        ({ i, j, x, out, buffer, a }) => {
          a(() => {
            const here = slice(i.mul(64), 64);
            buffer.store(x.at(here).load());
            out.at(j, here).store(buffer.load());
          });
        },
      ),
    );
    expect(evaluateSize(plan.blocks, new Map([["n", 130]]))).toBe(12);
    expect(plan).toMatchObject({
      threadsPerBlock: 256,
      cluster: 2,
      name: "planned",
      entry: "planned",
    });
    expect(plan.sharedBytes).toBeGreaterThanOrEqual(256);
    expect(plan.parameters.map(({ kind }) => kind)).toEqual(["array", "array", "size", "size"]);
    expect(printPtx(plan.module)).toContain(".reqntid 256, 1, 1\n");
    expect(printPtx(plan.module)).toContain(".reqnctapercluster 2, 1, 1\n");
  });

  test("lets a kernel start early that waits for the one before it by itself", () => {
    expect(compiled(early(true)).dependentLaunch).toBe(true);
    expect(compiled(early(false)).dependentLaunch).toBe(false);
  });

  test("takes nothing for constant that the kernel before may write yet", () => {
    expect(printPtx(compiled(early(true)).module)).not.toContain("ld.global.nc");
    expect(printPtx(compiled(early(false)).module)).toContain("ld.global.nc");
  });

  test("names an entry as PTX can, where a name does not begin with _", () => {
    const named = (name: string): string =>
      compiled(
        kernel({ name, outputs: { out: tensor(f32, [8]) } }, ({ out }) => {
          out.store(full(f32, [8], 1));
        }),
      ).entry;
    expect(named("copy_2d")).toBe("copy_2d");
    expect(named("_copy")).toBe("kernel__copy");
  });
});
