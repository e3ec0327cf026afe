import { describe, expect, test } from "vitest";
import { f32, i8 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, assert, cdiv, debugPrint, dim, kernel, scalar, slice } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import type { OpenOptions } from "../runtime/open-options.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { kernelText } from "./compilation.ts";
import type { Device } from "./device.ts";
import { formatLeaks } from "./device-array.ts";
import type { Leak } from "./device-array.ts";

const n = dim("n", { multipleOf: 4 });
const twice = kernel(
  {
    name: "twice",
    grid: { i: cdiv(n, 4) },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, out }) => {
    const here = slice(i.mul(4), 4);
    out.at(here).store(x.at(here).load().mul(2));
  },
);

async function onDevice<T>(
  use: (device: Device) => T | Promise<T>,
  options: OpenOptions = {},
): Promise<T> {
  const device = await open("simulator", { onLeak: () => undefined, ...options });
  try {
    return await use(device);
  } finally {
    device.dispose();
  }
}

async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

function counting(count: number) {
  return fromNumbers(
    f32,
    [count],
    Array.from({ length: count }, (_, i) => i),
  );
}

describe("run", () => {
  test("takes inputs from the host or the device and gives outputs", async () => {
    await onDevice(async (device) => {
      const x = counting(8);
      const uploaded = await device.upload(x);
      for (const input of [x, uploaded]) {
        const { out } = await device.run(twice, { x: input });
        expect(Array.from(toNumbers(out))).toEqual([0, 2, 4, 6, 8, 10, 12, 14]);
      }
      uploaded.dispose();
      expect(device.leaks).toEqual([]);
    });
  });

  test("every extent must agree, not one of them", async () => {
    const square = kernel({ name: "square", inputs: { x: tensor(f32, [2, 4]) } }, () => undefined);
    const run = (shape: readonly number[]) => () =>
      onDevice((device) => device.run(square, { x: fromNumbers(f32, shape, Array(8).fill(0)) }));
    expect(await codeOf(run([2, 4]))).toBe("nothing was thrown");
    expect(await codeOf(run([4, 2]))).toBe("TW4004");
    expect(
      await codeOf(() =>
        onDevice((device) => device.run(square, { x: fromNumbers(f32, [2, 3], Array(6).fill(0)) })),
      ),
    ).toBe("TW4004");
  });

  test("a dimension has one value, which keeps what was promised", async () => {
    const add = kernel(
      { name: "add", inputs: { x: tensor(f32, [n]), y: tensor(f32, [n]) } },
      () => undefined,
    );
    const run = (left: number, right: number) => () =>
      onDevice((device) => device.run(add, { x: counting(left), y: counting(right) }));
    expect(await codeOf(run(8, 8))).toBe("nothing was thrown");
    expect(await codeOf(run(8, 12))).toBe("TW4005");
    expect(await codeOf(run(6, 6))).toBe("TW4007");
  });

  test("an array with strides gives dimensions their values where nothing else does", async () => {
    const [n, m] = [dim("n"), dim("m")];
    const k = kernel(
      {
        name: "transposed",
        inputs: { x: tensor(f32, [n, m], { strides: [1, n] }) },
        outputs: { out: tensor(f32, [n, m]) },
      },
      ({ x, out }) => {
        const here = [slice(0, 4), slice(0, 4)] as const;
        out.at(...here).store(x.at(...here).load());
      },
    );
    const device = await open("simulator");
    try {
      const x = fromNumbers(f32, [2, 3], [0, 1, 2, 3, 4, 5]);
      const { out } = await device.run(k, { x });
      expect(out.shape).toEqual([2, 3]);
      expect([...toNumbers(out)]).toEqual([0, 2, 4, 1, 3, 5]);
      const flat = fromNumbers(f32, [6], [0, 1, 2, 3, 4, 5]);
      await expect(device.run(k, { x: flat })).rejects.toThrow("another number of axes");
      const given = await device.run(k, { x: flat }, { dimensions: { n: 3, m: 2 } });
      expect([...toNumbers(given.out)]).toEqual([0, 3, 1, 4, 2, 5]);
    } finally {
      device.dispose();
    }
  });

  test("a stride that nothing else gives is that of the array which is given", async () => {
    const [n, pitch] = [dim("n"), dim("pitch")];
    const rows = (strides: readonly [typeof n | number, typeof n | number]) =>
      kernel(
        {
          name: "rows",
          grid: { i: n },
          inputs: { x: tensor(f32, [n, 3], { strides }) },
          outputs: { out: tensor(f32, [n]) },
        },
        ({ i, x, out }) => out.at(i).store(x.at(i, 2).loadScalar()),
      );
    const x = fromNumbers(f32, [2, 3], [1, 2, 3, 4, 5, 6]);
    const device = await open("simulator");
    try {
      const { out } = await device.run(rows([pitch, 1]), { x });
      expect([...toNumbers(out)]).toEqual([3, 6]);
      // Declared to lie by columns, which the array does not: its own strides say nothing then.
      await expect(device.run(rows([1, pitch]), { x })).rejects.toThrow("TW4008");
      const { out: given } = await device.run(
        rows([1, pitch]),
        { x },
        { dimensions: { pitch: 2 } },
      );
      expect([...toNumbers(given)]).toEqual([5, 6]);
    } finally {
      device.dispose();
    }
  });

  test("an array with strides must hold the last element they reach", async () => {
    const columns = kernel(
      {
        name: "columns",
        inputs: { x: tensor(f32, [3, 2], { strides: [4, 1] }) },
        outputs: { out: tensor(f32, [3, 2]) },
      },
      ({ x, out }) => {
        out.store(x.load());
      },
    );
    // Rows begin at 0, 4 and 8; the last element is number 9.
    const { out } = await onDevice((device) => device.run(columns, { x: counting(10) }));
    expect(Array.from(toNumbers(out))).toEqual([0, 1, 4, 5, 8, 9]);
    expect(await codeOf(() => onDevice((device) => device.run(columns, { x: counting(9) })))).toBe(
      "TW4004",
    );
  });

  test("a scalar lies in the range of its format", async () => {
    const takesByte = kernel({ name: "byte", inputs: { count: scalar(i8) } }, () => undefined);
    const run = (count: number) => () => onDevice((device) => device.run(takesByte, { count }));
    expect(await codeOf(run(127))).toBe("nothing was thrown");
    expect(await codeOf(run(-128))).toBe("nothing was thrown");
    expect(await codeOf(run(128))).toBe("TW4013");
    expect(await codeOf(run(-129))).toBe("TW4013");
  });
});

