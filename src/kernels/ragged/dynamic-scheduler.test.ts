/**
 * Products of rows in groups whose blocks take tiles from a counter, on GPUs of a few processors, so that each takes several. Inputs are small whole numbers,
 * whose sums every format holds exactly, so results are compared as they are.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f8e4m3fn } from "../../formats/dtype.ts";
import { toNumbers } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import type { OpenOptions } from "../../runtime/open-options.ts";
import { targets } from "../../targets/target.ts";
import { checkDot, raggedInputs } from "../../../test/support/ragged-checks.ts";
import type { DotCase } from "../../../test/support/ragged-checks.ts";
import { scheduleSeeds } from "../../../test/support/sample.ts";
import type { MatmulConfiguration } from "../matmul/configuration.ts";
import { raggedDot } from "./ragged-dot.ts";

const wide: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 2, columns: 64, stages: 2 },
  ...{ schedule: "tiles", swapAB: false, cluster: 1 },
};

/** A device with two processors: blocks are dealt two of ten tiles each, and take the others. */
async function opened(
  kind: "simulator" | "emulator",
  options: Pick<OpenOptions, "schedule" | "seed"> = {},
): Promise<Device> {
  const device = await open(kind, { ...options, target: { ...targets.sm_90a, processors: 2 } });
  onTestFinished(() => {
    device.dispose();
  });
  return device;
}

/** Five rows of tiles: some where a thread has no rows, groups of none and of one row, and rows of nobody. */
const groups = [60, 130, 0, 1, 20];
const small = { name: "tiles", groups, sizes: [215, 128, 136], configuration: wide } as const;
const cases: readonly DotCase[] = [
  small,
  { ...small, name: "tiles with an epilogue", epilogue: true },
  { ...small, name: "tiles of FP8", dtype: f8e4m3fn, byColumns: true },
];

describe.each(["simulator", "emulator"] as const)("on the %s", (kind) => {
  test.each(cases)("$name", async (one) => {
    await checkDot(await opened(kind), one);
  });
});

test("every launch begins with the first tile again, recorded or not", async () => {
  const device = await opened("simulator");
  const { a, b, groupSizes } = raggedInputs(small);
  const op = raggedDot({ a: bf16, b: bf16, out: f32, configuration: wide });
  const out = device.allocate(f32, [215, 128]);
  const given = {
    ...{ a: await device.upload(a.array), b: await device.upload(b.array), out },
    groupSizes: await device.upload(groupSizes),
  };
  const bound = device.bind(op, given as never);
  const recorded = device.record([bound]);
  const found: string[] = [];
  for (const each of [bound, bound, recorded, recorded]) {
    await device.fill(out, NaN);
    each.launch();
    found.push(Array.from(toNumbers(await device.download(out))).join());
  }
  expect(new Set(found).size).toBe(1);
  expect(found[0]).not.toContain("NaN");
  for (const each of Object.values(given)) each.dispose();
  bound.dispose();
});

test("schedules give the same bits, and nothing is found", async () => {
  const { a, b, groupSizes } = raggedInputs(small);
  const op = raggedDot({ a: bf16, b: bf16, configuration: wide });
  const results = new Set<string>();
  for (const seed of scheduleSeeds) {
    const schedule = seed % 2 === 0 ? "random" : "adversarial";
    const device = await opened("simulator", { schedule, seed });
    const { out } = await device.run(op, { a: a.array, b: b.array, groupSizes } as never);
    results.add(Array.from(toNumbers(out)).join());
  }
  expect(results.size).toBe(1);
});
