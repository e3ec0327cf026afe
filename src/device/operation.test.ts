/** Operations: several launches with scratch between them, wherever a device takes a kernel. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bf16, f32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, scalar, slice } from "../lang/index.ts";
import { fakeKernels, openFake, scaled } from "../../test/support/fake-driver/harness.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Device } from "./device.ts";
import { operation } from "./operation.ts";

const span = 64;
const n = dim("n");
const parts = dim("parts");

/** Sums of 64 elements each. */
const partial = kernel(
  {
    name: "partial",
    grid: { i: cdiv(n, span) },
    inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
    outputs: { sums: tensor(f32, [cdiv(n, span), 1]) },
  },
  ({ i, x, factor, sums }) => {
    const sum = x
      .at(slice(i.mul(span), span))
      .load()
      .mul(factor)
      .sum({ axis: 0, keepDims: true });
    sums.at(slice(i, 1), slice(0, 1)).store(sum.reshape([1, 1]));
  },
);

/** The sum of all of them. */
const final = kernel(
  { name: "final", inputs: { sums: tensor(f32, [parts]) }, outputs: { total: tensor(f32, [1]) } },
  ({ sums, total }) => {
    total.store(sums.at(slice(0, 128)).load().sum({ axis: 0, keepDims: true }).reshape([1]));
  },
);

const sum = operation({
  name: "sum",
  inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
  outputs: { total: tensor(f32, [1]) },
  plan: ({ n: count = 0 }) => {
    const blocks = Math.ceil(count / span);
    return {
      configuration: { span },
      source: "heuristic",
      scratch: { sums: { dtype: f32, shape: [blocks, 1] } },
      launches: [
        {
          kernel: partial,
          arguments: {
            x: { argument: "x" },
            factor: { argument: "factor" },
            sums: { argument: "sums" },
          },
        },
        {
          kernel: final,
          arguments: { sums: { argument: "sums", shape: [blocks] }, total: { argument: "total" } },
        },
      ],
      notes: count % span === 0 ? [] : ["the last block is not full"],
    };
  },
});

/** Twice by a factor, through scratch, which every driver in these tests can run. */
const scaledTwice = operation({
  name: "scaled_twice",
  inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
  outputs: { out: tensor(f32, [n]) },
  plan: ({ n: count = 0 }) => ({
    configuration: {},
    source: "given",
    scratch: { between: { dtype: f32, shape: [1, count] } },
    launches: [
      {
        kernel: scaled,
        arguments: {
          x: { argument: "x" },
          factor: { argument: "factor" },
          out: { argument: "between", shape: [count] },
        },
      },
      {
        kernel: scaled,
        arguments: {
          x: { argument: "between", shape: [count] },
          factor: { scalar: 10 },
          out: { argument: "out" },
        },
      },
    ],
  }),
});

const counting = fromNumbers(
  f32,
  [200],
  Array.from({ length: 200 }, (_, index) => index),
);

describe.each(["simulator", "emulator", "gpu"] as const)("on the %s", (name) => {
  let device: Device;
  beforeEach(async () => {
    device = name === "gpu" ? openFake().device : await open(name);
  });
  afterEach(() => {
    expect(device.leaks).toEqual([]);
    device.dispose();
  });

  test("run, launch, bind and record take operations", async () => {
    const expected = Array.from({ length: 200 }, (_, index) => 20 * index);
    const { out: result } = await device.run(scaledTwice, { x: counting, factor: 2 });
    expect(Array.from(toNumbers(result))).toEqual(expected);

    const x = await device.upload(counting);
    const out = await device.zeros(f32, [200]);
    const numbers = async () => Array.from(toNumbers(await device.download(out)));
    device.launch(scaledTwice, { x, factor: 2, out });
    expect(await numbers()).toEqual(expected);

    await device.fill(out, 0);
    const bound = device.bind(scaledTwice, { x, factor: 2, out });
    bound.launch();
    expect(await numbers()).toEqual(expected);

    await device.fill(out, 0);
    const twice = device.record([bound, bound]);
    twice.launch();
    expect(await numbers()).toEqual(expected);

    twice.dispose();
    bound.dispose();
    bound.dispose();
    x.dispose();
    out.dispose();
  });

  test("arguments are checked as those of a kernel are", async () => {
    const wrong = fromNumbers(bf16, [200], new Float64Array(200));
    await expect(device.run(sum, { x: wrong as never, factor: 2 })).rejects.toThrow("TW4003");
    await expect(device.run(sum, { x: counting } as never)).rejects.toThrow("TW4002");
  });
});

test("scratch hands sums of blocks to the launch that adds them", async () => {
  const device = await open("simulator");
  const { total } = await device.run(sum, { x: counting, factor: 2 });
  expect(toNumbers(total)).toEqual(Float64Array.of(199 * 200));
  device.dispose();
});

