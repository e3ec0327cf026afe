import { describe, expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { withHostTurns } from "../../../test/support/clocks.ts";
import { bf16, f32, f64, i32, u32, u8 } from "../../formats/dtype.ts";
import { fromNumbers, hostArray, toNumbers } from "../../formats/hostarray.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { targets } from "../../targets/target.ts";
import { decodeTensorMap } from "../tensor-map.ts";
import { Emulator } from "./index.ts";
import type { LaunchSettings, ParameterValue } from "./index.ts";

const axpy = `.version 8.0
.target sm_90a
.address_size 64
.file 1 "axpy.cu"
.visible .entry axpy(.param .u64 x, .param .u64 out, .param .u32 n, .param .f32 alpha, .param .b32 beta)
{
  .reg .pred %p; .reg .b32 %r<6>; .reg .f32 %f<5>; .reg .b64 %d<5>;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  ld.param.u32 %r4, [n];
  setp.ge.s32 %p, %r3, %r4;
  @%p bra $end;
  ld.param.u64 %d0, [x]; ld.param.u64 %d1, [out];
  ld.param.f32 %f0, [alpha]; ld.param.f32 %f1, [beta];
  mul.wide.s32 %d2, %r3, 4;
  add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
  .loc 1 7 3
  ld.global.f32 %f2, [%d3];
  fma.rn.f32 %f3, %f0, %f2, %f1;
  .loc 1 8 3
  st.global.f32 [%d4], %f3;
$end:
  ret;
}
.visible .entry nothing(.param .align 64 .b8 map[128]) .reqntid 32, 1, 1 { ret; }
`;

function thrownBy(run: () => unknown): TilewrightError {
  try {
    run();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

function prepared(count = 100) {
  const emulator = new Emulator();
  const module = emulator.load(axpy, "axpy.ptx");
  const values = Float64Array.from({ length: count }, (_, index) => index - 7);
  const x = emulator.upload(fromNumbers(f32, [count], values), "x");
  const out = emulator.allocate(f32, [count], "out");
  return { emulator, module, x, out, values };
}

describe("a module", () => {
  test("tells its entries with their parameters", () => {
    const { module } = prepared();
    expect(module).toMatchObject({ target: "sm_90a", version: "8.0" });
    const [first, second] = module.entries;
    expect(first?.name).toBe("axpy");
    expect(first?.parameters.map(({ name, type, bytes }) => [name, type, bytes])).toEqual([
      ["x", "u64", 8],
      ["out", "u64", 8],
      ["n", "u32", 4],
      ["alpha", "f32", 4],
      ["beta", "b32", 4],
    ]);
    expect(second).toMatchObject({ name: "nothing", requiredThreads: [32, 1, 1] });
    expect(second?.parameters).toMatchObject([{ type: "b8", count: 128, bytes: 128 }]);
  });

  test("asks for a name where it has several entries, and lists them", () => {
    const { module } = prepared();
    expect(thrownBy(() => module.entry())).toMatchObject({
      code: "TW8003",
      expected: "axpy, nothing",
    });
    expect(thrownBy(() => module.entry("apxy")).found).toBe("apxy");
  });

  test("is text", () => {
    const bytes = new TextEncoder().encode(axpy) as unknown as string;
    expect(thrownBy(() => new Emulator().load(bytes))).toMatchObject({ code: "TW8004" });
  });
});

describe("a launch", () => {
  const settings = (parameters: readonly ParameterValue[]): LaunchSettings => ({
    entry: "axpy",
    blocks: 2,
    threads: 64,
    parameters,
  });

  test("runs with arrays and numbers by the types of parameters", () => {
    const { emulator, module, x, out, values } = prepared();
    const launch = settings([x, out, 100, 0.5, { dtype: f32, value: 1.25 }]);
    const { findings, counters } = emulator.launch(module, launch);
    expect(findings).toEqual([]);
    expect([...toNumbers(emulator.download(out))]).toEqual([...values].map((v) => v / 2 + 1.25));
    // 12 instructions before the end of the guard for all lanes, the rest for 100 of them.
    expect(counters.laneInstructions).toBeGreaterThan(100 * 15);
    expect(counters.warpInstructions).toBeGreaterThan(4 * 15);
  });

  test("takes addresses, typed values, bytes and null", () => {
    const { emulator, module, x, out } = prepared();
    const count = new Uint8Array(Int32Array.of(10).buffer);
    const moved = x.address + 4 * 20;
    emulator.launch(module, settings([moved, BigInt(out.address), count, 1, 0]));
    expect([...toNumbers(emulator.download(out)).subarray(0, 10)]).toEqual(
      Array.from({ length: 10 }, (_, index) => index + 13),
    );
    emulator.launch(module, settings([null, out, { dtype: i32, value: 0 }, 1, 0]));
  });

  test("knows what nothing has written", () => {
    const { emulator, module, x, out } = prepared();
    expect(emulator.unwrittenBytes(out)).toBe(400);
    emulator.launch(module, settings([x, out, 90, 1, 0]));
    expect(emulator.unwrittenBytes(out)).toBe(40);
  });

  test("gives findings the lines of the source and of the text", () => {
    const { emulator, module, out } = prepared();
    const x = emulator.allocate(f32, [100], "x");
    const { findings } = emulator.launch(module, settings([x, out, 100, 1, 0]));
    expect(findings.map(({ code }) => code)).toContain("TW8013");
    const unwritten = findings.find(({ code }) => code === "TW8013");
    const line = 1 + axpy.split("\n").findIndex((text) => text.includes("ld.global"));
    expect(unwritten?.position).toEqual({ file: "axpy.cu", line: 7, column: 3 });
    expect(unwritten?.generated).toEqual({ file: "axpy.ptx", line, column: 1 });
    expect(unwritten?.message).toContain(`at axpy.cu:7:3, axpy.ptx:${line}:1`);
    const without = { ...settings([x, out, 100, 1, 0]), checks: false };
    expect(emulator.launch(module, without).findings).toEqual([]);
  });

  test("throws what stops the kernel, at the line of the text where there is no other", () => {
    const emulator = new Emulator();
    const text = axpy.replaceAll(/^\s*\.loc.*\n/gm, "");
    const module = emulator.load(text, "axpy.ptx");
    const x = emulator.upload(fromNumbers(f32, [4], [1, 2, 3, 4]), "x");
    const out = emulator.allocate(f32, [4], "out");
    const error = thrownBy(() => emulator.launch(module, settings([x, out, 64, 1, 0])));
    const line = 1 + text.split("\n").findIndex((each) => each.includes("ld.global"));
    expect(error).toMatchObject({ code: "TW8010", position: { file: "axpy.ptx", line } });
    expect(error.found).toMatch(/, element \d+ of x, which has 4: f32\[4\]$/);
  });

  test("names the element that two warps race for, wherever the array lies", () => {
    const emulator = new Emulator();
    const text = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry clash(.param .u64 out)
{
  .reg .b32 %r; .reg .b64 %d;
  mov.u32 %r, %warpid;
  ld.param.u64 %d, [out];
  st.global.u32 [%d+40], %r;
  ret;
}`;
    emulator.allocate(u8, [100_000], "far");
    const out = emulator.allocate(i32, [4, 8], "out");
    const module = emulator.load(text, "clash.ptx");
    const { findings } = emulator.launch(module, { blocks: 1, threads: 64, parameters: [out] });
    expect(findings.map(({ code, found }) => [code, found])).toEqual([
      ["TW8014", "both touch element [1, 2] of out, i32[4, 8]"],
    ]);
  });

  test("names the line of what cannot be run", () => {
    const text = axpy.replace("fma.rn.f32 %f3, %f0, %f2, %f1;", "vfma.f32 %f3, %f0, %f2, %f1;");
    const emulator = new Emulator();
    const module = emulator.load(text, "axpy.ptx");
    const error = thrownBy(() => emulator.launch(module, settings([null, null, 0, 1, 0])));
    expect(error.code).toBe("TW8001");
    const line = 1 + text.split("\n").findIndex((each) => each.includes("vfma.f32"));
    expect(error.generated).toMatchObject({ file: "axpy.ptx", line });
  });

  test("takes the cluster that the entry requires", () => {
    const url = new URL("../../../test/fixtures/ptx/nvcc/cluster.ptx", import.meta.url);
    const emulator = new Emulator();
    const module = emulator.load(readFileSync(url, "utf8"), "cluster.ptx");
    expect(module.entry().requiredCluster).toBe(4);
    const launch = { blocks: 2, threads: 32, parameters: [null, null, null] };
    expect(thrownBy(() => emulator.launch(module, launch)).summary).toBe(
      "blocks do not fill clusters",
    );
  });
});

describe("tensor maps", () => {
  test("follow from the array", () => {
    const emulator = new Emulator();
    const array = emulator.allocate(bf16, [4, 64, 256]);
    const { bytes } = emulator.tensorMap(array, { box: [64, 8, 1], swizzle: 128 });
    expect(decodeTensorMap(bytes)).toMatchObject({
      type: "bf16",
      address: array.address,
      extents: [256, 64, 4],
      strides: [512, 512 * 64],
      box: [64, 8, 1],
      elementStrides: [1, 1, 1],
      swizzle: 128,
      fill: "zero",
    });
  });

  test("are given for parameters of 128 bytes", () => {
    const { emulator, module } = prepared();
    const map = emulator.tensorMap(emulator.allocate(u8, [16, 16]), { box: [16, 16] });
    const launch = { entry: "nothing", blocks: 1, threads: 32 };
    expect(emulator.launch(module, { ...launch, parameters: [map] }).findings).toEqual([]);
    expect(thrownBy(() => emulator.launch(module, { ...launch, parameters: [3] }))).toMatchObject({
      code: "TW8004",
      expected: "a tensor map, or a Uint8Array of 128 bytes",
      found: "3",
    });
  });

  test("that the driver would refuse are refused", () => {
    const emulator = new Emulator();
    const array = emulator.allocate(f32, [8, 3]);
    expect(thrownBy(() => emulator.tensorMap(array, { box: [4, 8] })).code).toBe("TW8050");
  });
});

describe("mistakes are reported where launch was called", () => {
  const { emulator, module, x, out } = prepared();
  const good: LaunchSettings = {
    entry: "axpy",
    blocks: 2,
    threads: 64,
    parameters: [x, out, 100, 1, 0],
  };
  const withParameter = (position: number, value: unknown): LaunchSettings => ({
    ...good,
    parameters: [x, out, 100, 1, 0].with(position, value as number),
  });
  const cases: readonly (readonly [string, string, unknown, string])[] = [
    ["a setting that does not exist", "TW4015", { ...good, block: 2 }, "unknown option block"],
    ["no blocks", "TW4016", { ...good, blocks: 0 }, "blocks of launch cannot be 0"],
    [
      "threads in four directions",
      "TW4016",
      { ...good, threads: [1, 1, 1, 1] },
      "threads of launch",
    ],
    [
      "a setting by its earlier name",
      "TW4015",
      { ...good, lanes: 32 },
      "unknown option lanes of launch, which is called threads",
    ],
    ["half a block", "TW4016", { ...good, blocks: [1, 0.5] }, "blocks of launch cannot be 0.5"],
    ["a seed that is no number", "TW4016", { ...good, seed: "7" }, "seed of launch"],
    ["checks that are no truth", "TW4016", { ...good, checks: 1 }, "checks of launch"],
    ["an unknown target", "TW4016", { ...good, target: "sm_42" }, "target of launch"],
    ["negative shared memory", "TW4016", { ...good, sharedBytes: -1 }, "sharedBytes of launch"],
    ["too much shared memory", "TW8003", { ...good, sharedBytes: 300_000 }, "more shared memory"],
    ["too few parameters", "TW8003", { ...good, parameters: [x] }, "another number of parameters"],
    ["an unknown entry", "TW8003", { ...good, entry: "axpi" }, "no entry axpi"],
    [
      "another block than required",
      "TW8003",
      { entry: "nothing", blocks: 1, threads: 64, parameters: [new Uint8Array(128)] },
      "requires another block",
    ],
    ["an array for a number", "TW8004", withParameter(2, x), ".param .u32 n"],
    ["a fraction for a whole number", "TW8004", withParameter(2, 0.5), ".param .u32 n"],
    ["a fraction for bits", "TW8004", withParameter(4, 0.5), ".param .b32 beta"],
    ["a number that is too large", "TW8004", withParameter(2, 2 ** 32), ".param .u32 n"],
    ["a wider format", "TW8004", withParameter(4, { dtype: f64, value: 1 }), ".param .b32 beta"],
    ["null for a number", "TW8004", withParameter(2, null), ".param .u32 n"],
    ["a text", "TW8004", withParameter(2, "100"), ".param .u32 n"],
    ["nothing", "TW8004", withParameter(2, undefined), ".param .u32 n"],
    [
      "an array of the host",
      "TW8004",
      withParameter(0, fromNumbers(f32, [1], [1])),
      ".param .u64 x",
    ],
    ["bytes of another number", "TW8004", withParameter(2, new Uint8Array(8)), ".param .u32 n"],
    ["an array of another emulator", "TW8005", withParameter(0, prepared().x), "array x, f32[100]"],
  ];

  test.each(cases)("%s", (_title, code, settings, summary) => {
    const error = thrownBy(() => emulator.launch(module, settings as LaunchSettings));
    expect(error.code).toBe(code);
    expect(error.summary).toContain(summary);
    expect(error.position?.file).toMatch(/emulator\.test\.ts$/);
  });
});

describe("calls with something of another kind", () => {
  const { emulator, module, x } = prepared();
  const misuse = emulator as unknown as { readonly [name: string]: (...given: unknown[]) => void };
  const cases: readonly (readonly [string, string, () => unknown])[] = [
    ["TW0007", "this is no number format", () => misuse["allocate"]?.("f32", [4])],
    ["TW0003", "the shape is not a list", () => misuse["allocate"]?.(f32, 4)],
    ["TW8004", "upload takes an array of the host", () => misuse["upload"]?.([1, 2])],
    ["TW8004", "write takes an array of the host", () => misuse["write"]?.(x, [1, 2])],
    ["TW8005", "this is no array of an emulator", () => misuse["download"]?.("x")],
    ["TW8004", "launch takes a module first", () => misuse["launch"]?.(axpy, { blocks: 1 })],
    ["TW4015", "the options of launch", () => misuse["launch"]?.(module)],
    ["TW4015", "the options of tensorMap", () => misuse["tensorMap"]?.(x)],
    ["TW4015", "unknown option swirl", () => misuse["tensorMap"]?.(x, { box: [4], swirl: 1 })],
    ["TW4016", "box of tensorMap cannot be 4", () => misuse["tensorMap"]?.(x, { box: 4 })],
  ];

  test.each(cases)("%s, %s", (code, summary, call) => {
    const error = thrownBy(call);
    expect([error.code, error.summary]).toEqual([code, expect.stringContaining(summary)]);
    expect(error.position?.file).toMatch(/emulator\.test\.ts$/);
  });
});

describe("memory", () => {
  test("is written and read as a whole", () => {
    const { emulator, x } = prepared(3);
    emulator.write(x, fromNumbers(f32, [3], [1, 2, 3]));
    expect([...toNumbers(emulator.download(x))]).toEqual([1, 2, 3]);
    const other = fromNumbers(f32, [4], [1, 2, 3, 4]);
    expect(thrownBy(() => emulator.write(x, other))).toMatchObject({
      code: "TW8004",
      expected: "12 bytes of f32",
      found: "16 bytes of f32",
    });
  });

  test("that was freed cannot be used", () => {
    const { emulator, x } = prepared();
    emulator.free(x);
    for (const use of [
      () => emulator.download(x),
      () => emulator.free(x),
      () => emulator.tensorMap(x, { box: [4] }),
    ])
      expect(thrownBy(use)).toMatchObject({ code: "TW8005" });
  });

  test("has an end", () => {
    const huge = thrownBy(() => new Emulator().allocate(f32, [2 ** 31]));
    expect(huge).toMatchObject({ code: "TW8005", found: `${2 ** 33} bytes more` });
  });
});

test("limits are those of the architecture that the text names, or of the target given", () => {
  const emulator = new Emulator();
  const text = axpy.replace("sm_90a", "sm_80");
  const module = emulator.load(text);
  const launch = { entry: "nothing", blocks: 1, threads: 32, parameters: [new Uint8Array(128)] };
  const sharedBytes = targets.sm_80.sharedMemoryPerBlock + 16;
  expect(thrownBy(() => emulator.launch(module, { ...launch, sharedBytes })).summary).toContain(
    "a block of sm_80",
  );
  const target = "sm_90a" as const;
  expect(emulator.launch(module, { ...launch, sharedBytes, target }).findings).toEqual([]);
  const unknown = emulator.load(axpy.replace("sm_90a", "sm_130"));
  expect(thrownBy(() => emulator.launch(unknown, launch))).toMatchObject({
    code: "TW8003",
    found: "sm_130",
  });
});

describe("launches that the host does not wait for", () => {
  const text = `.version 8.0
.target sm_80
.address_size 64
.visible .entry count(.param .u64 out, .param .u32 trips) {
.reg .pred %p; .reg .b32 %r<4>; .reg .b64 %d<3>;
ld.param.u64 %d0, [out]; ld.param.u32 %r0, [trips];
mov.u32 %r1, 0;
$again: add.u32 %r1, %r1, 1; setp.lt.u32 %p, %r1, %r0; @%p bra $again;
mov.u32 %r2, %ctaid.x; mul.wide.u32 %d1, %r2, 4; add.s64 %d2, %d0, %d1;
mov.u32 %r3, %tid.x; setp.eq.u32 %p, %r3, 0; @%p st.global.u32 [%d2], %r1;
ret;
}`;

  test("give what launch gives, while timers go on and arrays are allocated", async () => {
    const emulator = new Emulator({ threads: 1 });
    const module = emulator.load(text);
    const out = emulator.allocate(u32, [8], "out");
    const settings = { blocks: 8, threads: 64, parameters: [out, 500] } as const;
    const { result, turns } = await withHostTurns(
      () => undefined,
      async () => {
        const running = emulator.run(module, settings);
        const large = emulator.allocate(u32, [2 ** 19], "large");
        const uses: readonly (() => unknown)[] = [
          () => emulator.download(out),
          () => emulator.upload(hostArray(u32, [2])),
          () => emulator.write(out, hostArray(u32, [8])),
          () => emulator.free(out),
          () => emulator.unwrittenBytes(out),
          () => emulator.launch(module, settings),
        ];
        for (const use of uses) expect(use).toThrow("TW8006");
        await expect(emulator.run(module, settings)).rejects.toThrow("TW8006");
        return { large, ...(await running) };
      },
    );
    const { large, findings, counters } = result;
    expect(findings).toEqual([]);
    // One for each block at least.
    expect(turns).toBeGreaterThan(8);
    expect([...emulator.download(out).data]).toEqual(new Array(8).fill(500));
    emulator.write(large, hostArray(u32, [2 ** 19]));
    expect(emulator.launch(module, settings).counters).toEqual(counters);
    emulator.dispose();
  });

  test("can be stopped, and the emulator goes on", async () => {
    const emulator = new Emulator({ threads: 1 });
    const module = emulator.load(text);
    const out = emulator.allocate(u32, [1]);
    const launch = (trips: number) =>
      ({ blocks: 1, threads: 32, parameters: [out, trips] }) as const;
    const endless = { ...launch(2 ** 32 - 1), signal: AbortSignal.timeout(30) };
    await expect(emulator.run(module, endless)).rejects.toThrow("TW3022");
    await emulator.run(module, launch(3));
    expect([...emulator.download(out).data]).toEqual([3]);
    emulator.dispose();
  });

  test.each([0, 1.5, "two"])("refuse %j threads", (threads) => {
    expect(() => new Emulator({ threads: threads as number })).toThrow("TW4016");
  });
});
