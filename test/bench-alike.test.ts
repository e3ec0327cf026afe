/** Kernels timed beside others that compute the same: results are compared first, and files may bring kernels of their own. */
import { afterEach, expect, test, vi } from "vitest";
import { tensor, bf16, kernel, open } from "tilewright";
import { timeAlike } from "../bench/gpu/alike.ts";
import type { AlikeWork } from "../bench/gpu/alike.ts";
import { kernelsBeside } from "../bench/gpu/pipeline-kernels.ts";

const work: AlikeWork = {
  title: "32 numbers",
  inputs: { x: [32] },
  output: [32],
  work: 32,
  tolerance: 0,
};
const settings = { rounds: 6, launches: 2 };
const given = { name: "double", inputs: { x: tensor(bf16, [32]) } };

const added = kernel({ ...given, outputs: { out: tensor(bf16, [32]) } }, ({ x, out }) => {
  const values = x.load();
  out.store(values.add(values));
});

const multiplied = kernel(
  { ...given, outputs: { result: tensor(bf16, [32]) } },
  ({ x, result }) => {
    result.store(x.load().mul(2));
  },
);

const trebled = kernel({ ...given, outputs: { out: tensor(bf16, [32]) } }, ({ x, out }) => {
  out.store(x.load().mul(3));
});

/** What is written while `body` runs. */
async function written(body: () => Promise<void>): Promise<string> {
  const writes = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  await body();
  return writes.mock.calls.map(([text]) => String(text)).join("");
}

afterEach(() => {
  vi.restoreAllMocks();
});

test("kernels of one work are told as ratios to the last, whatever they call their result", async () => {
  const device = await open("simulator");
  try {
    const kernels = { added, multiplied };
    const text = await written(() => timeAlike(device, work, settings, kernels));
    expect(text).toMatch(/^32 numbers\nentry .* times multiplied\nadded .*\nmultiplied .*\n/);
  } finally {
    device.dispose();
  }
});

test("a kernel with another result is not timed", async () => {
  const device = await open("simulator");
  try {
    const timed = timeAlike(device, work, settings, { added, trebled });
    await expect(timed).rejects.toThrow(/^trebled: element \d+ is /);
  } finally {
    device.dispose();
  }
});

test("files bring kernels, or functions that make them", async () => {
  const files = ["examples/gemm.ts", "examples/attention.ts"];
  expect(Object.keys(await kernelsBeside(files, "gemm"))).toEqual(["examples/gemm.ts"]);
  const { "examples/attention.ts": made } = await kernelsBeside(files, "attentionOf", {
    causal: true,
  });
  const { "examples/attention.ts": plain } = await kernelsBeside(files, "attentionOf");
  expect(String(made)).not.toBe(String(plain));
  expect(made?.name).toBe("attention");
});
