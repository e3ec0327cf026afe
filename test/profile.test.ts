/** Profile scopes on simulator and emulator: what they tell, what they leave alone, and that they cost nothing when off. */
import { describe, expect, test } from "vitest";
import {
  tensor,
  bf16,
  dim,
  dot,
  drawProfiles,
  f32,
  fromNumbers,
  i32,
  kernel,
  loop,
  open,
  profile,
  profileTrace,
  slice,
  toNumbers,
  vmap,
  warps,
  zeros,
} from "tilewright";
import type { HostArray, KernelDefinition, KernelProfile } from "tilewright";
import { lower } from "../src/lower/stages.ts";
import { profiledKernel } from "../src/passes/profile-marks.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";

const n = dim("n");

type Scope = <T>(name: string, body: () => T) => T;
const unscoped: Scope = (_, body) => body();

/** A row softmax, with scopes or without. */
const softmaxOf = (scope: Scope) =>
  kernel(
    {
      name: "softmax",
      grid: { i: n },
      inputs: { x: tensor(f32, [n, 256]) },
      outputs: { out: tensor(f32, [n, 256]) },
    },
    ({ i, x, out }) => {
      const tile = scope("load", () => x.at(i).load());
      const result = scope("softmax", () => {
        const greatest = scope("max", () => tile.max());
        const powers = tile.sub(greatest).exp();
        return powers.div(powers.sum());
      });
      scope("store", () => out.at(i).store(result));
    },
  );

const productOf = (scope: Scope) =>
  kernel(
    {
      name: "product",
      inputs: { a: tensor(bf16, [64, 256]), b: tensor(bf16, [256, 64]) },
      outputs: { c: tensor(f32, [64, 64]) },
    },
    ({ a, b, c }) => {
      const sums = loop({ to: 4, carry: zeros(f32, [64, 64]) }, (k, accumulator) => {
        const here = slice(k.mul(64), 64);
        const [left, right] = scope("load", () => [
          a.at(slice(0, 64), here).load(),
          b.at(here).load(),
        ]);
        return scope("dot", () => dot(left, right, { accumulator }));
      });
      c.store(sums);
    },
  );

/** A loop that does nothing, unless its scopes do. */
const idleOf = (scope: Scope) =>
  kernel({ name: "idle", outputs: { out: tensor(f32, [128]) } }, ({ out }) => {
    loop(4, () => {
      scope("nothing", () => zeros(f32, [128]));
    });
    out.store(1);
  });

function ptxOf({ kernel: traced }: KernelDefinition): string {
  const text = printPtx(lower(traced, targets.sm_90a).module);
  return text.replace(/^ *\.loc .*\n/gm, "");
}

const places = ["simulator", "emulator"] as const;

async function profiles(
  name: (typeof places)[number],
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
): Promise<{ readonly found: readonly KernelProfile[]; readonly results: HostArray[] }> {
  const found: KernelProfile[] = [];
  const device = await open(name, { onProfile: (each) => found.push(each) });
  try {
    const results: { readonly [name: string]: HostArray } = await device.run(definition, inputs);
    return { found, results: Object.values(results) };
  } finally {
    device.dispose();
  }
}

const rows = 3;
const x = fromNumbers(
  f32,
  [rows, 256],
  Array.from({ length: rows * 256 }, (_, index) => Math.sin(index)),
);

test.each([
  ["softmax", softmaxOf],
  ["product", productOf],
  ["a loop that does nothing", idleOf],
] as const)("scopes of %s that nobody asks for leave no trace in its PTX", (_, make) => {
  expect(ptxOf(make(profile))).toBe(ptxOf(make(unscoped)));
});

test("a profiled loop keeps its copies ahead and its products in flight", () => {
  const traced = productOf(profile).kernel;
  const text = ptxOf({ kernel: profiledKernel(traced)?.kernel ?? traced } as KernelDefinition);
  expect(text).toMatch(/cp\.async\.bulk\.tensor/);
  expect(text).toMatch(/wgmma\.wait_group\.sync\.aligned 1;/);
  expect(text.match(/%clock64/g)?.length).toBe(2 + 4);
});

