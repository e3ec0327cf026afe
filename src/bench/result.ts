/** What `bench` found: figures of each entry, as JSON, as a table and as a drawing. */
import { gmemBytes } from "../ir/cost/cost.ts";
import { roofline } from "../ir/cost/roofline.ts";
import type { LaunchCost, Rates } from "../ir/cost/roofline.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { drawBench } from "./drawing.ts";
import { median, medianInterval, spread } from "./statistics.ts";
import type { Interval } from "./statistics.ts";
import { benchTable } from "./table.ts";

/** Who took the time: the device, the host around calls of a function, or work that times itself. */
export type BenchClock = "device" | "host" | "own";

/** The figures of one entry. */
export interface BenchFigures<Name extends string = string> {
  /** The entry's name. */
  readonly name: Name;
  /** What took the time. */
  readonly clock: BenchClock;
  /** Milliseconds of one launch, a round each. */
  readonly samples: readonly number[];
  /** The median time of a launch. */
  readonly milliseconds: number;
  /** The middle half of the samples, as a part of their median. */
  readonly spread: number;
  /** How many times as fast as the entry that ratios are to, by rounds; above 1 is faster. */
  readonly ratio: number;
  /** Where the ratio lies at 95%. */
  readonly interval: Interval;
  /** Whether the interval leaves open which of the two is faster. */
  readonly even: boolean;
  /** Operations in a second, in units of 10¹². */
  readonly teraflops?: number;
  /** Bytes moved in a second, in units of 10¹². */
  readonly terabytes?: number;
  /** The least time that the GPU could need, as a part of the time it took. */
  readonly ofRoofline?: number;
}

/** What was measured, as plain data. */
export interface BenchData<Name extends string = string> {
  /** The name of the device. */
  readonly device: string;
  /** Whether that is no GPU: its times are those of a program that imitates one. */
  readonly imitated: boolean;
  /** The entry that ratios are to. */
  readonly against: Name;
  /** How many rounds count. */
  readonly rounds: number;
  /** The figures of each entry. */
  readonly entries: readonly BenchFigures<Name>[];
}

interface Measured<Name extends string> {
  readonly device: string;
  readonly imitated: boolean;
  readonly rates: Rates;
  readonly against: Name;
  readonly cost: ReadonlyMap<string, LaunchCost>;
  readonly entries: readonly Pick<BenchFigures<Name>, "name" | "clock" | "samples">[];
}

/** What `bench` measured: as data, as a table, and as a drawing. */
export class BenchResult<Name extends string = string> {
  /** Everything that was measured, as plain data. */
  readonly json: BenchData<Name>;
  readonly #measured: Measured<Name>;

  /** @internal */
  constructor(measured: Measured<Name>) {
    const { device, imitated, against, entries } = measured;
    this.#measured = measured;
    const base = entries.find(({ name }) => name === against)?.samples ?? [];
    this.json = {
      device,
      imitated,
      against,
      rounds: base.length,
      entries: entries.map((entry) => figuresOf(entry, base, measured)),
    };
  }

  /** The figures of one entry. */
  of(name: Name): BenchFigures<Name> {
    const found = this.json.entries.find((entry) => entry.name === name);
    if (found !== undefined) return found;
    throw new TilewrightError({
      ...{ code: "TW9802", message: `bench has no entry ${name}`, found: name },
      expected: `one of ${this.json.entries.map((entry) => entry.name).join(", ")}`,
      remedy: "name an entry as bench was given it",
    });
  }

  /** The same samples, with ratios to another entry. */
  against(name: Name): BenchResult<Name> {
    return new BenchResult({ ...this.#measured, against: this.of(name).name });
  }

  /** The figures as a table of text. */
  table(): string {
    return benchTable(this.json);
  }

  /** The figures as an SVG page. */
  svg(): string {
    return drawBench(this.json);
  }
}

function figuresOf<Name extends string>(
  { name, clock, samples }: Measured<Name>["entries"][number],
  base: readonly number[],
  { cost, rates, against }: Measured<Name>,
): BenchFigures<Name> {
  const milliseconds = median(samples);
  const ratios = samples.map((sample, round) => (base[round] ?? NaN) / sample);
  const interval = medianInterval(ratios);
  const figures = {
    name,
    clock,
    samples,
    milliseconds,
    spread: spread(samples),
    ratio: median(ratios),
    interval,
    even: name !== against && interval.low <= 1 && interval.high >= 1,
  };
  const work = cost.get(name);
  if (work === undefined) return figures;
  return {
    ...figures,
    teraflops: work.flops / milliseconds / 1e9,
    terabytes: (work.memoryBytes ?? gmemBytes(work)) / milliseconds / 1e9,
    ofRoofline: roofline(work, rates).milliseconds / milliseconds,
  };
}
