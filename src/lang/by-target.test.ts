/** Choices by target: each target has the kernel that was chosen for it, wherever kernels are compiled and run. */
import { describe, expect, test } from "vitest";
import { testMistakes } from "../../test/language.ts";
import {
  byTarget,
  cdiv,
  compileAhead,
  dim,
  f32,
  fromNumbers,
  kernel,
  loop,
  open,
  placeKernel,
  slice,
  smem,
  targets,
  tensor,
  toNumbers,
  tracedTarget,
  vmap,
} from "tilewright";
import type { KernelDefinition, TargetName } from "tilewright";

const n = dim("n");
const block = 128;
let traced: string[] = [];

/** Sums by blocks, in as many parts as the target says, and tells which branch was taken. */
function chosen(): KernelDefinition {
  traced = [];
  return kernel(
    {
      name: "chosen",
      grid: { i: byTarget({ sm_80: cdiv(n, 2 * block), default: cdiv(n, block) }) },
      warps: byTarget({ sm_80: 8, sm_90a: 2, default: 4 }),
      minBlocksPerMultiprocessor: byTarget({ sm_80: 2, default: 1 }),
      inputs: { x: tensor(f32, [n]) },
      outputs: { out: tensor(f32, [n]) },
      scratch: {
        stage: byTarget({ sm_80: smem(f32, [2 * block]), default: smem(f32, [block]) }),
      },
    },
    ({ i, x, out, stage }) => {
      traced.push(tracedTarget().name);
      const size = byTarget({ sm_80: 2 * block, default: block }).value();
      stage.store(x.at(slice(i.mul(size), size)).load());
      const sum = stage.load().mul(tracedTarget().features.includes("tma") ? 3 : 2);
      out.at(slice(i.mul(size), size)).store(sum);
    },
  );
}

describe("a kernel that asks for its target", () => {
  test("is traced for the usual one, and once for each other", () => {
    const usual = chosen();
    expect(traced).toEqual(["sm_90a"]);
    const own = usual.kernelFor("sm_80");
    expect([own.warps, own.resident]).toEqual([8, 2]);
    expect([usual.kernel.warps, usual.kernel.resident]).toEqual([2, 1]);
    expect(usual.kernelFor("sm_120a").warps).toBe(4);
    expect(usual.kernelFor("sm_80")).toBe(own);
    expect(usual.kernelFor("sm_90a")).toBe(usual.kernel);
    expect(traced).toEqual(["sm_90a", "sm_80", "sm_120a"]);
  });

  test("is compiled for each as it is there", () => {
    const definition = chosen();
    const threads = (name: TargetName): number => 32 * definition.kernelFor(name).warps;
    for (const name of ["sm_80", "sm_90a", "sm_120a"] as const)
      expect(compileAhead(definition, name).ptx).toContain(`.reqntid ${threads(name)}, 1, 1`);
    expect(placeKernel(definition.kernel, targets.sm_80).memory.bytes).toBe(8 * block);
    expect(definition.roofline({ n: 1024 }, "sm_80")).toBeDefined();
  });

  test.each(["simulator", "emulator"] as const)("runs so on the %s", async (name) => {
    const definition = chosen();
    const x = fromNumbers(
      f32,
      [300],
      Array.from({ length: 300 }, (_, index) => index),
    );
    for (const [target, factor] of [
      ["sm_80", 2],
      ["sm_90a", 3],
    ] as const) {
      const device = await open(name, { target });
      try {
        const { out } = await device.run(definition, { x });
        expect([...toNumbers(out ?? x)]).toEqual([...toNumbers(x)].map((each) => each * factor));
      } finally {
        device.dispose();
      }
    }
  });

  test("is so in a batch, too", () => {
    const one = kernel(
      {
        name: "one",
        warps: byTarget({ sm_80: 8, default: 4 }),
        inputs: { x: tensor(f32, [8]) },
        outputs: { out: tensor(f32, [8]) },
      },
      ({ x, out }) => {
        out.store(x.load());
      },
    );
    const batched = vmap(one, { x: 0 });
    expect([batched.kernel.warps, batched.kernelFor("sm_80").warps]).toEqual([4, 8]);
  });
});

test("a kernel that does not ask is the same for all", () => {
  const plain = kernel({ name: "plain", outputs: { out: tensor(f32, [4]) } }, ({ out }) => {
    loop(1, () => {
      out.store(1);
    });
  });
  expect(plain.kernelFor("sm_80")).toBe(plain.kernel);
});

testMistakes("choices by target", [
  {
    name: "a target without a choice",
    code: "TW1043",
    make: () => kernel({ name: "few", warps: byTarget({ sm_80: 4 }) }, () => undefined), // <- here
    message: "byTarget has no choice for sm_90a",
    expected: "sm_90a or default",
    found: "sm_80",
  },
]);
