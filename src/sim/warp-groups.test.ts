/** Groups of copies that warps of a thread commit, and who waits for them. */
import { test } from "vitest";
import { findingsOf } from "../../test/simulation.ts";
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

test("copies of warps that nobody waits for", async () => {
  const text = /remedy: +call waitGroup\(\) in the warp that issued it, or in its thread after/;
  const k = byWarps(commitGroup, () => undefined);
  await expectFinding(k, {}, { code: "TW3009", marks: ["copies of warps"], text });
});

test("copies of warps that are in no group", async () => {
  const text = /remedy: +call commitGroup\(\) in the warp that issued it, before waitGroup\(\)/;
  const k = byWarps(() => undefined, waitGroup);
  await expectFinding(k, {}, { code: "TW3009", marks: ["copies of warps"], text });
});

test("a copy of a thread for which only its warps wait", async () => {
  const k = kernel(
    {
      name: "inside",
      outputs: { out: tensor(f32, [64]) },
      scratch: { buffer: smem(f32, [64]) },
    },
    ({ out, buffer }) => {
      buffer.store(zeros(f32, [64]));
      commitShared();
      copyAsync(buffer, out); // copy of the thread
      commitGroup();
      warps(() => {
        waitGroup();
      });
    },
  );
  const text = /remedy: +call waitGroup\(\) in the thread that issued it, outside warps/;
  await expectFinding(k, {}, { code: "TW3009", marks: ["copy of the thread"], text });
});
