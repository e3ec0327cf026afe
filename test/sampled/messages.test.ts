/** What kernels say on the emulator: the lines and failures that the simulator gives. */
import { afterEach, describe, expect, test } from "vitest";
import { Device } from "../../src/device/device.ts";
import { bf16, bool, f32, f64, i32, i4, i64 } from "../../src/formats/dtype.ts";
import { fromNumbers, hostArray } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { tensor, assert, debugPrint, kernel, loop, slice, warps } from "../../src/lang/index.ts";
import type { KernelDefinition } from "../../src/lang/index.ts";
import { EmulatorBackend } from "../../src/runtime/emulator-backend.ts";
import { SimulatorBackend } from "../../src/runtime/simulator-backend.ts";

const opened: Device[] = [];
afterEach(() => {
  for (const device of opened.splice(0)) device.dispose();
});

interface Said {
  readonly lines: readonly string[];
  readonly failure: string | undefined;
}

async function said(
  kind: "emulator" | "simulator",
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
): Promise<Said> {
  const lines: string[] = [];
  const onPrint = (line: string): void => void lines.push(line);
  const backend =
    kind === "emulator" ? new EmulatorBackend({ onPrint }) : new SimulatorBackend({ onPrint });
  const device = new Device(backend);
  opened.push(device);
  try {
    await device.run(definition, inputs);
    return { lines: lines.toSorted(), failure: undefined };
  } catch (error) {
    return { lines: lines.toSorted(), failure: error instanceof Error ? error.message : "" };
  }
}

async function expectSame(
  definition: KernelDefinition,
  inputs: { readonly [name: string]: HostArray },
): Promise<Said> {
  const expected = await said("simulator", definition, inputs);
  const found = await said("emulator", definition, inputs);
  // A ring of messages tells the program thread, not the warp.
  const lines = expected.lines.map((line) => line.replace(/, warp \d+\]/, "]"));
  expect(found).toEqual({ ...expected, lines });
  return found;
}

const counted = (count: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => i - 3);

describe("prints", () => {
  test("of scalars and tiles of every width, by block and thread", async () => {
    const printer = kernel(
      {
        name: "prints",
        grid: { i: 2, j: 2 },
        threads: ["first", "second"],
        inputs: {
          a: tensor(f64, [6]),
          b: tensor(bf16, [3, 4]),
          c: tensor(i4, [10]),
          d: tensor(i64, [2]),
          e: tensor(bool, [5]),
        },
        outputs: { out: tensor(i32, [2, 2]) },
      },
      ({ i, j, a, b, c, d, e, out, first, second }) => {
        first(() => {
          debugPrint("{} and {}: {}", i, j.cast(bf16), a.at(2).loadScalar());
          debugPrint("{} {}", b.load(), d.load());
        });
        second(() => {
          debugPrint("{} {} {}", e.load(), c.load(), a.load().transpose());
          out.at(i, j).store(i.add(j));
        });
      },
    );
    const { lines } = await expectSame(printer, {
      a: fromNumbers(f64, [6], counted(6)),
      b: fromNumbers(bf16, [3, 4], counted(12)),
      c: fromNumbers(i4, [10], counted(10)),
      d: hostArray(i64, [2], BigInt64Array.of(-1n, 2n ** 40n)),
      e: fromNumbers(bool, [5], [1, 0, 0, 1, 1]),
    });
    expect(lines).toHaveLength(12);
  });

  test("of warps on their own", async () => {
    const printer = kernel(
      {
        name: "warps",
        inputs: { x: tensor(f32, [4, 16]) },
        outputs: { out: tensor(f32, [4, 16]) },
      },
      ({ x, out }) => {
        warps((warp) => {
          const row = x.at(warp).load();
          debugPrint("{}: {} {}", warp, row.sum(), row);
          out.at(warp).store(row);
        });
      },
    );
    await expectSame(printer, { x: fromNumbers(f32, [4, 16], counted(64)) });
  });
});

describe("assertions", () => {
  const checked = kernel(
    { name: "checks", inputs: { x: tensor(f32, [8, 40]) }, outputs: { out: tensor(f32, [8, 40]) } },
    ({ x, out }) => {
      const tile = x.load();
      assert(tile.lt(300), "small numbers");
      assert(x.at(0, 0).loadScalar().lt(0), "a negative number first");
      out.store(tile);
    },
  );

  test("that hold say nothing", async () => {
    const { failure } = await expectSame(checked, {
      x: fromNumbers(f32, [8, 40], counted(303).concat(Array<number>(17).fill(0))),
    });
    expect(failure).toBeUndefined();
  });

  test("that fail in one element of one lane name it", async () => {
    const numbers = counted(320).map((number) => Math.min(number, 299));
    numbers[205] = 1000;
    const { failure } = await said("emulator", checked, { x: fromNumbers(f32, [8, 40], numbers) });
    expect(failure).toContain("small numbers");
    expect(failure).toContain("[5, 5]");
  });
});

test("a ring that is full keeps what fits, and still tells of a failed assertion", async () => {
  const talkative = kernel(
    {
      name: "talks",
      inputs: { x: tensor(f32, [62, 66]) },
      outputs: { out: tensor(f32, [62, 66]) },
    },
    ({ x, out }) => {
      const tile = x.load();
      loop(16, () => {
        debugPrint("{}", tile);
      });
      assert(x.at(0, slice(0, 8)).load().gt(0), "positive numbers");
      out.store(tile);
    },
  );
  const x = fromNumbers(f32, [62, 66], counted(62 * 66));
  const { lines, failure } = await said("emulator", talkative, { x });
  // 16 records of 4096 words fill the ring's 65536; but 4 of those are its own.
  const records = 15;
  expect(lines.filter((line) => line.includes("further messages"))).toHaveLength(1);
  expect(lines).toHaveLength(records + 1);
  expect(failure).toContain("kernel talks");
});
