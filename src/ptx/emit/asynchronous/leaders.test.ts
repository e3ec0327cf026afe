/** Which lane of a warp starts copies for all of it. */
import { expect, test } from "vitest";
import { f32 } from "../../../formats/dtype.ts";
import { tensor, barrier, copyAsync, kernel, slice, smem, warps } from "../../../lang/index.ts";
import { lower } from "../../../lower/stages.ts";
import { targets } from "../../../targets/target.ts";
import type { Target } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const [count, length] = [4, 64];

function textFor(target: Target): string {
  const { kernel: traced } = kernel(
    {
      name: "copied",
      inputs: { x: tensor(f32, [count * length]) },
      outputs: { out: tensor(f32, [count, length]) },
      scratch: { buffer: smem(f32, [count, length]), landed: barrier({ count }) },
    },
    ({ x, out, buffer, landed }) => {
      warps((warp) => {
        const own = { barrier: landed.at(warp) };
        copyAsync(x.at(slice(warp.mul(length), length)), buffer.at(warp), own);
        landed.at(warp).wait();
        out.at(warp).store(buffer.at(warp).load());
      });
    },
  );
  return printPtx(lower(traced, target).module);
}

test("warps elect the lane that starts their copies, so that the assembler knows that it is one", () => {
  const text = textFor(targets.sm_90a);
  const [, elected = "nobody"] = /elect\.sync _\|(%p\d+), -1;/.exec(text) ?? [];
  const copies = text.split("\n").filter((line) => line.includes("cp.async.bulk.tensor"));
  expect(copies.length).toBeGreaterThan(0);
  for (const copy of copies) expect(copy.trim()).toMatch(new RegExp(`^@${elected} `));
});

test("those that have no such instruction do without", () => {
  expect(textFor(targets.sm_80)).not.toContain("elect.sync");
});
