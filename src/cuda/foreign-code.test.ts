/** PTX and cubins of other compilers: the same calls on the emulator's device and, over the fake driver, on a GPU. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { Emulator } from "../emulator/api/index.ts";
import { openFake, settle } from "../../test/support/fake-driver/harness.ts";
import { readTensorMap } from "../../test/support/fake-driver/launch.ts";
import type { Harness, HarnessOptions } from "../../test/support/fake-driver/harness.ts";
import { hasPtxas } from "../../test/ptxas.ts";
import type { Device } from "../device/device.ts";
import { bf16, f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { cubinEntries } from "./cubin-entries.ts";

/** out = factor · x, as another compiler may have written it. */
const scaledPtx = `.version 8.0
.target sm_90
.address_size 64
.visible .entry scaled(
  .param .u64 .ptr .global x, .param .f32 factor, .param .u64 out, .param .u32 n
) .maxntid 256, 1, 1
{
  .reg .pred %p; .reg .b32 %i, %n, %t; .reg .b64 %x, %out, %step; .reg .f32 %v, %factor;
  ld.param.u64 %x, [x]; ld.param.u64 %out, [out]; ld.param.f32 %factor, [factor]; ld.param.u32 %n, [n];
  mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;
  setp.ge.u32 %p, %i, %n;
  @%p bra END;
  mul.wide.u32 %step, %i, 4; add.s64 %x, %x, %step; add.s64 %out, %out, %step;
  ld.global.f32 %v, [%x]; mul.f32 %v, %v, %factor; st.global.f32 [%out], %v;
END:
  ret;
}`;

const opened: Harness[] = [];

function openTest(options: HarnessOptions = {}): Device {
  const harness = openFake(options);
  opened.push(harness);
  return harness.device;
}

afterEach(async () => {
  for (const { driver, device } of opened.splice(0)) {
    device.dispose();
    await settle();
    expect(driver.live).toEqual({});
    expect(driver.misuses).toEqual([]);
  }
});

function floats(...values: readonly number[]): HostArray<"f32"> {
  return fromNumbers(f32, [values.length], values);
}

