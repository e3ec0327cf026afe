/**
 * What enters from the host, on every device alike: each array is checked for format, shape, kind and length,
 * and read before the call returns.
 */
import { Buffer } from "node:buffer";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stagingLimit } from "../cuda/staging.ts";
import { openFake, scaled } from "../../test/support/fake-driver/harness.ts";
import type { Device } from "../device/device.ts";
import { bf16, bool, f32, i32, i4 } from "../formats/dtype.ts";
import { fromNested, fromNumbers, hostArray, toNested, toNumbers } from "../formats/hostarray.ts";
import type { GivenArray } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { open } from "./open.ts";

const opened = new Map<string, Device>();
const deviceNames = ["simulator", "emulator", "gpu"] as const;

beforeAll(async () => {
  for (const name of ["simulator", "emulator"] as const) opened.set(name, await open(name));
  opened.set("gpu", openFake().device);
});

afterAll(() => {
  for (const device of opened.values()) device.dispose();
});

function deviceNamed(name: string): Device {
  const device = opened.get(name);
  if (device === undefined) throw new Error(`${name} is not open`);
  return device;
}

async function failure(work: () => unknown): Promise<TilewrightError> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

/** `{ dtype, shape, data }` as a program without types may write it. */
function written(fields: { dtype?: unknown; shape?: unknown; data?: unknown }): GivenArray<"f32"> {
  return { dtype: f32, shape: [4], ...fields } as GivenArray<"f32">;
}

function detached(): Float32Array {
  const data = new Float32Array(4);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  return data;
}

const refused: readonly (readonly [title: string, code: string, given: GivenArray<"f32">])[] = [
  ["too few elements", "TW0001", written({ data: new Float32Array(2) })],
  ["too many elements", "TW0001", written({ data: new Float32Array(8) })],
  ["a transferred buffer", "TW0001", written({ data: detached() })],
  ["too short a list", "TW0001", written({ data: [1, 2, 3] })],
  ["integers for floats", "TW0002", written({ data: new Int32Array(4) })],
  ["doubles for floats", "TW0002", written({ data: new Float64Array(4) })],
  ["a buffer", "TW0002", written({ data: new ArrayBuffer(16) })],
  ["a shared buffer", "TW0002", written({ data: new SharedArrayBuffer(16) })],
  ["a view of bytes", "TW0002", written({ data: new DataView(new ArrayBuffer(16)) })],
  ["a text", "TW0002", written({ data: "abcd" })],
  ["nothing", "TW0002", written({ data: null })],
  ["no data", "TW0002", written({ data: undefined })],
  [
    "an object that says it is a typed array",
    "TW0002",
    written({ data: { length: 4, [Symbol.toStringTag]: "Float32Array" } }),
  ],
  ["a typed array behind a proxy", "TW0002", written({ data: new Proxy(new Float32Array(4), {}) })],
  ["a list with a text", "TW0004", written({ data: [1, 2, "3", 4] })],
  ["a list with a hole", "TW0004", written({ data: Object.assign(new Array<number>(4), [1]) })],
  ["a text for the shape", "TW0003", written({ shape: "4", data: new Float32Array(4) })],
  ["texts in the shape", "TW0003", written({ shape: ["4"], data: new Float32Array(4) })],
  ["a negative extent", "TW0003", written({ shape: [-4], data: new Float32Array(4) })],
  ["a format of one's own", "TW0007", written({ dtype: { ...f32 }, data: new Float32Array(4) })],
];