describe("launch", () => {
  test("an output is no other argument", async () => {
    await onDevice(async (device) => {
      const x = await device.upload(counting(8));
      expect(
        await codeOf(() => {
          device.launch(twice, { x, out: x });
        }),
      ).toBe("TW4014");
    });
  });

  test("a failure waits for synchronize, is told once, and leaves the device usable", async () => {
    const fails = kernel({ name: "fails", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      assert(x.load().lt(0), "all are negative");
    });
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      device.launch(fails, { x });
      expect(await codeOf(() => device.synchronize())).toBe("TW3012");
      expect(await codeOf(() => device.synchronize())).toBe("nothing was thrown");
      const { out } = await device.run(twice, { x });
      expect(Array.from(toNumbers(out))).toEqual([0, 2, 4, 6]);
    });
  });
});

describe("bound launches", () => {
  test("run each time they are launched, alone or recorded", async () => {
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      const out = device.allocate(f32, [4]);
      const there = device.bind(twice, { x, out });
      const back = device.bind(twice, { x: out, out: x });
      there.launch();
      back.launch();
      expect(Array.from(toNumbers(await device.download(x)))).toEqual([0, 4, 8, 12]);
      const both = device.record([there, back]);
      expect(both.kernels).toEqual(["twice", "twice"]);
      both.launch();
      both.launch();
      expect(Array.from(toNumbers(await device.download(x)))).toEqual([0, 64, 128, 192]);
      there.dispose();
      there.dispose();
      expect(await codeOf(() => there.launch())).toBe("TW4017");
      out.dispose();
      expect(await codeOf(() => both.launch())).toBe("TW4010");
    });
  });

  test("check their arguments when they are made", async () => {
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      expect(await codeOf(() => device.bind(twice, { x, out: x }))).toBe("TW4014");
      const out = device.allocate(f32, [4]);
      const bound = device.bind(twice, { x, out });
      expect(await codeOf(() => onDevice((other) => other.record([bound])))).toBe("TW4018");
      device.dispose();
      expect(await codeOf(() => bound.launch())).toBe("TW4001");
    });
  });

  test("tell of failures when the device is synchronized", async () => {
    const fails = kernel({ name: "fails", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
      assert(x.load().lt(0), "all are negative");
    });
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      device.bind(fails, { x }).launch();
      expect(await codeOf(() => device.synchronize())).toBe("TW3012");
    });
  });
});

describe("time", () => {
  test("covers what is launched, and nothing before it", async () => {
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      const out = device.allocate(f32, [4]);
      const nothing = await device.time(() => undefined);
      const some = await device.time(() => {
        for (let round = 0; round < 20; round += 1) device.launch(twice, { x, out });
      });
      expect(some).toBeGreaterThan(nothing);
    });
  });
});

