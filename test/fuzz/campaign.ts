/**
 * A campaign: seed after seed, until time or seeds run out. Of each failure the smallest kernel found is kept; of the
 * others, the seeds that exercise something new.
 *
 *   seeds 0, jobs, 2·jobs, …      this job's share: campaigns of any number of jobs go over the same seeds
 */
import type { Backend } from "../../src/device/backend.ts";
import { lower } from "../../src/lower/pipeline.ts";
import type { Executable } from "../../src/ptx/executable.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { Random } from "../../src/support/random.ts";
import { targets } from "../../src/targets/target.ts";
import { featuresOf } from "./coverage.ts";
import { fixtureText } from "./fixtures.ts";
import { judge } from "./run.ts";
import { shrink } from "./shrink.ts";
import { subjectOf } from "./subjects.ts";
import type { Subject, SubjectKind } from "./subjects.ts";
import { tryTexts } from "./texts.ts";

export interface Failure {
  readonly seed: number;
  readonly kind: SubjectKind | "text";
  readonly why: string;
  /** A fixture, or the text that went wrong. */
  readonly text: string;
}

export interface Tally {
  kernels: number;
  texts: number;
  skipped: number;
  readonly byKind: { [kind: string]: number };
  /** Seeds that exercised something that none before them did. */
  readonly corpus: number[];
  readonly failures: Failure[];
}

export interface CampaignOptions {
  /** Tried first. */
  readonly corpus?: readonly number[];
  readonly firstSeed: number;
  readonly stride: number;
  readonly mostKernels?: number;
  readonly milliseconds?: number;
  readonly gpu?: Backend | undefined;
  readonly onFailure?: (failure: Failure) => void;
}

/** Kinds of failure: shrinking must not turn one into another. */
function category(why: string): string {
  const code = /TW\d{4}/.exec(why)?.[0];
  return why.includes("gives other elements") ? "elements" : (code ?? "uncoded");
}

async function smallest(subject: Subject, why: string, gpu: Backend | undefined): Promise<Subject> {
  const wanted = category(why);
  const kernel = await shrink(subject.kernel, async (smaller) => {
    const verdict = await judge({ ...subject, kernel: smaller }, gpu);
    return verdict.kind === "different" && category(verdict.why) === wanted;
  });
  return { ...subject, kernel };
}

function compiled({ kernel, target }: Subject): Executable | undefined {
  try {
    return lower(kernel, targets[target]);
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
}

/** One seed in so many is looked at for what it exercises, and changed as text. */
const sampled = 8;

export async function campaign(options: CampaignOptions): Promise<Tally> {
  const { corpus = [], firstSeed, stride, mostKernels = Infinity, gpu } = options;
  const end = performance.now() + (options.milliseconds ?? Infinity);
  const tally: Tally = { kernels: 0, texts: 0, skipped: 0, byKind: {}, corpus: [], failures: [] };
  const seen = new Set<string>();
  const fail = (failure: Failure): void => {
    tally.failures.push(failure);
    options.onFailure?.(failure);
  };
  const kept = corpus.filter((_, position) => position % stride === firstSeed % stride);
  const next = function* (): Generator<number> {
    yield* kept;
    for (let seed = firstSeed; ; seed += stride) yield seed;
  };
  for (const seed of next()) {
    if (tally.kernels >= mostKernels || performance.now() >= end) break;
    const subject = subjectOf(seed);
    const verdict = await judge(subject, gpu);
    tally.kernels += 1;
    tally.byKind[subject.kind] = (tally.byKind[subject.kind] ?? 0) + 1;
    if (verdict.kind === "skipped") tally.skipped += 1;
    if (verdict.kind === "different") {
      const text = fixtureText(await smallest(subject, verdict.why, gpu));
      fail({ seed, kind: subject.kind, why: verdict.why, text });
      continue;
    }
    if (Math.floor(seed / stride) % sampled !== 0) continue;
    const before = seen.size;
    for (const feature of featuresOf(subject.kernel, compiled(subject))) seen.add(feature);
    if (seen.size > before) tally.corpus.push(seed);
    const problem = tryTexts(subject, new Random(seed));
    tally.texts += 2;
    if (problem !== undefined) fail({ seed, kind: "text", ...problem });
  }
  return tally;
}
