/**
 * The configurations that the model thinks fastest, found without asking it how long the others take. Each has a time that it takes at least, which
 * is soon known (`../cost/model.ts`), and in the order of these none comes any more once they are above the time of the last one that is wanted:
 *
 *   at least   2.9   3.0   3.4   3.6   4.1   4.4   6.0 …       the fastest 3 are wanted
 *   takes      3.1   4.2   3.5   3.7   –     –     –           3.1, 3.5 and 3.7, which 4.1 is above
 */
import type { TiledConfiguration } from "../configuration.ts";
import type { Estimate } from "../cost/model.ts";

/** The part of a time that `Estimate.least` may be above it by, as numbers are rounded. */
const roundedBy = 1e-9;

/** A configuration and what the model thinks that it takes. */
interface Timed {
  readonly configuration: TiledConfiguration;
  readonly seconds: number;
  /** Its place among the candidates. */
  readonly place: number;
}

/** So many of the candidates that take least, and before others those that take less; of those that take as long, those that come first. */
export function fastestOf(
  candidates: readonly TiledConfiguration[],
  estimateOf: (configuration: TiledConfiguration) => Estimate,
  count: number,
): readonly Timed[] {
  const estimates = candidates.map((each) => estimateOf(each));
  const leasts = Float64Array.from(estimates, ({ least }) => least);
  const order = candidates.map((_, place) => place);
  order.sort((left, right) => (leasts[left] ?? 0) - (leasts[right] ?? 0));
  const fastest: Timed[] = [];
  for (const place of order) {
    const [configuration, estimate] = [candidates[place], estimates[place]];
    if (configuration === undefined || estimate === undefined) continue;
    const last = fastest.length < count ? Infinity : (fastest.at(-1)?.seconds ?? Infinity);
    if (estimate.least * (1 - roundedBy) > last) break;
    insert(fastest, { configuration, seconds: estimate.seconds(), place });
    if (fastest.length > count) fastest.pop();
  }
  return fastest;
}

/** Puts one in its place among those that are in order. */
function insert(fastest: Timed[], timed: Timed): void {
  let at = fastest.length;
  fastest.push(timed);
  for (; at > 0; at -= 1) {
    const before = fastest[at - 1];
    if (before === undefined || !isFaster(timed, before)) break;
    fastest[at] = before;
  }
  fastest[at] = timed;
}

function isFaster(one: Timed, other: Timed): boolean {
  return one.seconds < other.seconds || (one.seconds === other.seconds && one.place < other.place);
}
