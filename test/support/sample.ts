/**
 * Which of many alike cases a run of the tests takes: some of them, chosen by their place alone, or all with
 * `TILEWRIGHT_CASES=all`. Cases are taken as by the toss of a coin rather than every second one, so that none of the
 * loops that make them is always left at the same turn.
 */
import process from "node:process";

export const takesAll = process.env["TILEWRIGHT_CASES"] === "all";

/** Seeds of the schedules under which a kernel of the library must give the same bits. */
export const scheduleSeeds: readonly number[] = Array.from(
  { length: takesAll ? 20 : 3 },
  (_, seed) => seed,
);

/** Whether a run takes the case at a place among cases of which it takes about one in so many. */
export function isTaken(place: number, oneIn: number): boolean {
  const tossed = Math.imul(place + 1, 0x9e3779b1) >>> 0;
  return takesAll || (tossed >>> 8) % oneIn === 0;
}

/**
 * The cases that a run takes on a device, of cases some or all of which are for both. What the emulator runs is lowered from
 * what the simulator would run, so that these are dealt out, one to each in turns; the others are the simulator's.
 */
export function dealtTo<T>(
  kind: "simulator" | "emulator",
  cases: readonly T[],
  isForBoth: (one: T) => boolean = () => true,
): readonly T[] {
  const both = cases.filter(isForBoth);
  return cases.filter((one) => {
    const place = both.indexOf(one);
    if (place < 0) return kind === "simulator";
    return takesAll || (place % 2 === 0 ? "simulator" : "emulator") === kind;
  });
}

/**
 * The cases that the simulator takes where the emulator takes those of some names, which only a run of all cases takes on both:
 * what the emulator runs is lowered from what the simulator would run.
 */
export function notEmulated<T extends { readonly name: string }>(
  cases: readonly T[],
  emulated: readonly string[],
): readonly T[] {
  return takesAll ? cases : cases.filter(({ name }) => !emulated.includes(name));
}

/** The usual cases, and the others in a run of all. */
export function usually<T>(usual: readonly T[], others: readonly T[]): readonly T[] {
  return takesAll ? [...usual, ...others] : usual;
}

/** The first of the cases, and of the others about one in so many. */
export function sampleOf<T>(cases: readonly T[], oneIn: number): readonly T[] {
  return cases.filter((_, place) => place === 0 || isTaken(place, oneIn));
}
