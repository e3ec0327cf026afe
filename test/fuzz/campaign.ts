/**
 * A campaign: seed after seed. Of each failure the smallest kernel found is kept; of the others, the seeds that
 * exercise something new.
 */
import { printKernel } from "../../src/ir/printer.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { Random } from "../../src/support/random.ts";
import { featuresOf } from "./coverage.ts";
import { faultOf } from "./faults/index.ts";
import { judgeFault } from "./faults/judge.ts";
import { fixtureText } from "./fixtures.ts";
import { judge, lowered } from "./run.ts";
import type { Equipment } from "./run.ts";
import { shrink } from "./shrink.ts";
import { fuzzTargets, subjectOf } from "./subjects.ts";
import type { FuzzTarget, Subject, SubjectKind } from "./subjects.ts";
import { tryTexts } from "./texts.ts";

export interface Failure {
  readonly seed: number;
  readonly kind: SubjectKind | "text" | "fault";
  readonly why: string;
  /** A fixture, or the text that went wrong. */
  readonly text: string;
}

/** How many, by name. */
export interface Counts {
  [name: string]: number;
}

/** What a campaign has tried; plain data, so that processes can hand it on. */
export interface Tally {
  kernels: number;
  /** Of the kernels, those that were placed in any way instead of the cheapest. */
  placedAtRandom: number;
  /** Of the kernels, those that a GPU ran too. */
  onGpu: number;
  texts: number;
  /** Programs with a planted fault, each beside the same without it. */
  faults: number;
  readonly byKind: Counts;
  readonly byTarget: Counts;
  /** Kernels that were not compared to the end, by the code of why. */
  readonly refused: Counts;
  /** Seeds that exercised something that none before them did, with what that is. */
  readonly corpus: { readonly seed: number; readonly features: readonly string[] }[];
  readonly failures: Failure[];
}

export function emptyTally(): Tally {
  return {
    kernels: 0,
    placedAtRandom: 0,
    onGpu: 0,
    texts: 0,
    faults: 0,
    byKind: {},
    byTarget: {},
    refused: {},
    corpus: [],
    failures: [],
  };
}

function count(counts: Counts, name: string, more = 1): void {
  counts[name] = (counts[name] ?? 0) + more;
}

/** Adds what another campaign has tried. */
export function addTally(sum: Tally, more: Tally): void {
  sum.kernels += more.kernels;
  sum.placedAtRandom += more.placedAtRandom;
  sum.onGpu += more.onGpu;
  sum.texts += more.texts;
  sum.faults += more.faults;
  for (const key of ["byKind", "byTarget", "refused"] as const)
    for (const [name, number] of Object.entries(more[key])) count(sum[key], name, number);
  const known = new Set(sum.corpus.flatMap(({ features }) => features));
  for (const { seed, features } of more.corpus) {
    const fresh = features.filter((feature) => !known.has(feature));
    fresh.forEach((feature) => known.add(feature));
    if (fresh.length > 0) sum.corpus.push({ seed, features: fresh });
  }
  sum.failures.push(...more.failures);
}

export interface CampaignOptions extends Equipment {
  readonly targets?: readonly FuzzTarget[];
  readonly kinds?: readonly SubjectKind[];
  /** Whether every seed plants a fault, and nothing else. */
  readonly onlyFaults?: boolean;
  readonly onFailure?: (failure: Failure) => void;
}

/** Kinds of failure: shrinking must not turn one into another. */
function category(why: string): string {
  const code = /TW\d{4}/.exec(why)?.[0];
  return why.includes("gives other elements") ? "elements" : (code ?? "uncoded");
}

async function smallest(subject: Subject, why: string, equipment: Equipment): Promise<Subject> {
  // What a program is to give is known of the whole of it alone.
  if (why.startsWith("the simulator gives")) return subject;
  const wanted = category(why);
  // What goes wrong without a GPU is made small without it.
  const { gpu: _, ...others } = equipment;
  const needed = why.startsWith("the GPU") ? equipment : others;
  const kernel = await shrink(subject.kernel, async (smaller) => {
    const part = { ...subject, kernel: smaller, expected: undefined, near: undefined };
    const verdict = await judge(part, needed);
    return verdict.kind === "different" && category(verdict.why) === wanted;
  });
  return { ...subject, kernel };
}

/** One seed in so many is looked at for what it exercises, and changed as text. */
const sampled = 16;

/** One seed in so many plants a fault, too: none of the corpus, which is there for what valid programs exercise. */
const planted = 4;

export class Campaign {
  readonly #options: CampaignOptions;
  readonly #seen = new Set<string>();

  constructor(options: CampaignOptions = {}) {
    this.#options = options;
  }

  /** Tries every seed. */
  async run(seeds: Iterable<number>): Promise<Tally> {
    const tally = emptyTally();
    for (const seed of seeds) await this.#try(seed, tally);
    return tally;
  }

  async #try(seed: number, tally: Tally): Promise<void> {
    const { onFailure, targets = fuzzTargets, kinds, onlyFaults, ...equipment } = this.#options;
    const { gpu } = equipment;
    const fail = (failure: Failure): void => {
      tally.failures.push(failure);
      onFailure?.(failure);
    };
    if (onlyFaults === true || seed % planted === 3) await this.#plant(seed, tally, fail);
    if (onlyFaults === true) return;
    const subject = subjectOf(seed, targets, kinds);
    const verdict = await judge(subject, equipment);
    tally.kernels += 1;
    if (subject.placement !== undefined) tally.placedAtRandom += 1;
    if (gpu?.runs(subject.target) === true && verdict.kind !== "skipped") tally.onGpu += 1;
    count(tally.byKind, subject.kind);
    count(tally.byTarget, subject.target);
    if (verdict.kind === "skipped") count(tally.refused, verdict.why);
    if (verdict.kind === "different") {
      const text = fixtureText(await smallest(subject, verdict.why, equipment));
      fail({ seed, kind: subject.kind, why: verdict.why, text });
      return;
    }
    if (seed % sampled !== 0) return;
    const fresh = this.#newFeatures(subject);
    if (fresh.length > 0) tally.corpus.push({ seed, features: fresh });
    const problem = tryTexts(subject, new Random(seed));
    tally.texts += 2;
    if (problem !== undefined) fail({ seed, kind: "text", ...problem });
  }

  async #plant(seed: number, tally: Tally, fail: (failure: Failure) => void): Promise<void> {
    const faulty = faultOf(seed);
    const verdict = await judgeFault(faulty, seed);
    tally.faults += 1;
    if (verdict.kind === "skipped") count(tally.refused, verdict.why);
    if (verdict.kind === "different")
      fail({ seed, kind: "fault", why: verdict.why, text: printKernel(faulty.right.kernel) });
  }

  #newFeatures(subject: Subject): readonly string[] {
    const features = [...featuresOf(subject.kernel, executableOf(subject))];
    const fresh = features.filter((feature) => !this.#seen.has(feature));
    fresh.forEach((feature) => this.#seen.add(feature));
    return fresh;
  }
}

function executableOf(subject: Subject): ReturnType<typeof lowered>["executable"] | undefined {
  try {
    return lowered(subject).executable;
  } catch (error) {
    if (error instanceof TilewrightError) return undefined;
    throw error;
  }
}