describe.each(deviceNames)("host data on the %s", (name) => {
  test.each(refused)("%s is %s", async (_title, code, given) => {
    const device = deviceNamed(name);
    const ran = await failure(() => device.run(scaled, { x: given, factor: 2 }));
    expect(ran.code).toBe(code);
    expect(ran.notes.map(({ message }) => message)).toContain(
      "it is given as argument x of kernel scaled",
    );
    expect((await failure(() => device.upload(given))).code).toBe(code);
    expect(device.leaks).toEqual([]);
  });

  test("an array of another format or rank is refused before anything is uploaded", async () => {
    const device = deviceNamed(name);
    const run = (x: GivenArray) => device.run(scaled, { x: x as GivenArray<"f32">, factor: 2 });
    expect((await failure(() => run(hostArray(i32, [4])))).code).toBe("TW4003");
    expect((await failure(() => run(hostArray(f32, [2, 2])))).code).toBe("TW4004");
  });

  const buffer = new Float32Array([9, 9, 1, 2, 3, 4, 9]).buffer;
  const shared = new Float32Array(new SharedArrayBuffer(16));
  shared.set([1, 2, 3, 4]);
  const nodeBuffer = Buffer.from(new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  const taken: readonly (readonly [string, GivenArray<"f32">])[] = [
    ["a view with an offset", written({ data: new Float32Array(buffer, 8, 4) })],
    ["shared memory", written({ data: shared })],
    ["a plain list", written({ data: [1, 2, 3, 4] })],
    [
      "memory of a Node Buffer",
      written({
        data: new Float32Array(
          nodeBuffer.buffer.slice(nodeBuffer.byteOffset, nodeBuffer.byteOffset + 16),
        ),
      }),
    ],
  ];
  test.each(taken)("%s is taken", async (_title, x) => {
    const { out } = await deviceNamed(name).run(scaled, { x, factor: 2 });
    expect(Array.from(toNumbers(out))).toEqual([2, 4, 6, 8]);
  });

  test("a list stands for an array of the parameter's format", async () => {
    const { out } = await deviceNamed(name).run(scaled, { x: [1, 2, 0.1], factor: 2 });
    expect(Array.from(toNumbers(out))).toEqual([2, 4, 2 * Math.fround(0.1)]);
    const ragged = () => deviceNamed(name).run(scaled, { x: [[1, 2], [3]], factor: 2 });
    expect((await failure(ragged)).code).toBe("TW0003");
  });

  test("what is changed after the call is not seen", async () => {
    const device = deviceNamed(name);
    const data = Float32Array.of(1, 2, 3, 4);
    const x = { dtype: f32, shape: [4], data };
    const running = device.run(scaled, { x, factor: 2 });
    data.fill(100);
    const uploading = device.upload({ dtype: f32, shape: [4], data });
    data.fill(200);
    structuredClone(data.buffer, { transfer: [data.buffer] });
    expect(Array.from(toNumbers((await running).out))).toEqual([2, 4, 6, 8]);
    const uploaded = await uploading;
    expect(Array.from(toNumbers(await device.download(uploaded)))).toEqual([100, 100, 100, 100]);
    uploaded.dispose();
  });
});

test("an upload that waits for buffers keeps what the array held", async () => {
  const { device } = openFake({ memoryBytes: 2 ** 31 });
  // The first is larger than all staging memory; the second waits behind it.
  const [first, second] = [new Uint8Array(stagingLimit + 2 ** 16), new Uint8Array(16)];
  first.fill(1);
  second.fill(2);
  const uploads = [first, second].map((data) =>
    device.upload({ dtype: bool, shape: [data.length], data }),
  );
  first.fill(7);
  second.fill(7);
  for (const [index, uploaded] of (await Promise.all(uploads)).entries()) {
    const { data } = await device.download(uploaded);
    expect(Buffer.compare(data, Buffer.alloc(data.length, index + 1))).toBe(0);
    uploaded.dispose();
  }
  device.dispose();
});

describe("nested lists", () => {
  test("come back as they went in", () => {
    for (const list of [
      [1, 2, 3],
      [[1], [2]],
      [[], []],
      [
        [
          [1, 2],
          [3, 4],
        ],
      ],
    ])
      expect(toNested(fromNested(i4, list))).toEqual(list);
    expect(fromNested(bf16, [[1, 2]])).toEqual(fromNumbers(bf16, [1, 2], [1, 2]));
  });

  test.each([[[[1, 2], 3]], [[1, [2]]], [[[1], [2, 3]]], [[[], [1]]], [5], [null]])(
    "%j is no array",
    async (list) => {
      expect((await failure(() => fromNested(f32, list as never))).code).toBe("TW0003");
    },
  );
});

test("readers refuse arrays whose fields do not agree", async () => {
  const short = written({ data: new Float32Array(2) }) as never;
  for (const read of [toNumbers, toNested])
    expect((await failure(() => read(short))).code).toBe("TW0001");
  for (const other of [undefined, null, 5, new Float32Array(4)])
    expect((await failure(() => toNumbers(other as never))).code).toBe("TW0002");
});
