/** Changed texts, seed after seed, judged and counted; of what fails the smallest text found is kept. */
import type { Device } from "../../../src/device/device.ts";
import { Random } from "../../../src/support/random.ts";
import { corpus } from "./corpus.ts";
import { judge } from "./judge.ts";
import type { Stage } from "./judge.ts";
import { changed } from "./mutations.ts";
import { shrinkText } from "./shrink.ts";

export interface TextFailure {
  readonly seed: number;
  readonly why: string;
  readonly text: string;
}

interface Counts {
  [name: string]: number;
}

/** What was tried; plain data, so that processes can hand it on. */
export interface TextTally {
  texts: number;
  /** Texts by the stage that they reached last. */
  readonly stages: Counts;
  /** Refused texts by their code. */
  readonly codes: Counts;
  readonly failures: TextFailure[];
}

export function emptyTextTally(): TextTally {
  return { texts: 0, stages: {}, codes: {}, failures: [] };
}

function count(counts: Counts, name: string, more = 1): void {
  counts[name] = (counts[name] ?? 0) + more;
}

export function addTextTally(sum: TextTally, more: TextTally): void {
  sum.texts += more.texts;
  for (const key of ["stages", "codes"] as const)
    for (const [name, number] of Object.entries(more[key])) count(sum[key], name, number);
  sum.failures.push(...more.failures);
}

/** Processor time, in milliseconds, that nothing short of endless work takes for a text of some kilobytes. */
const longest = 20_000;

/** One accepted text in so many runs on the device, too. */
const simulated = 10;

export function changedText(seed: number): string {
  const random = new Random(seed);
  return changed(random.pick(corpus()), random, corpus());
}

/** Failures of one kind: those that say the same but for numbers. */
export function kindOf(why: string): string {
  const [first = "", second = ""] = why.replace(/\d+/g, "N").split("\n");
  return `${first.slice(0, 100)}${second.slice(0, 100)}`;
}

async function problemOf(text: string, device?: Device): ReturnType<typeof judge> {
  const before = process.cpuUsage();
  const verdict = await judge(text, device);
  const { user, system } = process.cpuUsage(before);
  const milliseconds = (user + system) / 1000;
  if (milliseconds <= longest) return verdict;
  return { problem: `it takes ${Math.round(milliseconds)} ms of a processor`, ...verdict };
}

/** Judges the texts of seeds, on `device` too where it is given; without `shrinks` failing texts are kept as they are. */
export async function tryTexts(
  seeds: Iterable<number>,
  device: Device | undefined,
  shrinks = true,
): Promise<TextTally> {
  const tally = emptyTextTally();
  for (const seed of seeds) {
    const text = changedText(seed);
    const own = seed % simulated === 0 ? device : undefined;
    const { stage, code, problem } = await problemOf(text, own);
    tally.texts += 1;
    count(tally.stages, stage satisfies Stage);
    if (code !== undefined) count(tally.codes, code);
    if (problem === undefined) continue;
    const fails = async (smaller: string): Promise<boolean> => {
      const again = await problemOf(smaller, own);
      return again.problem !== undefined && kindOf(again.problem) === kindOf(problem);
    };
    const smallest = shrinks ? await shrinkText(text, fails) : text;
    tally.failures.push({ seed, why: problem, text: smallest });
  }
  return tally;
}
