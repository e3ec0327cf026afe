/** Copies out of shared memory that TMA would not keep within the array. */
import { expect, test } from "vitest";
import { f32 } from "../../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../formats/hostarray.ts";
import {
  tensor,
  barrier,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  kernel,
  loop,
  slice,
  smem,
  waitGroup,
} from "../../../lang/index.ts";
import type { CopyOptions } from "../../../lang/index.ts";
import { open } from "../../../runtime/open.ts";
import { defaultTarget } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";
import { lower } from "../../../lower/stages.ts";

const textOf = (extent: Parameters<typeof tensor>[1][0], options: CopyOptions = {}, before = 0) => {
  const { kernel: traced } = kernel(
    {
      name: "stored",
      grid: { i: 2 },
      inouts: { x: tensor(f32, [extent]) },
      scratch: { buffer: smem(f32, [64]) },
    },
    ({ i, x, buffer }) => {
      buffer.store(x.at(slice(0, 64)).load());
      commitShared();
      copyAsync(buffer, x.at(slice(i.mul(64).sub(before), 64)), options);
      commitGroup();
      waitGroup(0);
    },
  );
  return printPtx(lower(traced, defaultTarget).module);
};

test("rows of whole 16 bytes are stored by tensor map, others by lanes", () => {
  const tensor = "cp.async.bulk.tensor.1d.global";
  expect(textOf(1000)).toContain(tensor);
  expect(textOf(dim("n", { multipleOf: 4 }))).toContain(tensor);
  expect(textOf(1001)).not.toContain(tensor);
  expect(textOf(dim("n"))).not.toContain(tensor);
});

test("a window that may begin before its array is stored by lanes", () => {
  expect(textOf(1000, {}, 16)).not.toContain("cp.async.bulk.tensor.1d.global");
});

test("what lanes store for TMA may be overwritten by it once it has been read", async () => {
  const [length, steps] = [64, 3];
  const moved = kernel(
    {
      name: "moved",
      inputs: { x: tensor(f32, [steps * length]) },
      outputs: { out: tensor(f32, [steps * length - 1]) },
      scratch: { buffer: smem(f32, [length]), landed: barrier() },
    },
    ({ x, out, buffer, landed }) => {
      loop(steps, (step) => {
        waitGroup(0, { read: true });
        copyAsync(x.at(slice(step.mul(length), length)), buffer, { barrier: landed });
        landed.wait();
        copyAsync(buffer, out.at(slice(step.mul(length), length)));
        commitGroup();
      });
      waitGroup(0);
    },
  );
  const text = printPtx(lower(moved.kernel, defaultTarget).module);
  expect(text).toContain("cp.async.bulk.tensor.1d.shared");
  expect(text).not.toContain("cp.async.bulk.tensor.1d.global");
  const values = Array.from({ length: steps * length }, (_, place) => place + 1);
  const device = await open("emulator");
  const { out } = await device.run(moved, { x: fromNumbers(f32, [steps * length], values) });
  expect([...toNumbers(out)]).toEqual(values.slice(0, -1));
  device.dispose();
});

test("a copy hands the cache a policy where it is told to", () => {
  const text = textOf(1000, { evict: "first" });
  expect(text).toContain("createpolicy.fractional.L2::evict_first.b64");
  expect(text).toMatch(/bulk_group\.L2::cache_hint \[.*\], \[.*\], %d\d+;/);
  expect(textOf(1000)).not.toContain("L2::");
  expect(() => textOf(1000, { evict: "never" as "last" })).toThrow("TW2079");
  expect(() => textOf(1000, { evict: 1 as unknown as "last" })).toThrow("TW1008");
});

test("a reduction that only TMA makes is refused there", () => {
  expect(() => textOf(dim("n"), { reduction: "add" })).toThrow("TW7002");
  expect(() => textOf(1000, { reduction: "add" }, 16)).toThrow("TW7002");
  expect(textOf(1001, { reduction: "add" })).toContain("cp.reduce.async.bulk.global");
});