test("a kernel that may start early behind its own plan's launch alone does so there", async () => {
  const seen: boolean[] = [];
  const { scaled: own } = fakeKernels;
  if (own === undefined) throw new Error("the fake driver has the kernel");
  const { device } = openFake({
    kernels: {
      scaled: {
        ...own,
        run: (launch) => {
          seen.push(launch.programmaticLaunch);
          own.run(launch);
        },
      },
    },
    plans: { scaled: { dependentLaunch: "in a plan" } },
  });
  const given = { x: counting, factor: 2 };
  await device.run(scaledTwice, given);
  await device.run(scaled, given);
  const [x, out] = [await device.upload(counting), await device.zeros(f32, [200])];
  const bound = device.bind(scaledTwice, { x, factor: 2, out });
  bound.launch();
  await device.synchronize();
  expect(seen).toEqual([false, true, false, false, true]);
  for (const each of [bound, x, out]) each.dispose();
  device.dispose();
});

describe("plans", () => {
  test("say what is launched and what it costs, without a device, and are made once", () => {
    const plan = sum.plan({ n: 200 });
    expect(plan).toMatchObject({
      configuration: { span: 64 },
      source: "heuristic",
      scratchBytes: 16,
      notes: ["the last block is not full"],
    });
    expect(plan.cost().bytes.gmem).toEqual({ read: 4 * 64 * 4 + 128 * 4, written: 4 * 4 + 4 });
    expect(sum.plan({ n: 200 })).toBe(plan);
    expect(sum.kernels({ n: 200 }).map((each) => each.name)).toEqual(["partial", "final"]);
  });

  test("sizes and targets that cannot be are refused", () => {
    expect(() => sum.plan({})).toThrow("TW4008");
    expect(() => sum.plan({ m: 5 })).toThrow("TW4006");
    expect(() => sum.plan({ n: -1 })).toThrow("TW4007");
    expect(() => sum.plan({ n: 1 }, "sm_42" as never)).toThrow("TW4016");
  });

  test("a choice is refused where there is none, or where it is made", () => {
    const chosen = operation({
      ...{ name: "chosen", inputs: { x: tensor(f32, [n]) } },
      choices: { variant: "", bucket: (sizes) => sizes, candidates: () => [] },
      plan: (_, __, choice) => ({ configuration: choice, source: "heuristic", launches: [] }),
    });
    const codeOf = (make: () => unknown): string | undefined => {
      try {
        make();
      } catch (error) {
        return error instanceof TilewrightError ? error.code : String(error);
      }
      return undefined;
    };
    expect(chosen.with({ tile: 64 }).plan({ n: 8 }).configuration).toEqual({ tile: 64 });
    expect(codeOf(() => chosen.with({ tile: 64 }).with({ tile: 128 }))).toBe("TW9812");
    expect(codeOf(() => sum.with({ tile: 64 }))).toBe("TW9812");
  });

  test("a plan that cannot be carried out is told, with what it lacks", () => {
    const planOf = (launch: object, scratch = {}) =>
      operation({
        name: "broken",
        inputs: { x: tensor(f32, [n]) },
        plan: () => ({
          ...{ configuration: {}, source: "given", launches: [launch as never], scratch },
        }),
      });
    const codeOf = (launch: object, scratch = {}): string => {
      try {
        void planOf(launch, scratch).plan({ n: 4 }).launches;
      } catch (error) {
        if (error instanceof TilewrightError) return `${error.code} ${error.message}`;
      }
      return "nothing was thrown";
    };
    expect(codeOf({ kernel: final, arguments: {} })).toMatch(/TW9908.*misses sums, total/);
    const unknown = { sums: { argument: "x" }, total: { argument: "y" } };
    expect(codeOf({ kernel: final, arguments: unknown })).toMatch(/TW9908.*given y/);
    const twice = { x: { dtype: f32, shape: [4] } };
    expect(codeOf({ kernel: final, arguments: {} }, twice)).toMatch(/TW9908.*x names both/);
    expect(() => operation({ name: "none" } as never)).toThrow("TW9908");
    for (const wrong of [undefined, null, 1, "text", {}, [], { launches: 3 }])
      expect(() => operation({ name: "odd", plan: () => wrong as never }).plan({})).toThrow(
        "TW9908",
      );
    for (const launches of [[1], [null], [{}], [{ kernel: final }], () => 1, () => [undefined]])
      expect(() => {
        const plan = () => ({ configuration: {}, source: "given", launches }) as never;
        void operation({ name: "odd", plan }).plan({}).launches;
      }).toThrow("TW9908");
  });
});