describe.each(places)("on the %s", (name) => {
  test("each block tells its scopes, nested as they are written", async () => {
    const definition = softmaxOf(profile);
    const { found, results } = await profiles(name, definition, { x });
    const plain = await open(name);
    const { out } = await plain.run(definition, { x });
    plain.dispose();
    expect(results[0] && [...toNumbers(results[0])]).toEqual([...toNumbers(out)]);
    const [only, ...others] = found;
    expect(others).toEqual([]);
    expect(only).toMatchObject({ kernel: "softmax", device: name, axes: ["i"], lost: 0 });
    expect(only?.unit).toBe(name === "simulator" ? "steps" : "instructions");
    for (let row = 0; row < rows; row += 1) {
      const own = only?.spans.filter(({ block }) => block[0] === row) ?? [];
      expect(own.map((span) => [span.name, span.depth])).toEqual([
        ["load", 0],
        ["max", 1],
        ["softmax", 0],
        ["store", 0],
      ]);
      const [load, max, whole, store] = own;
      if (!load || !max || !whole || !store) throw new Error("four spans");
      const edges = [load.from, load.to, whole.from, max.from, max.to, whole.to, store.from];
      expect(edges).toEqual([...edges].sort((left, right) => left - right));
      expect(load.to).toBeGreaterThan(load.from);
      // Reductions go through all warps, so that the time within the scope is more than that of a mark.
      expect(max.to - max.from).toBeGreaterThan(1);
      expect(max.position?.line).toBeGreaterThan(load.position?.line ?? Infinity);
    }
  });

  test("scopes within warps are those of each warp", async () => {
    const marked = kernel({ name: "marked", outputs: { out: tensor(i32, [4]) } }, ({ out }) => {
      profile("all", () =>
        warps((warp) => {
          profile("own", () => out.at(warp).store(warp));
        }),
      );
    });
    const { found } = await profiles(name, marked, {});
    const told = found[0]?.spans.map((span) => `${span.name} ${span.warp} ${span.depth}`);
    expect(told?.toSorted()).toEqual(
      [0, 1, 2, 3].flatMap((warp) => [`all ${warp} 0`, `own ${warp} 1`]).toSorted(),
    );
  });

  test("the newest scopes are kept where there are many", async () => {
    const count = 2100;
    const many = kernel({ name: "many", outputs: { out: tensor(i32, [1]) } }, ({ out }) => {
      profile("whole", () => {
        loop(count, (k) => {
          profile("step", () => out.at(0).store(k));
        });
      });
    });
    const { found } = await profiles(name, many, {});
    const [only] = found;
    // 4096 edges: the end of the whole, whose beginning is gone, and 2047 whole steps before it, and an end before them.
    expect(only?.spans.length).toBe(2047);
    expect(only?.spans.every((span) => span.name === "step")).toBe(true);
    expect(only?.lost).toBe(2 + 2 * count - 2 * 2047);
  });

  test("a batch has the scopes of its items", async () => {
    const row = kernel(
      { name: "row", inputs: { v: tensor(f32, [64]) }, outputs: { out: tensor(f32, [64]) } },
      ({ v, out }) => profile("twice", () => out.store(v.load().mul(2))),
    );
    const { found } = await profiles(name, vmap(row, { v: 0 }), {
      v: fromNumbers(f32, [2, 64], new Float32Array(128)),
    });
    expect(found[0]?.spans.map((span) => [span.name, span.block])).toEqual([
      ["twice", [0]],
      ["twice", [1]],
    ]);
  });
});

test("launches tell when the device is synchronized", async () => {
  const found: string[] = [];
  const device = await open("emulator", { onProfile: ({ kernel: told }) => found.push(told) });
  try {
    const [given, out] = [await device.upload(x), device.allocate(f32, [rows, 256])];
    const definition = softmaxOf(profile);
    device.launch(definition, { x: given, out });
    device.launch(softmaxOf(unscoped), { x: given, out });
    device.launch(definition, { x: given, out });
    await device.synchronize();
    expect(found).toEqual(["softmax", "softmax"]);
    given.dispose();
    out.dispose();
    expect(device.leaks).toEqual([]);
  } finally {
    device.dispose();
  }
});

test("a profile is drawn, and written as trace events", async () => {
  const { found } = await profiles("emulator", softmaxOf(profile), { x });
  const drawing = drawProfiles(found);
  expect(drawing).toContain("softmax on the emulator");
  expect(drawing.match(/<title>max: \d+ instructions, from \d+ to \d+/g)?.length).toBe(rows);
  const { traceEvents } = profileTrace(found);
  const processes = traceEvents.filter(({ name }) => name === "process_name");
  const names = new Set(processes.map(({ args }) => args["name"]));
  expect(names).toEqual(new Set([0, 1, 2].map((row) => `block (i = ${row})`)));
  const spans = found[0]?.spans ?? [];
  expect(traceEvents.filter(({ ph }) => ph === "X").map(({ ts, dur }) => [ts, dur])).toEqual(
    spans.map(({ from, to }) => [from, to - from]),
  );
});

test("what profile does not take", () => {
  const made = (body: () => unknown) => () =>
    kernel({ name: "wrong" }, () => {
      body();
    });
  expect(made(() => profile(3 as never, () => 1))).toThrow(/TW1008.*first argument of profile/s);
  expect(made(() => profile("", () => 1))).toThrow(/TW1008/);
  expect(made(() => profile("name", 3 as never))).toThrow(/TW1008.*the body of profile/s);
  expect(made(() => profile("name", async () => 1))).toThrow(/TW10\d\d/);
  expect(() => profile("outside", () => 1)).toThrow(/TW10\d\d/);
});
