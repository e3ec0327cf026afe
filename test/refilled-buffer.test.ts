/**
 * A buffer that was read and is filled again by TMA: `commitShared()` stands between, in the thread that read or
 * in the one that copies. Without it simulator and emulator both report the two accesses.
 */
import { describe, expect, test } from "vitest";
import { f32 } from "../src/formats/dtype.ts";
import { fromNumbers } from "../src/formats/hostarray.ts";
import { tensor, barrier, commitShared, copyAsync, kernel, loop, smem } from "../src/lang/index.ts";
import { open } from "../src/runtime/open.ts";

const inputs = { x: tensor(f32, [4, 64]) };
const outputs = { out: tensor(f32, [4, 64]) };

/** One thread copies, reads, and copies again. */
const alone = (commits: boolean) =>
  kernel(
    { name: "alone", inputs, outputs, scratch: { buffer: smem(f32, [64]), full: barrier() } },
    ({ x, out, buffer, full }) => {
      loop(4, (step) => {
        copyAsync(x.at(step), buffer, { barrier: full });
        full.wait();
        out.at(step).store(buffer.load());
        if (commits) commitShared();
      });
    },
  );

/** One thread copies, another reads and hands the buffer back. */
const handedBack = (commits: boolean) =>
  kernel(
    {
      name: "handed_back",
      threads: ["copy", "compute"],
      inputs,
      outputs,
      scratch: { buffer: smem(f32, [64]), full: barrier(), empty: barrier() },
    },
    ({ x, out, buffer, full, empty, copy, compute }) => {
      copy(() => {
        loop(4, (step) => {
          copyAsync(x.at(step), buffer, { barrier: full });
          empty.wait();
        });
      });
      compute(() => {
        loop(4, (step) => {
          full.wait();
          out.at(step).store(buffer.load());
          if (commits) commitShared();
          empty.arrive();
        });
      });
    },
  );

describe.each([
  ["simulator", "TW3001"],
  ["emulator", "TW8015"],
] as const)("on the %s", (name, code) => {
  test.each([
    ["one thread", alone],
    ["two threads", handedBack],
  ] as const)("of %s", async (_, make) => {
    const data = Float32Array.from({ length: 256 }, (_value, index) => index);
    const x = fromNumbers(f32, [4, 64], data);
    const device = await open(name);
    try {
      expect((await device.run(make(true), { x })).out.data).toEqual(data);
      await expect(device.run(make(false), { x })).rejects.toMatchObject({ code });
    } finally {
      device.dispose();
    }
  });
});
