/** Groups of copies that warps of a thread commit, and who waits for them. */
import { expect, test } from "vitest";
import { findingsOf, runKernel } from "../../test/simulation.ts";
import { f32 } from "../formats/dtype.ts";
import {
  commitGroup,
  commitShared,
  copyAsync,
  kernel,
  smem,
  tensor,
  waitGroup,
} from "../lang/index.ts";
import { warps, when, zeros } from "../lang/index.ts";

const { expectFinding } = findingsOf(import.meta.url);

/** Two warps copy out rows of their own. */
const byWarps = (inWarps: () => void, inThread: () => void) =>
  kernel(
    {
      name: "byWarps",
      outputs: { out: tensor(f32, [2, 64]) },
      scratch: { buffer: smem(f32, [64]) },
    },
    ({ out, buffer }) => {
      buffer.store(zeros(f32, [64]));
      commitShared();
      warps((warp) => {
        when(warp.lt(2), () => {
          copyAsync(buffer, out.at(warp)); // copies of warps
          inWarps();
        });
      });
      inThread();
    },
  );

test("copies of warps may be left to the end of the kernel, in groups or in none", async () => {
  for (const inWarps of [commitGroup, () => undefined])
    for (const inThread of [waitGroup, () => undefined])
      expect((await runKernel(byWarps(inWarps, inThread))).findings).toEqual([]);
});

test("a warp does not wait for what its thread copies", async () => {
  const k = kernel(
    {
      name: "inside",
      outputs: { out: tensor(f32, [64]), seen: tensor(f32, [64]) },
      scratch: { buffer: smem(f32, [64]) },
    },
    ({ out, seen, buffer }) => {
      buffer.store(zeros(f32, [64]));
      commitShared();
      copyAsync(buffer, out); // copy of the thread
      warps(() => {
        waitGroup();
      });
      seen.store(out.load()); // load of the thread
    },
  );
  const marks = ["copy of the thread", "load of the thread"];
  await expectFinding(k, {}, { code: "TW3001", marks });
});
