/** Arrays on devices, without kernels: filling, views, parts, copies, single elements, memory of others. */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openFake, scaled, settle } from "../../test/support/fake-driver/harness.ts";
import type { Harness } from "../../test/support/fake-driver/harness.ts";
import { bf16, bool, f32, f64, i4, i64, u8 } from "../formats/dtype.ts";
import type { DType, HostValue } from "../formats/dtype.ts";
import { fromNumbers, toNested, toNumbers } from "../formats/hostarray.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { DeviceArray } from "./device-array.ts";
import type { Device } from "./device.ts";

async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

const counting = fromNumbers(
  f32,
  [4, 4],
  Array.from({ length: 16 }, (_, index) => index),
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

  const nested = async (array: DeviceArray): Promise<unknown> =>
    toNested(await device.download(array));

  const fills: readonly (readonly [DType, HostValue])[] = [
    [f32, 1.5],
    [f64, -2.25],
    [bf16, 3],
    [i64, -5n],
    [u8, 7],
    [i4, -3],
    [bool, true],
  ];
  test.each(fills)("fill and zeros of $name", async (dtype, value) => {
    for (const count of [1, 5, 3000]) {
      const array = await device.zeros(dtype, [count]);
      const zero = dtype === bool ? false : dtype === i64 ? 0n : 0;
      expect(await nested(array)).toEqual(Array<unknown>(count).fill(zero));
      await device.fill(array, value);
      expect(await nested(array)).toEqual(Array<unknown>(count).fill(value));
      array.dispose();
    }
  });

  test("views share memory, and stand for arrays in kernels", async () => {
    const array = await device.upload(counting);
    const [rows, flat] = [array.slice(1, 3), array.reshape([16])];
    expect(await nested(rows)).toEqual([
      [4, 5, 6, 7],
      [8, 9, 10, 11],
    ]);
    const row = flat.slice(4, 8);
    const { out } = await device.run(scaled, { x: row, factor: 2 });
    expect(Array.from(toNumbers(out))).toEqual([8, 10, 12, 14]);
    device.launch(scaled, { x: row, factor: 10, out: flat.slice(8, 12) });
    await device.synchronize();
    expect(await nested(array.slice(2, 3))).toEqual([[40, 50, 60, 70]]);
    row.dispose();
    expect(row.disposed).toBe(true);
    array.dispose();
    expect(await codeOf(() => device.download(rows))).toBe("TW4010");
  });

  test("parts are written, copied and read", async () => {
    const array = await device.upload(counting);
    await device.write(array.slice(3), fromNumbers(f32, [1, 4], [1, 1, 1, 1]));
    await device.copy(array.slice(3), array.slice(0, 1));
    expect(await nested(array)).toEqual([
      [1, 1, 1, 1],
      [4, 5, 6, 7],
      [8, 9, 10, 11],
      [1, 1, 1, 1],
    ]);
    expect(await device.element(array, 2, 3)).toBe(11);
    const packed = await device.upload(fromNumbers(i4, [5], [1, -2, 3, -4, 5]));
    for (const [index, value] of [1, -2, 3, -4, 5].entries())
      expect(await device.element(packed, index)).toBe(value);
    packed.dispose();
    array.dispose();
  });

  test("what does not fit is refused", async () => {
    const array = await device.upload(counting);
    const packed = await device.zeros(i4, [3, 3]);
    const refused: readonly (readonly [string, () => unknown])[] = [
      ["TW4025", () => array.slice(2, 5)],
      ["TW4025", () => array.slice(3, 2)],
      ["TW4025", () => array.slice(-1)],
      ["TW4025", () => array.slice(0.5)],
      ["TW4025", () => array.reshape([3, 5])],
      ["TW4025", () => packed.slice(1)],
      ["TW4025", () => device.write(array, fromNumbers(f32, [16], new Float32Array(16)))],
      ["TW4025", () => device.copy(array.slice(1), array)],
      ["TW4025", () => device.element(array, 4, 0)],
      ["TW4025", () => device.element(array, 0)],
      ["TW0004", () => device.fill(array, "1" as never)],
      ["TW4023", () => device.fill(5 as never, 1)],
      ["TW4026", () => device.run(scaled, { x: array.reshape([16]).slice(1, 5), factor: 1 })],
      [
        "TW4014",
        () => {
          const flat = array.reshape([16]);
          device.launch(scaled, { x: flat.slice(0, 8), factor: 1, out: flat.slice(4, 12) });
        },
      ],
    ];
    for (const [code, work] of refused) expect(await codeOf(work)).toBe(code);
    array.dispose();
    packed.dispose();
  });
});

describe("memory of other libraries", () => {
  let fake: Harness;
  beforeEach(() => {
    fake = openFake();
  });

  test("is shared by address, in DLPack's fields, and frees nothing", async () => {
    const { device, driver } = fake;
    const array = await device.upload(counting);
    const shared = device.share(array.slice(1));
    expect(shared).toMatchObject({
      byteOffset: 0,
      shape: [3, 4],
      strides: [4, 1],
      dtype: { code: 2, bits: 32, lanes: 1 },
      device: { type: 2, id: 0 },
    });
    const wrapped = device.wrap(shared.data, f32, [12]);
    const { out } = await device.run(scaled, { x: wrapped.slice(0, 4), factor: 2 });
    expect(Array.from(toNumbers(out))).toEqual([8, 10, 12, 14]);
    wrapped.dispose();
    expect(device.leaks).toHaveLength(1);
    expect(await device.element(array, 3, 3)).toBe(15);
    array.dispose();
    device.dispose();
    await settle();
    expect(driver.live).toEqual({});
    expect(driver.misuses).toEqual([]);
  });

  test("needs an address that an array can begin at", async () => {
    for (const pointer of [0n, 24n, -16, 1.5, NaN, "16", null, 2n ** 70n])
      expect(await codeOf(() => fake.device.wrap(pointer as bigint, f32, [4]))).toBe("TW4026");
    fake.device.dispose();
    const simulator = await open("simulator");
    expect(await codeOf(() => simulator.wrap(16n, f32, [4]))).toBe("TW4027");
    const array = await simulator.zeros(f32, [4]);
    expect(await codeOf(() => simulator.share(array))).toBe("TW4027");
    array.dispose();
    simulator.dispose();
  });
});
