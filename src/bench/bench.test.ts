import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openFake, scaled } from "../../test/support/fake-driver/harness.ts";
import type { Device } from "../device/device.ts";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, cdiv, dim, kernel, slice } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { bench } from "./bench.ts";
import type { BenchEntry } from "./bench.ts";
import type { BenchOptions } from "./options.ts";
import { BenchResult } from "./result.ts";
import { ratesOf } from "../ir/cost/roofline.ts";

const n = dim("n");
const doubled = kernel(
  {
    name: "doubled",
    grid: { i: cdiv(n, 128) },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, out }) => {
    const window = slice(i.mul(128), 128);
    out.at(window).store(x.at(window).load().mul(2));
  },
);

const quick = { rounds: 6, launches: 4, warmUp: 1 } as const;

async function codeOf(work: () => unknown): Promise<string> {
  try {
    await work();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

describe("on a device", () => {
  let device: Device;
  beforeEach(async () => {
    device = await open("emulator");
  });
  afterEach(() => {
    expect(device.leaks).toEqual([]);
    device.dispose();
  });

  test("entries take turns, each round another first, over all sets", async () => {
    const x = await device.upload(fromNumbers(f32, [128], new Float32Array(128)));
    const outs = [device.allocate(f32, [128]), device.allocate(f32, [128])];
    const made: string[] = [];
    const turns: string[] = [];
    const entry =
      (name: string): BenchEntry =>
      (set) => {
        made.push(`${name}${set}`);
        const out = outs[set] ?? x;
        return device.bind(doubled, { x, out });
      };
    const seen: number[] = [];
    const result = await bench(
      device,
      { first: entry("first"), second: entry("second"), host: () => () => turns.push("called") },
      { ...quick, sets: 2, onProgress: ({ round, rounds }) => seen.push(round / rounds) },
    );
    expect(made).toEqual(["first0", "first1", "second0", "second1"]);
    expect(turns).toHaveLength(4 * 7);
    expect(seen).toHaveLength(7);
    expect(seen.at(-1)).toBe(1);
    expect(
      result.json.entries.map(({ name, clock, samples }) => [name, clock, samples.length]),
    ).toEqual([
      ["first", "device", 6],
      ["second", "device", 6],
      ["host", "host", 6],
    ]);
    expect(result.of("host")).toMatchObject({ ratio: 1, interval: { low: 1, high: 1 } });
    expect(result.table()).toContain("host (by the host's clock)");
    for (const each of [x, ...outs]) each.dispose();
  });

  test("a time is that of one launch", async () => {
    const x = await device.upload(fromNumbers(f32, [128], new Float32Array(128)));
    const out = device.allocate(f32, [128]);
    vi.spyOn(device, "time").mockImplementation(async (work) => {
      work();
      return 8;
    });
    const ours: BenchEntry = () => device.bind(doubled, { x, out });
    const cost = doubled.cost({ n: 128 });
    const result = await bench(device, { ours }, { ...quick, sets: 1, cost });
    expect(result.of("ours").samples).toEqual(Array(quick.rounds).fill(8 / quick.launches));
    // Of what imitates a GPU the table has no rates, and says whose times these are.
    expect(result.table()).not.toContain("TB/s");
    expect(result.json.imitated).toBe(true);
    expect(result.table()).toMatch(/ on this machine, which tell nothing of a GPU\n$/);
    for (const each of [x, out]) each.dispose();
  });

  test("there are two sets of arrays that no cache holds, and never more than launches", async () => {
    const x = await device.upload(fromNumbers(f32, [128], new Float32Array(128)));
    const out = device.allocate(f32, [128]);
    const large = device.allocate(f32, [2 ** 20]);
    const setsOf = async (launches: number, arrays: number): Promise<number> => {
      let sets = 0;
      const ours: BenchEntry = () => {
        sets += 1;
        const bound = device.bind(doubled, { x, out });
        vi.spyOn(bound, "arrays", "get").mockReturnValue(Array(arrays).fill(large));
        return bound;
      };
      await bench(device, { ours }, { rounds: 6, warmUp: 0, launches, sets: "beyond-l2" });
      return sets;
    };
    expect(await setsOf(5, 64)).toBe(2);
    expect(await setsOf(5, 1)).toBe(5);
    expect(await setsOf(1, 64)).toBe(1);
    for (const each of [x, out, large]) each.dispose();
  });

  test("the host's clock goes on until the device has done what it was given", async () => {
    const steps: string[] = [];
    vi.spyOn(device, "synchronize").mockImplementation(async () => {
      steps.push("synchronized");
    });
    const call: BenchEntry = () => () => steps.push("called");
    await bench(device, { call }, { rounds: 6, launches: 2, warmUp: 0 });
    const sample = ["synchronized", "called", "called", "synchronized"];
    expect(steps).toEqual(Array(6).fill(sample).flat());
  });

  test("in every round each entry has one turn, and none always follows the same one", async () => {
    const turns: string[] = [];
    const timed =
      (name: string): BenchEntry =>
      () => ({
        sample: async () => turns.push(name),
      });
    const names = ["a", "b", "c", "d", "e"] as const;
    const entries = Object.fromEntries(names.map((name) => [name, timed(name)]));
    await bench(device, entries, { ...quick, warmUp: 0 });
    const rounds = Array.from({ length: 6 }, (_, round) => turns.slice(5 * round, 5 * round + 5));
    for (const round of rounds) expect(round.toSorted()).toEqual(names);
    expect(new Set(rounds.slice(0, 5).map(([first]) => first)).size).toBe(5);
    for (const name of names) {
      const before = turns.flatMap((each, turn) => (each === name ? [turns[turn - 1]] : []));
      expect(new Set(before).size, name).toBeGreaterThan(2);
    }
  });

  test("the device rests before every sample where that is asked for", async () => {
    const ends: number[] = [];
    const starts: number[] = [];
    const entry: BenchEntry = () => () => {
      starts.push(performance.now());
      ends.push(performance.now());
    };
    await bench(device, { entry }, { rounds: 6, launches: 1, warmUp: 0, rest: 20 });
    const pauses = starts.slice(1).map((start, index) => start - (ends[index] ?? start));
    // Timers of a host may be a millisecond early.
    expect(Math.min(...pauses)).toBeGreaterThan(18);
    for (const rest of [-1, 0.5, "1"])
      expect(await codeOf(() => bench(device, { entry }, { ...quick, rest: rest as number }))).toBe(
        "TW9802",
      );
  });

  test("bench that rests can be stopped", async () => {
    const stop = new AbortController();
    const entry: BenchEntry = () => () => stop.abort(new Error("enough"));
    await expect(
      bench(device, { entry }, { ...quick, rest: 5, signal: stop.signal }),
    ).rejects.toThrow("enough");
  });

  test("work that times itself is believed where its time can be", async () => {
    let calls = 0;
    // Hours, which the other entry's nothing takes on no machine.
    const theirs: BenchEntry = () => ({ sample: async () => 1e7 * (calls += 1) });
    const result = await bench(device, { theirs, ours: () => () => undefined }, quick);
    expect(result.of("theirs")).toMatchObject({
      clock: "own",
      samples: [2, 3, 4, 5, 6, 7].map((call) => 1e7 * call),
    });
    expect(result.table()).toContain("theirs (by its own clock)");
    const turned = result.against("theirs");
    expect(turned.json.against).toBe("theirs");
    expect(turned.of("ours").ratio).toBeGreaterThan(1);
    expect(turned.of("theirs").ratio).toBe(1);
    expect(() => result.against("nobody" as "ours")).toThrow("TW9802: bench has no entry nobody");
    for (const time of [0, NaN, -1, "1", undefined])
      expect(
        await codeOf(() =>
          bench(device, { wrong: () => ({ sample: async () => time as number }) }, quick),
        ),
      ).toBe("TW9803");
  });

  test("what an entry makes is given back when another fails", async () => {
    const x = await device.upload(fromNumbers(f32, [128], new Float32Array(128)));
    const out = device.allocate(f32, [128]);
    const bound = device.bind(doubled, { x, out });
    const wrong = (() => 5) as unknown as BenchEntry;
    expect(await codeOf(() => bench(device, { fine: () => bound, wrong }, quick))).toBe("TW9803");
    expect(await codeOf(() => bound.launch())).toBe("TW4017");
    x.dispose();
    out.dispose();
  });

  test("mistakes are reported", async () => {
    const entry: BenchEntry = () => () => undefined;
    const refused: readonly (readonly [string, unknown, unknown])[] = [
      ["TW9801", {}, {}],
      ["TW9801", undefined, {}],
      ["TW9801", { ours: 5 }, {}],
      ["TW9802", { ours: entry }, { rounds: 5 }],
      ["TW9802", { ours: entry }, { rounds: NaN }],
      ["TW9802", { ours: entry }, { launches: 0 }],
      ["TW9802", { ours: entry }, { sets: "few" }],
      ["TW9802", { ours: entry }, { against: "theirs" }],
      ["TW9802", { ours: entry }, { cost: { ours: 5 } }],
      ["TW9802", { ours: entry }, { round: 7 }],
      ["TW9802", { ours: entry }, { signal: 5 }],
    ];
    for (const [code, entries, options] of refused)
      expect(
        await codeOf(() => bench(device, entries as { ours: BenchEntry }, options as BenchOptions)),
      ).toBe(code);
  });

  test("it can be stopped", async () => {
    const controller = new AbortController();
    const onProgress = () => controller.abort(new Error("enough"));
    const running = bench(
      device,
      { ours: () => () => undefined },
      { ...quick, signal: controller.signal, onProgress },
    );
    await expect(running).rejects.toThrow("enough");
  });
});

describe("on a GPU", () => {
  test("something runs already when what is timed is asked for", async () => {
    const { driver, device: gpu } = openFake();
    const x = await gpu.upload(fromNumbers(f32, [1], [1]));
    const out = gpu.allocate(f32, [1]);
    const entry: BenchEntry = () => gpu.bind(scaled, { x, factor: 1, out });
    await bench(gpu, { entry }, { ...quick, sets: 1 });
    const calls = driver.log.filter((name) =>
      /^cu(EventRecord|GraphLaunch|LaunchKernel)/.test(name),
    );
    const starts = calls.flatMap((name, index) =>
      name === "cuEventRecord" && calls[index + 1] === "cuGraphLaunch" ? [index] : [],
    );
    expect(starts).toHaveLength(quick.rounds + quick.warmUp);
    for (const start of starts) expect(calls[start - 1]).toMatch(/Launch/);
    x.dispose();
    out.dispose();
    gpu.dispose();
  });

  test.each([
    { name: "a long recording follows one launch", lasts: 20, before: 0 },
    { name: "a short one follows itself", lasts: 0.5, before: 1 },
  ])("$name", async ({ lasts, before }) => {
    const { driver, device: gpu } = openFake();
    const x = await gpu.upload(fromNumbers(f32, [1], [1]));
    const out = gpu.allocate(f32, [1]);
    const recordings: number[] = [];
    const launched = (): number => driver.log.filter((name) => name === "cuGraphLaunch").length;
    vi.spyOn(gpu, "time").mockImplementation(async (work) => {
      recordings.push(launched());
      work();
      return lasts;
    });
    const entry: BenchEntry = () => gpu.bind(scaled, { x, factor: 1, out });
    await bench(gpu, { entry }, { ...quick, sets: 1 });
    // How long the first one lasts is not known.
    const steps = recordings.slice(1).map((count, index) => count - (recordings[index] ?? 0));
    expect(recordings[0]).toBe(0);
    expect(new Set(steps)).toEqual(new Set([1 + before]));
    x.dispose();
    out.dispose();
    gpu.dispose();
  });
});

describe("figures", () => {
  const rounds = Array.from({ length: 20 }, (_, round) => 1 + round / 100);
  const result = new BenchResult({
    device: "NVIDIA H200",
    imitated: false,
    rates: ratesOf({ architecture: 90 } as Parameters<typeof ratesOf>[0], "NVIDIA H200"),
    against: "plain",
    cost: new Map([["ours", doubled.cost({ n: 2 ** 28 })]]),
    entries: [
      { name: "ours", clock: "device", samples: rounds.map((time) => time / 2) },
      {
        name: "noisy",
        clock: "device",
        samples: rounds.map((time, round) => time * (round % 2 === 0 ? 1.1 : 0.9)),
      },
      { name: "plain", clock: "device", samples: rounds },
    ],
  });

  test("ratios are by rounds, so that drift of both leaves them alone", () => {
    expect(result.of("ours")).toMatchObject({ even: false });
    expect(result.of("ours").ratio).toBeCloseTo(2, 12);
    expect(result.of("ours").interval.low).toBeCloseTo(2, 12);
    expect(result.of("noisy").even).toBe(true);
  });

  test("work gives rates and the part of the roofline", () => {
    const ours = result.of("ours");
    const bytes = 2 ** 28 * 8;
    expect(ours.terabytes).toBeCloseTo(bytes / ours.milliseconds / 1e9, 9);
    expect(ours.ofRoofline).toBeCloseTo(bytes / 4.8e12 / (ours.milliseconds / 1e3), 9);
    expect(result.of("plain").terabytes).toBeUndefined();
  });

  test("are printed and drawn", () => {
    expect(result.table()).toBe(
      [
        "entry      time  spread  TB/s  TFLOP/s  of roofline  times plain",
        "ours   547.5 µs    8.7%  3.92   0.4903        81.7%  2.000 (2.000 to 2.000)",
        "noisy  1.086 ms   18.3%                              1.010 (0.909 to 1.111), even",
        "plain  1.095 ms    8.7%",
        "",
      ].join("\n"),
    );
    const drawing = result.svg();
    expect(drawing).toMatch(/^<svg .*role="img">/);
    expect(drawing.match(/<rect/g)).toHaveLength(3);
    expect(drawing.match(/class="interval"/g)).toHaveLength(2);
  });
});