function failureOf(work: () => unknown): TilewrightError {
  try {
    work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe.each(["emulator", "gpu"] as const)("PTX on the %s", (name) => {
  const openHere = async (): Promise<Device> => (name === "gpu" ? openTest() : open(name));

  test("is launched, bound and recorded by the words of tilewright/emulator", async () => {
    const emulator = new Emulator();
    const x = emulator.upload(floats(1, 2, 3));
    const out = emulator.allocate(f32, [3]);
    const form = { blocks: 1, threads: 32 };
    emulator.launch(emulator.load(scaledPtx), { ...form, parameters: [x, 2.5, out, 3] });
    const emulated = Array.from(emulator.download(out).data);

    const device = await openHere();
    const module = device.load(scaledPtx, "scaled.ptx");
    expect(module.entry()).toMatchObject({ name: "scaled", maxThreads: [256, 1, 1] });
    const [here, there] = [await device.upload(floats(1, 2, 3)), device.allocate(f32, [3])];
    device.launch(module, { ...form, parameters: [here, 2.5, there, 3] });
    expect(Array.from((await device.download(there)).data)).toEqual(emulated);
    expect(emulated).toEqual([2.5, 5, 7.5]);

    const back = device.bind(module, { ...form, parameters: [there, 2, here, 3] });
    const forth = device.bind(module, { ...form, parameters: [here, 10, there, 3] });
    const round = device.record([back, forth]);
    round.launch();
    const side = device.stream();
    side.launch(module, { ...form, parameters: [there, 2, here, 3] });
    await device.synchronize();
    expect(Array.from((await device.download(here)).data)).toEqual([100, 200, 300]);
    for (const each of [round, back, forth, side, module, here, there]) each.dispose();
    device.dispose();
  });

  test("has its parameters checked", async () => {
    const device = await openHere();
    const module = device.load(scaledPtx);
    const x = await device.upload(floats(1, 2, 3));
    const launch = (settings: object): TilewrightError =>
      failureOf(() => {
        device.launch(module, { blocks: 1, threads: 32, parameters: [x, 2, x, 3], ...settings });
      });
    expect(launch({ parameters: [x, 2] }).code).toBe("TW8003");
    expect(launch({ parameters: [x, x, x, 3] })).toMatchObject({
      code: "TW8004",
      found: "an array f32[3]",
    });
    expect(launch({ parameters: [x, 2, floats(1), 3] }).code).toBe("TW8004");
    expect(launch({ entry: "other" }).code).toBe("TW8003");
    expect(launch({ blocks: 0 }).code).toBe("TW4016");
    expect(launch({ seed: 3 }).code).toBe("TW4015");
    const other = await open("emulator");
    const foreign = await other.upload(floats(1));
    expect(launch({ parameters: [foreign, 2, x, 3] }).code).toBe("TW4011");
    expect(
      failureOf(
        () => other.load(scaledPtx).dispose() ?? other.launch(module, { blocks: 1, threads: 1 }),
      ).code,
    ).toBe("TW4031");
    module.dispose();
    expect(launch({}).code).toBe("TW4031");
    expect(failureOf(() => device.load(5 as never)).code).toBe("TW4023");
    x.dispose();
    foreign.dispose();
    other.dispose();
    device.dispose();
  });
});

describe("on the emulator", () => {
  test("findings fail the launch", async () => {
    const device = await open("emulator");
    const [x, y] = [device.allocate(f32, [4]), device.allocate(f32, [4])];
    device.launch(device.load(scaledPtx), { blocks: 1, threads: 32, parameters: [x, 2, y, 4] });
    await expect(device.synchronize()).rejects.toMatchObject({ code: "TW8013" });
    x.dispose();
    y.dispose();
    device.dispose();
  });

  test("limits end an endless entry", async () => {
    const device = await open("emulator");
    const endless = ".version 8.0\n.target sm_90\n.address_size 64\n.entry e() { L: bra L; }";
    device.launch(device.load(endless), { blocks: 1, threads: 32, stepLimit: 1000 });
    await expect(device.synchronize()).rejects.toMatchObject({ code: "TW3022" });
    device.dispose();
  });

  test("the simulator runs no code, and the emulator no cubins", async () => {
    const [simulator, emulator] = [await open("simulator"), await open("emulator")];
    expect(failureOf(() => simulator.load(scaledPtx)).code).toBe("TW4019");
    expect(failureOf(() => emulator.load(new Uint8Array(8))).code).toBe("TW4019");
    simulator.dispose();
    emulator.dispose();
  });
});

describe("on a GPU", () => {
  test("grid, lanes, clusters, shared memory and structures arrive", async () => {
    const seen: unknown[] = [];
    const device = openTest({
      kernels: {
        form: {
          sizes: [16, 1, 8],
          run: ({ grid, lanes, cluster, sharedBytes, parameters: [first, second, third] }) => {
            seen.push(grid, lanes, cluster, sharedBytes);
            seen.push(first?.getUint8(15), second?.getInt8(0), third?.getBigInt64(0, true));
          },
        },
      },
    });
    const module = device.load(
      ".version 8.0\n.target sm_90\n.address_size 64\n" +
        ".entry form(.param .align 16 .b8 s[16], .param .s8 b, .param .b64 wide) { ret; }",
    );
    const structure = new Uint8Array(16).fill(7);
    device.launch(module, {
      blocks: [4, 2],
      threads: [64, 2, 1],
      cluster: 2,
      sharedBytes: 1024,
      parameters: [structure, -3, -5n],
    });
    await device.synchronize();
    expect(seen).toEqual([4, 64, 2, 1024, 7, -3, -5n]);
    expect(
      failureOf(() => {
        device.launch(module, {
          blocks: 1,
          threads: 32,
          sharedBytes: 10 ** 6,
          parameters: [structure, 0, 0],
        });
      }).code,
    ).toBe("TW4507");
    expect(
      failureOf(() => {
        device.launch(module, {
          blocks: 1,
          threads: 1,
          stepLimit: 5,
          parameters: [structure, 0, 0],
        });
      }).code,
    ).toBe("TW4016");
  });

  test("tensor maps are the driver's own", async () => {
    const maps: unknown[] = [];
    const device = openTest({
      kernels: {
        mapped: {
          sizes: [128],
          run: ({ parameters: [map] }) => maps.push(map && readTensorMap(map)),
        },
      },
    });
    const module = device.load(
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry mapped(.param .align 64 .b8 map[128]) { ret; }",
    );
    const x = device.allocate(bf16, [64, 256]);
    const map = device.tensorMap(x, { box: [64, 8], swizzle: 128 });
    device.launch(module, { blocks: 1, threads: 32, parameters: [map] });
    const pixels = device.allocate(bf16, [2, 8, 8, 64]);
    const corners = { lower: [0, 0], upper: [-2, -2] };
    const columns = device.tensorMap(pixels, { box: [64, 32], corners });
    device.launch(module, { blocks: 1, threads: 32, parameters: [columns] });
    await device.synchronize();
    expect(maps[0]).toMatchObject({
      dataType: 9,
      extents: [256, 64],
      strides: [512],
      box: [64, 8],
      swizzle: 3,
    });
    expect(maps).toHaveLength(2);
    const narrow = device.tensorMap(x, { box: [3, 8] });
    expect(
      failureOf(() => {
        device.launch(module, { blocks: 1, threads: 32, parameters: [narrow] });
      }).code,
    ).toBe("TW8050");
    x.dispose();
    pixels.dispose();
  });

  test("what is no cubin is refused before the driver sees it", () => {
    expect(failureOf(() => openTest().load(new Uint8Array(100))).code).toBe("TW4032");
    expect(cubinEntries(Uint8Array.of(0x7f, 0x45, 0x4c, 0x46, 0, 0))).toBeUndefined();
  });

  test.runIf(hasPtxas)("a cubin of ptxas says what its entries take", () => {
    const folder = mkdtempSync(join(tmpdir(), "cubin-"));
    try {
      const [source, output] = [join(folder, "a.ptx"), join(folder, "a.cubin")];
      const two = `${scaledPtx}
.visible .entry second(.param .align 64 .b8 map[128], .param .u8 flag, .param .align 8 .b8 s[24]) .reqntid 128, 1, 1
{ ret; }`;
      writeFileSync(source, two);
      expect(spawnSync("ptxas", ["-arch=sm_90", "-o", output, source]).status).toBe(0);
      const entries = cubinEntries(readFileSync(output)) ?? [];
      const scaled = entries.find(({ name }) => name === "scaled");
      expect(scaled?.parameters.map(({ type, bytes }) => [type, bytes])).toEqual([
        ["b64", 8],
        ["b32", 4],
        ["b64", 8],
        ["b32", 4],
      ]);
      expect(scaled?.maxThreads).toEqual([256, 1, 1]);
      const second = entries.find(({ name }) => name === "second");
      expect(second?.parameters.map(({ count, bytes }) => [count, bytes])).toEqual([
        [128, 128],
        [undefined, 1],
        [24, 24],
      ]);
      expect(second?.requiredThreads).toEqual([128, 1, 1]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
