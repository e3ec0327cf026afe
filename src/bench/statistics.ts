/**
 * What samples say: their middle, how far they spread, and how sure their middle is. No sample is taken to be normal:
 * the interval of a median is a pair of the samples themselves, by how many of n fair coins fall on one side.
 *
 *   n = 20   sorted samples 1 2 3 4 5 [6 … 15] 16 17 18 19 20     the median lies between the 6th and the 15th
 *                                                                 with probability 0.959
 */

export interface Interval {
  /** The lower end. */
  readonly low: number;
  /** The upper end. */
  readonly high: number;
}

/** Fewer samples than this have no interval of 95%. */
export const leastRounds = 6;

const outside = 0.025;

export function sorted(samples: readonly number[]): readonly number[] {
  return samples.toSorted((left, right) => left - right);
}

/** The value below which the given part of the samples lies, between two samples where it falls between them. */
export function quantile(samples: readonly number[], part: number): number {
  const ordered = sorted(samples);
  const at = (ordered.length - 1) * part;
  const low = ordered[Math.floor(at)] ?? NaN;
  const high = ordered[Math.ceil(at)] ?? NaN;
  return low + (high - low) * (at - Math.floor(at));
}

export function median(samples: readonly number[]): number {
  return quantile(samples, 0.5);
}

/** The middle half of the samples, as a part of their median. */
export function spread(samples: readonly number[]): number {
  return (quantile(samples, 0.75) - quantile(samples, 0.25)) / median(samples);
}

/** Where the median of what the samples are taken from lies, with a probability of at least 95%. */
export function medianInterval(samples: readonly number[]): Interval {
  const ordered = sorted(samples);
  const cut = samplesCut(ordered.length);
  return { low: ordered[cut] ?? NaN, high: ordered[ordered.length - 1 - cut] ?? NaN };
}

/** How many samples may be left out at either end. */
function samplesCut(count: number): number {
  let chance = 2 ** -count;
  let below = chance;
  let cut = -1;
  while (below <= outside) {
    cut += 1;
    chance *= (count - cut) / (cut + 1);
    below += chance;
  }
  return Math.max(cut, 0);
}