describe("options", () => {
  test("that nothing takes are refused", async () => {
    const misspelt: object = { dimension: { n: 4 } };
    await onDevice(async (device) => {
      const run = () => device.run(twice, { x: counting(4) }, misspelt);
      await expect(run()).rejects.toMatchObject({
        code: "TW4015",
        summary: "unknown option dimension of run; did you mean dimensions?",
      });
      const x = await device.upload(counting(4));
      const out = device.allocate(f32, [4]);
      expect(await codeOf(() => device.launch(twice, { x, out }, misspelt))).toBe("TW4015");
    });
  });
});

describe("arrays", () => {
  test("and their device are disposed of by what `using` calls", async () => {
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      x[Symbol.dispose]();
      expect(x.disposed).toBe(true);
      device[Symbol.dispose]();
      expect(await codeOf(() => device.allocate(f32, [4]))).toBe("TW4001");
    });
  });

  test("are gone once disposed of, however often", async () => {
    await onDevice(async (device) => {
      const x = await device.upload(counting(4));
      expect(x.bytes).toBe(16);
      x.dispose();
      x.dispose();
      expect(x.disposed).toBe(true);
      expect(x.bytes).toBe(0);
      expect(await codeOf(() => device.download(x))).toBe("TW4010");
    });
  });

  test("that are forgotten are reported with the line that made them", async () => {
    const reports: (readonly Leak[])[] = [];
    await onDevice((device) => void device.allocate(f32, [2, 3]), {
      onLeak: (leaks) => reports.push(leaks),
    });
    expect(reports).toHaveLength(1);
    const [[leak] = []] = reports;
    expect(leak?.bytes).toBe(24);
    expect(leak?.position?.file).toMatch(/device\.test\.ts$/);
  });

  test("that are forgotten are counted in words that fit", () => {
    const leak: Leak = { dtype: f32, shape: [1], bytes: 4, position: undefined };
    expect(formatLeaks([leak])).toMatch(/^1 array \(4 bytes\) was never disposed of:\n/);
    expect(formatLeaks([leak, leak])).toMatch(
      /^2 arrays \(8 bytes\) were never disposed of:\n {2}2 × [^\n]*, 4 bytes, [^\n]*$/,
    );
    const many = Array.from({ length: 1000 }, (_, at) => ({ ...leak, shape: [at] }));
    expect(formatLeaks(many).split("\n")).toHaveLength(22);
    expect(formatLeaks(many)).toMatch(/\n {2}and 980 more$/);
  });

  test("belong to one device", async () => {
    await onDevice(async (first) => {
      const x = await first.upload(counting(4));
      expect(await codeOf(() => onDevice((second) => second.download(x)))).toBe("TW4011");
    });
  });
});

describe("compilation", () => {
  const sum = (width: number) =>
    kernel(
      { name: "sum", inputs: { x: tensor(f32, [width]) }, outputs: { out: tensor(f32, [1]) } },
      ({ x, out }) => {
        out.at(0).store(x.load().sum());
      },
    );

  test("happens once for all sizes of a dimension", async () => {
    await onDevice(async (device) => {
      for (const size of [4, 8, 12]) await device.run(twice, { x: counting(size) });
      expect(device.compilations.map(({ reason }) => reason)).toEqual(["first launch"]);
    });
  });

  test("tells kernels apart by the lines that their programs carry", () => {
    const make = () =>
      kernel({ name: "talk", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
        debugPrint("{}", x.load());
        assert(x.at(0).loadScalar().gt(0), "positive");
      });
    const silent = () =>
      kernel({ name: "quiet", inputs: { x: tensor(f32, [4]) } }, () => undefined);
    // Two calls on two lines.
    const talks = [
      make(),
      kernel({ name: "talk", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
        debugPrint("{}", x.load());
      }),
    ].map(({ kernel: each }) => kernelText(each, "messages"));
    expect(talks[0]).not.toBe(talks[1]);
    expect(talks[0]).toContain("debug_print at ");
    expect(talks[0]).toContain("assert at ");
    const quiet = [
      silent(),
      kernel({ name: "quiet", inputs: { x: tensor(f32, [4]) } }, () => undefined),
    ];
    const [first, second] = quiet.map(({ kernel: each }) => kernelText(each, "messages"));
    expect(first).toBe(second);
    const [third, fourth] = quiet.map(({ kernel: each }) => kernelText(each, "all"));
    expect(third).not.toBe(fourth);
  });

  test("happens once for equal kernels, and says what differs in others", async () => {
    await onDevice(async (device) => {
      const make = (width: number) => device.run(sum(width), { x: counting(width) });
      await make(4);
      await make(4);
      await make(8);
      const [first, second, ...others] = device.compilations;
      expect(first?.reason).toBe("first launch");
      expect(second?.reason).toContain("[4]");
      expect(second?.reason).toContain("[8]");
      expect(others).toEqual([]);
    });
  });
});
