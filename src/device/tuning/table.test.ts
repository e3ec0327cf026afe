import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import { tunedChoice } from "./advice.ts";
import type { OperationChoices } from "./advice.ts";
import { lineText } from "./line.ts";
import type { MeasuredLine, TuningLine } from "./line.ts";
import { TuningTable } from "./table.ts";

const line = (over: Partial<MeasuredLine> = {}): MeasuredLine => ({
  op: "mine",
  variant: "x f32",
  key: "00",
  gpu: "NVIDIA H200",
  target: "sm_90a",
  driver: "CUDA 13.0",
  bucket: { n: 64, m: 32 },
  choice: { tile: 64, order: "rows" },
  us: 10,
  spread: 0.01,
  rounds: 15,
  ...over,
});
const work = {
  op: "mine",
  variant: "x f32",
  gpu: "NVIDIA H200",
  bucket: { m: 32, n: 64 },
};

function codeOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

describe("a tuning table", () => {
  test("is the same after writing and reading, whatever the order of lines and fields", () => {
    const { key, target, driver, gpu, bucket } = line();
    const lines: readonly TuningLine[] = [
      line({ choice: { tile: 128, order: "rows" }, us: 9 }),
      line(),
      {
        ...work,
        key,
        target,
        driver,
        gpu,
        bucket,
        choice: { tile: 256 },
        rejected: "plan",
        reason: "too large",
      },
      {
        ...work,
        key,
        target,
        driver,
        choice: { tile: 32 },
        us: 5,
        source: "model",
      },
    ];
    const { text } = new TuningTable(lines);
    expect(TuningTable.parse(text, "file").text).toBe(text);
    expect(new TuningTable(lines.toReversed()).text).toBe(text);
    expect(text.split("\n")[0]).toBe('{"tilewright":"tuning","version":1}');
    expect(text).toContain('"bucket":{"m":32,"n":64},"choice":{"order":"rows","tile":64}');
  });

  test("gives the fastest measurement, of this driver where there is one", () => {
    const other = line({ driver: "CUDA 12.8", choice: { tile: 16 }, us: 1 });
    const table = new TuningTable([line(), line({ choice: { tile: 128 }, us: 9 }), other]);
    expect(table.best(work, "CUDA 13.0")?.choice).toEqual({ tile: 128 });
    expect(table.best(work, "CUDA 13.1")?.choice).toEqual({ tile: 16 });
    expect(table.best({ ...work, gpu: "NVIDIA H100" }, "CUDA 13.0")).toBeUndefined();
    expect(table.best({ ...work, bucket: { m: 33, n: 64 } }, "CUDA 13.0")).toBeUndefined();
  });

  test("never takes a model's estimate or a rejected choice for a measurement", () => {
    const { us: _, spread: __, rounds: ___, ...start } = line();
    const table = new TuningTable([
      { ...start, us: 1, source: "model" },
      {
        ...start,
        choice: { tile: 1 },
        rejected: "wrong",
        reason: "out differs",
      },
    ]);
    expect(table.best(work, "CUDA 13.0")).toBeUndefined();
  });

  test("of two lines of the same kernels the better measured counts, and a union is all", () => {
    const union = TuningTable.union([
      new TuningTable([line({ us: 5, rounds: 6 })]),
      new TuningTable([line({ us: 7 }), line({ choice: { tile: 1 }, us: 6 })]),
    ]);
    expect(union.lines).toHaveLength(2);
    expect(union.best(work, "CUDA 13.0")).toMatchObject({ us: 6 });
  });

  const { us: _us, spread: _spread, rounds: _rounds, ...start } = line();
  const wrong = { ...start, rejected: "wrong", reason: "out differs" } as const;

  test("what failed stays failed, whatever was measured of the same kernels or of others", () => {
    const edited = line({ key: "01", us: 3 });
    for (const lines of [
      [line(), wrong],
      [wrong, line()],
      [wrong, edited, line()],
      [edited, wrong],
    ]) {
      const table = new TuningTable(lines);
      expect(table.best(work, "CUDA 13.0")).toBeUndefined();
      expect(table.lines).toContainEqual(wrong);
    }
  });

  test("what is said of kernels that are no more goes once they were measured anew", () => {
    const other = line({ choice: { tile: 1 }, us: 6 });
    const edited = line({ key: "01", us: 3 });
    const table = new TuningTable([wrong, other]).updated([edited]);
    expect(table.lines).toHaveLength(2);
    expect(table.best(work, "CUDA 13.0")).toMatchObject({ us: 3 });
    // Another tuner has found the same kernels wrong meanwhile.
    const beside = new TuningTable([{ ...wrong, key: "01" }, other]).updated([edited]);
    expect(beside.best(work, "CUDA 13.0")).toMatchObject({ us: 6 });
  });

  test("a union is the same in any order and grouping, and of a table with itself", () => {
    const seed = Number(process.env["TUNING_SEED"] ?? 7);
    const random = new Random(seed);
    const drawn = (): TuningLine => {
      const own = {
        ...start,
        key: `0${random.below(2)}`,
        driver: random.pick(["CUDA 13.0", "CUDA 12.8"]),
        choice: { tile: random.below(3) },
      };
      const us = 1 + random.below(3);
      return random.pick<TuningLine>([
        { ...own, us, spread: random.pick([0.01, 0.02]), rounds: random.pick([6, 15]) },
        { ...own, us, source: "model" },
        { ...own, rejected: random.pick(["wrong", "plan", "model"]), reason: `${us}` },
      ]);
    };
    const said = (table: TuningTable): string =>
      JSON.stringify([
        table.text,
        ...["CUDA 13.0", "CUDA 12.8", "CUDA 13.1"].map((driver) => {
          const best = table.best(work, driver);
          return best && lineText(best);
        }),
      ]);
    for (let round = 0; round < 200; round += 1) {
      const lines = Array.from({ length: 2 + random.below(10) }, drawn);
      const whole = new TuningTable(lines);
      // Any two of what is left are joined, so that all orders and groupings come about.
      const tables = lines.map((each) => new TuningTable([each]));
      while (tables.length > 1) {
        const [first] = tables.splice(random.below(tables.length), 1);
        const [second] = tables.splice(random.below(tables.length), 1);
        if (first !== undefined && second !== undefined)
          tables.push(TuningTable.union([first, second]));
      }
      const [joined = whole] = tables;
      const where = `TUNING_SEED=${seed}, round ${round}`;
      expect(said(joined), where).toBe(said(whole));
      expect(said(TuningTable.union([whole, joined])), where).toBe(said(whole));
      expect(said(TuningTable.parse(whole.text, "file")), where).toBe(said(whole));
    }
  });

  test("leaves out what an interrupt cut off, and refuses everything else", () => {
    const { text } = new TuningTable([line()]);
    expect(TuningTable.parse(`${text}{"op":"mi`, "file").lines).toHaveLength(1);
    const start = TuningTable.start;
    for (const wrong of ["", "{}", '{"tilewright":"tuning","version":2}\n', "a,b\n1,2\n"])
      expect(codeOf(() => TuningTable.parse(wrong, "file"))).toBe("TW9811");
    for (const wrong of ["{", "[]", "5", '{"op":"mine"}', JSON.stringify({ ...line(), us: -1 })])
      expect(codeOf(() => TuningTable.parse(`${start}${wrong}\n`, "file"))).toBe("TW9811");
    expect(() => TuningTable.parse(`${text}{\n`, "file")).toThrow("file:3");
    const slow = JSON.stringify({ ...line(), us: -1 });
    expect(() => TuningTable.parse(`${start}${slow}\n`, "file")).toThrow("us that is -1");
    expect(() => TuningTable.parse(`${start}{"op":"x"}\n`, "file")).toThrow(
      "variant that is missing",
    );
  });

  test("what failed with a driver is not taken from another one", () => {
    const before = line({ driver: "CUDA 12.8", us: 1 });
    const slower = line({ driver: "CUDA 12.8", choice: { tile: 16 }, us: 2 });
    const both = new TuningTable([before, slower, wrong]);
    expect(both.best(work, "CUDA 13.0")?.choice).toEqual({ tile: 16 });
    expect(both.best(work, "CUDA 12.8")?.us).toBe(1);
    expect(new TuningTable([before, wrong]).best(work, "CUDA 13.0")).toBeUndefined();
    const slow = { ...wrong, rejected: "model" } as const;
    expect(new TuningTable([before, slow]).best(work, "CUDA 13.0")?.us).toBe(1);
  });

  test("files that were joined, and one whose last line has no end, lose nothing", () => {
    const one = new TuningTable([line()]).text;
    const two = new TuningTable([line({ choice: { tile: 16 } })]).text;
    expect(TuningTable.parse(one + two, "file").lines).toHaveLength(2);
    expect(TuningTable.parse((one + two).trimEnd(), "file").lines).toHaveLength(2);
    expect(TuningTable.parse(two.replaceAll("\n", "\r\n"), "file").lines).toHaveLength(1);
  });
});

describe("what a device knows", () => {
  const choices: OperationChoices = {
    variant: "x f32",
    bucket: (sizes) => sizes,
    candidates: () => [],
  };
  const device = {
    gpu: "NVIDIA H200",
    driver: "CUDA 13.0",
    table: undefined,
    required: false,
  };
  const sizes = { m: 32, n: 64 };

  test("is what was measured for the bucket, with a note where that was another driver's", () => {
    const own = new TuningTable([line({ driver: "CUDA 12.8" })]);
    const found = tunedChoice("mine", choices, sizes, { ...device, table: own });
    expect(found).toMatchObject({ choice: { tile: 64 } });
    expect(found?.notes[0]).toContain("CUDA 12.8");
    expect(tunedChoice("mine", choices, sizes, device)).toBeUndefined();
    expect(tunedChoice("mine", choices, { m: 1, n: 1 }, { ...device, table: own })).toBeUndefined();
  });

  test("what was never tuned is refused where that is asked for", () => {
    const strict = { ...device, required: true };
    expect(codeOf(() => tunedChoice("mine", choices, sizes, strict))).toBe("TW9814");
    expect(() => tunedChoice("mine", choices, sizes, strict)).toThrow("m=32,n=64 on NVIDIA H200");
  });
});
