/**
 * Measures the choices of an operation and keeps what it finds. What a file has from before is not measured again, so
 * that an interrupted run goes on where it was, and a new choice costs its own time alone.
 *
 *   candidates ──▶ planned, estimated ──▶ compiled ──▶ checked ──▶ timed in turns ──▶ a line each ──▶ the file, sorted
 *   of all cases                          together      one case after the other
 *
 * Kernels of cases that differ in sizes alone are often the same, and helpers that compile take a second to start: so those of all
 * cases are compiled before the first is measured.
 */
import type { Device } from "../device/device.ts";
import type { Operation } from "../device/operation.ts";
import type { OperationChoices } from "../device/tuning/advice.ts";
import { identityOf, isMeasured, isRejected, lineText, recordText } from "../device/tuning/line.ts";
import type { Choice, Judge, Sizes, TuningLine } from "../device/tuning/line.ts";
import { ratesOf } from "../ir/cost/index.ts";
import { allDimensions } from "../ir/dimension-values.ts";
import { placedAt, TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { candidatesOf } from "./candidate.ts";
import type { Candidate, CandidateList } from "./candidate.ts";
import { compileAll } from "./compile.ts";
import { requireTunable, tuneSettings } from "./options.ts";
import type { TuneOptions, TuneSettings } from "./options.ts";
import { TuneReport } from "./report.ts";
import type { CaseReport } from "./report.ts";
import { Trial } from "./trial.ts";
import type { Outcome } from "./trial.ts";
import type { Verdict } from "./majority-reference.ts";

/** Tunes an operation for each case; without a GPU choices are ranked by a model. */
export async function tune(
  device: Device,
  operation: Operation,
  options: TuneOptions,
): Promise<TuneReport> {
  const location = captureLocation();
  const choices = requireTunable(device, operation, location);
  const settings = tuneSettings(options, location);
  const tuner = await Tuner.start(device, operation, choices, settings);
  try {
    const reports: CaseReport[] = [];
    const planned = settings.cases.map((sizes) => tuner.plan(sizes));
    await tuner.compile(planned);
    for (const each of planned) {
      settings.signal?.throwIfAborted();
      reports.push(await tuner.tuneCase(each));
    }
    return new TuneReport(reports);
  } finally {
    await tuner.finish();
  }
}

/** A case, with its candidates. */
interface PlannedCase {
  readonly sizes: Sizes;
  readonly bucket: Sizes;
  readonly list: CandidateList;
}

/** What is known and found while a tuner runs. */
class Tuner {
  readonly #device: Device;
  readonly #operation: Operation;
  readonly #choices: OperationChoices;
  readonly #settings: TuneSettings;
  readonly #lines: Map<string, TuningLine>;
  /** What is known of the candidates that there are now. */
  readonly #current: TuningLine[] = [];
  readonly #begin = performance.now();
  #done = 0;
  #all = 0;

  private constructor(
    device: Device,
    operation: Operation,
    choices: OperationChoices,
    settings: TuneSettings,
    lines: readonly TuningLine[],
  ) {
    this.#device = device;
    this.#operation = operation;
    this.#choices = choices;
    this.#settings = settings;
    this.#lines = new Map(lines.map((line) => [identityOf(line), line]));
  }

  static async start(
    device: Device,
    operation: Operation,
    choices: OperationChoices,
    settings: TuneSettings,
  ): Promise<Tuner> {
    const { file } = settings;
    if (file === undefined) return new Tuner(device, operation, choices, settings, []);
    const { appendTuning, readTuning } = await import("../cuda/open.ts");
    const before = await readTuning(file, { mayBeMissing: true });
    // A file that cannot be written is reported now, not with the first result.
    await appendTuning(file, "");
    return new Tuner(device, operation, choices, settings, before.lines);
  }

  /** The file is sorted at the end, also of a run that was stopped; what another tuner has added to it meanwhile stays. */
  async finish(): Promise<void> {
    const { file } = this.#settings;
    if (file === undefined) return;
    const { readTuning, replaceTuning } = await import("../cuda/open.ts");
    const now = await readTuning(file, { mayBeMissing: true });
    await replaceTuning(file, now.updated(this.#current).text);
  }

  plan(given: Sizes): PlannedCase {
    const { target, gpu } = this.#device;
    const sizes = this.#sizesOf(given);
    const place = { target, gpu: gpu?.name };
    const list = candidatesOf(this.#operation, this.#choices, sizes, place);
    const { candidates } = list;
    if (candidates.length > 0 && candidates.every(({ isIdle }) => isIdle))
      throw new TilewrightError({
        code: "TW9815",
        message: `${this.#operation.name} has nothing to do for a case of tune`,
        location: this.#settings.location,
        expected: "sizes for which blocks are launched, whose time can be measured",
        found: JSON.stringify(sizes),
        remedy: "leave the case out",
      });
    return { sizes, bucket: this.#choices.bucket(sizes), list };
  }

  /** A case with a value for each dimension; who called is no longer to be seen where one is wrong. */
  #sizesOf(given: Sizes): Sizes {
    try {
      return Object.fromEntries(allDimensions(this.#operation.kernel, given));
    } catch (error) {
      throw placedAt(this.#settings.location, error);
    }
  }

  async compile(cases: readonly PlannedCase[]): Promise<void> {
    const [first] = cases;
    if (first !== undefined) this.#progress(first.sizes, "compiling");
    const waiting = cases.flatMap((each) =>
      this.#fresh(each).map((candidate) => ({ candidate, sizes: each.sizes })),
    );
    await compileAll(this.#device, waiting, this.#settings);
  }

  /** The candidates of a case that are to be measured. */
  #fresh({ bucket, list }: PlannedCase): readonly Candidate[] {
    return list.candidates
      .slice(0, this.#settings.most)
      .filter(({ choice, key }) => !this.#isKnown(bucket, choice, key));
  }

  async tuneCase(planned: PlannedCase): Promise<CaseReport> {
    const { gpu } = this.#device;
    const { sizes, bucket, list } = planned;
    const { candidates } = list;
    const fresh = this.#fresh(planned);
    this.#all += fresh.length;
    const found: TuningLine[] = [];
    let checked: Verdict | undefined;
    const record = async (candidate: Pick<Candidate, "choice" | "key">, outcome: Finding) => {
      const line = {
        ...this.#start(bucket, candidate.choice, candidate.key),
        ...outcome,
      };
      found.push(line as TuningLine);
      await this.#keep(line as TuningLine);
    };
    for (const { choice, key, rejected, reason } of list.rejected)
      if (!this.#isKnown(bucket, choice, key)) await record({ choice, key }, { rejected, reason });
    if (candidates.length === 0)
      throw nothingFits(this.#operation.name, sizes, list.rejected[0]?.reason, this.#settings);
    if (gpu === undefined)
      for (const candidate of fresh) {
        this.#settings.signal?.throwIfAborted();
        await record(candidate, { us: candidate.estimate, source: "model" });
        this.#done += 1;
        this.#progress(sizes, "estimating");
      }
    else if (fresh.length > 0) checked = await this.#measure(planned, fresh, record);
    const lines = this.#linesOf(bucket, [...candidates, ...list.rejected]);
    this.#current.push(...lines);
    const newOnes = new Set(found.map(identityOf)).size;
    const known = new Set(lines.map(({ choice }) => recordText(choice)));
    const left = candidates.filter(({ choice }) => !known.has(recordText(choice))).length;
    return {
      sizes,
      bucket,
      modelled: gpu === undefined,
      lines,
      fresh: newOnes,
      left,
      ...(checked !== undefined && { checked }),
    };
  }

  async #measure(
    { sizes, bucket, list: { candidates } }: PlannedCase,
    fresh: readonly Candidate[],
    record: (candidate: Candidate, outcome: Finding) => Promise<void>,
  ): Promise<Verdict | undefined> {
    const { signal } = this.#settings;
    const trial = await Trial.start(this.#device, this.#operation, sizes, this.#settings);
    try {
      const good: Candidate[] = [];
      let unseen = 0;
      // Those that were measured before are asked as well where choices are held against each other.
      const known = trial.isTold ? [] : this.#measured(bucket, candidates);
      for (const candidate of [...fresh, ...known.map((each) => each.candidate)]) {
        signal?.throwIfAborted();
        if (!this.#mayGoOn()) {
          unseen += 1;
          continue;
        }
        this.#progress(sizes, "checking");
        const outcome = await trial.check(candidate);
        if (!fresh.includes(candidate)) continue;
        if (outcome === undefined) good.push(candidate);
        else {
          this.#done += 1;
          await record(candidate, outcome);
        }
      }
      const { verdict, wrong } = await trial.verdict(unseen === 0);
      for (const [candidate, reason] of wrong) {
        if (fresh.includes(candidate)) this.#done += 1;
        await record(candidate, { rejected: "wrong", reason });
      }
      if (verdict === undefined || verdict.by === "undecided") {
        this.#done += good.length;
        return verdict;
      }
      const { by } = verdict;
      this.#progress(sizes, "timing");
      const timed = new Set<Candidate>();
      await trial.time(
        good.filter((candidate) => !wrong.has(candidate)),
        this.#measured(bucket, candidates)[0],
        async (candidate, outcome) => {
          if (!timed.has(candidate)) this.#done += 1;
          timed.add(candidate);
          await record(candidate, { ...outcome, ...("us" in outcome && { checked: by }) });
          this.#progress(sizes, "timing");
        },
        () => this.#mayGoOn(),
      );
      return verdict;
    } finally {
      trial.dispose();
    }
  }

  /** Candidates that were measured before, the fastest first: its time is the scale for new ones. */
  #measured(bucket: Sizes, candidates: readonly Candidate[]) {
    const known = candidates.flatMap((candidate) => {
      const { choice, key } = candidate;
      const line = this.#lines.get(identityOf(this.#start(bucket, choice, key)));
      return line === undefined || !isMeasured(line) ? [] : [{ candidate, us: line.us }];
    });
    return known.toSorted((left, right) => left.us - right.us);
  }

  #mayGoOn(): boolean {
    const { seconds } = this.#settings;
    return seconds === undefined || performance.now() - this.#begin < seconds * 1000;
  }

  #progress(sizes: Sizes, doing: string): void {
    const passed = performance.now() - this.#begin;
    const remaining = this.#done === 0 ? NaN : (passed / this.#done) * (this.#all - this.#done);
    const { onProgress } = this.#settings;
    onProgress?.({ done: this.#done, all: this.#all, sizes, doing, remaining });
  }

  #start(bucket: Sizes, choice: Choice, key: string) {
    const { target, gpu } = this.#device;
    const { variant } = this.#choices;
    const name = gpu?.name ?? ratesOf(target).board;
    const driver = gpu?.driver ?? "none";
    return {
      op: this.#operation.name,
      variant,
      key,
      gpu: name,
      target: target.name,
      driver,
      bucket,
      choice,
    };
  }

  /** Whether the same kernels were measured or rejected before. */
  #isKnown(bucket: Sizes, choice: Choice, key: string): boolean {
    return this.#lines.has(identityOf(this.#start(bucket, choice, key)));
  }

  #linesOf(
    bucket: Sizes,
    of: readonly { readonly choice: Choice; readonly key: string }[],
  ): readonly TuningLine[] {
    const found = of.flatMap(({ choice, key }) => {
      return this.#lines.get(identityOf(this.#start(bucket, choice, key))) ?? [];
    });
    const order = (line: TuningLine): number => (isRejected(line) ? Infinity : line.us);
    return found.toSorted((left, right) =>
      order(left) === order(right) ? 0 : order(left) - order(right),
    );
  }

  async #keep(line: TuningLine): Promise<void> {
    this.#lines.set(identityOf(line), line);
    this.#current.push(line);
    const { file } = this.#settings;
    if (file === undefined) return;
    const { appendTuning } = await import("../cuda/open.ts");
    await appendTuning(file, `${lineText(line)}\n`);
  }
}

type Finding =
  | (Outcome & { readonly checked?: Judge })
  | { readonly us: number; readonly source: "model" }
  | { readonly rejected: string; readonly reason: string };

function nothingFits(
  name: string,
  sizes: Sizes,
  reason: string | undefined,
  { location }: TuneSettings,
): TilewrightError {
  return new TilewrightError({
    code: "TW9812",
    message: `no choice of ${name} can be planned for ${recordText(sizes)}`,
    expected: "one that can be",
    found: reason === undefined ? "no choices" : `of the first one ${reason}`,
    location,
  });
}
