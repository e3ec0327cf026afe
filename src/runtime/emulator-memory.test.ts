/** What a program is told where an emulator's memory does not hold what it asks for, and what it may do after that. */
import { afterEach, expect, test, vi } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, debugPrint, kernel } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { open } from "./open.ts";

afterEach(() => {
  vi.unstubAllGlobals();
});

const printing = kernel(
  {
    name: "printing",
    inputs: { x: tensor(f32, [4]) },
    outputs: { out: tensor(f32, [4]) },
  },
  ({ x, out }) => {
    debugPrint("x is {}", x.at(0).loadScalar());
    out.store(x.load());
  },
);
const x = fromNumbers(f32, [4], [1, 2, 3, 4]);

async function thrownBy(run: () => unknown): Promise<TilewrightError> {
  try {
    await run();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

test("arrays beyond 4 GiB are refused, with what holds memory", async () => {
  const device = await open("emulator", { onLeak: () => undefined });
  const kept = await device.upload(x);
  const error = await thrownBy(() => device.allocate(f32, [2 ** 30]));
  expect(error).toMatchObject({ code: "TW8005", found: `${2 ** 32} bytes more` });
  expect(error.position?.file).toMatch(/emulator-memory\.test\.ts$/);
  expect(error.message).toContain("f32[4], 16 bytes");
  expect([...(await device.download(kept)).data]).toEqual([1, 2, 3, 4]);
  expect(device.memory).toMatchObject({ used: 16, allocations: 1 });
  device.dispose();
});

test("a launch whose own memory the process has no room for says so, and the next one runs", async () => {
  const printed: string[] = [];
  const device = await open("emulator", { onPrint: (line) => printed.push(line) });
  const { ArrayBuffer: Whole } = globalThis;
  // What is printed takes 256 KiB.
  class Limited extends Whole {
    constructor(bytes: number) {
      if (bytes > 100_000) throw new RangeError("Array buffer allocation failed");
      super(bytes);
    }
  }
  vi.stubGlobal("ArrayBuffer", Limited);
  const error = await thrownBy(() => device.run(printing, { x }));
  expect(error).toMatchObject({ code: "TW8005" });
  expect(error.position?.file).toMatch(/emulator-memory\.test\.ts$/);
  vi.unstubAllGlobals();
  const { out } = await device.run(printing, { x });
  expect([...out.data]).toEqual([1, 2, 3, 4]);
  expect(printed.length).toBe(1);
  expect(device.memory.used).toBe(0);
  device.dispose();
});
