/** The configurations that are tried; each axis of choice is covered by itself and together with others. */
import type { PlainChoices } from "./plain.ts";
import type { WarpSpecializedChoices } from "./warp-specialized.ts";

const depths: readonly PlainChoices[] = [1, 2, 3, 4].flatMap((depth) =>
  Array.from({ length: depth }, (_, ahead): PlainChoices => ({ depth, lookahead: ahead + 1 })),
);

const delays: readonly PlainChoices[] = [
  { depth: 2, delay: 1 },
  { depth: 3, delay: 1, lookahead: 1 },
  { depth: 3, delay: 2 },
  { depth: 4, delay: 1, weights: "step" },
];

const orders: readonly PlainChoices[] = [
  { prefetch: ["w", "x"], weights: "step" },
  { prefetch: ["x", "w"], weights: "step", depth: 3 },
  { prefetch: ["w"], weights: "half", depth: 3 },
];

const visits: readonly PlainChoices[] = [
  { outer: 3, inner: 2, weights: "outer", results: "outer", accumulate: true },
  { outer: 3, inner: 2, weights: "outer", results: "step", depth: 3, lookahead: 2 },
  { outer: 2, inner: 3, weights: "half", results: "outer", depth: 3 },
  { outer: 2, inner: 3, weights: "inner", results: "inner", revisited: true },
  { outer: 3, inner: 1, weights: "outer", results: "inner", accumulate: true },
  { outer: 1, inner: 6, weights: "half", results: "half", weightDepth: 1 },
  { outer: 2, inner: 2, weights: "still", results: "still", accumulate: true },
  { outer: 2, inner: 2, weights: "step", results: "still", depth: 1 },
  { outer: 2, inner: 3, weights: "outer", results: "outer", resultDepth: 1, accumulate: true },
  { outer: 2, inner: 3, weights: "step", results: "step", resultDepth: 3, weightDepth: 4 },
  { outer: 2, inner: 3, weights: "outer", weightDepth: 3, lookahead: 1, results: "half" },
];

const counts: readonly PlainChoices[] = [
  { dynamic: true, inner: 3, depth: 4 },
  { dynamic: true, outer: 2, inner: 2, weights: "outer", results: "outer", accumulate: true },
  { dynamic: true, outer: 1, inner: 1, depth: 3 },
  { dynamic: true, outer: 2, inner: 0, results: "still" },
  { dynamic: true, outer: 0, inner: 3, weights: "step" },
  { dynamic: true, outer: -2, inner: -1 },
  { outer: 1, inner: 0 },
  { outer: 0, inner: 2, weights: "outer", results: "outer" },
  { outer: 1, inner: 1, depth: 1 },
];

const together: readonly PlainChoices[] = [
  { threads: 2 },
  { threads: 2, depth: 3, weights: "step", prefetch: ["w", "x"] },
  { threads: 2, outer: 2, inner: 2, weights: "outer", results: "outer", accumulate: true },
  { threads: 2, outer: 4, inner: 1, weights: "outer" },
  { threads: 2, dynamic: true, inner: 0 },
  { threads: 2, depth: 1 },
  { cluster: 2 },
  { cluster: 2, depth: 3, lookahead: 2, weights: "step" },
  { cluster: 2, outer: 2, inner: 2, weights: "outer", results: "outer", accumulate: true },
  { cluster: 2, dynamic: true, outer: 1, inner: 3, weights: "half", results: "half" },
  { cluster: 2, inner: 1, depth: 1 },
];

export const plainChoices: readonly PlainChoices[] = [
  ...depths,
  ...delays,
  ...orders,
  ...visits,
  ...counts,
  ...together,
];

export const specializedChoices: readonly WarpSpecializedChoices[] = [
  ...[1, 2, 3, 4].map((depth): WarpSpecializedChoices => ({ depth })),
  ...[0, 1, 2].map((delay): WarpSpecializedChoices => ({ depth: 3, delay })),
  ...[1, 3].map((computing): WarpSpecializedChoices => ({ computing })),
  { copy: "last" },
  { copy: "last", computing: 1, weights: "step" },
  { weights: "step", prefetch: ["w", "x"] },
  { weights: "half", depth: 3 },
  { weights: "half", depth: 2, delay: 0, steps: 3 },
  { weights: "half", weightDepth: 1, delay: 0 },
  { weights: "once" },
  { weights: "tile", weightDepth: 2 },
  { uneven: true },
  { uneven: true, weights: "step", depth: 4 },
  { uneven: true, weights: "half", depth: 3, columns: 4 },
  { steps: 0 },
  { steps: 1, depth: 3 },
  { rows: 3, columns: 2, order: "snake" },
  { rows: 3, columns: 2, order: "grouped", workers: 1 },
  { rows: 2, columns: 2, order: "plain", workers: 3 },
  { columns: 1, workers: 3 },
  { alternate: true, rows: 3, columns: 3, uneven: true },
  { alternate: true, columns: 5, order: "grouped", weights: "step", computing: 1 },
  { manual: true, depth: 3 },
  { manual: true, weights: "step", computing: 1 },
  { manual: true, uneven: true, copy: "last" },
  { counted: true },
  { counted: true, uneven: true, depth: 3, workers: 3, columns: 5 },
  { counted: true, rows: 3, columns: 2, order: "grouped", weights: "step", computing: 1 },
  { counted: true, columns: 1, workers: 3, weights: "once", copy: "last" },
  { counted: true, steps: 0, workers: 1 },
  { split: true, columns: 1, workers: 3, steps: 7 },
  { split: true, columns: 4, workers: 3, weights: "step", depth: 3 },
  { split: true, rows: 3, columns: 3, order: "grouped", workers: 4, steps: 5, computing: 1 },
  { split: true, columns: 5, workers: 4, steps: 2, manual: true, copy: "last" },
  { split: true, columns: 4, workers: 2, weights: "once" },
  { split: true, steps: 0, columns: 4, workers: 3 },
  { cluster: 2, workers: 1, columns: 2, steps: 3 },
  { cluster: 2, workers: 1, columns: 2, steps: 2, weights: "step", depth: 3 },
  { cluster: 2, workers: 1, columns: 2, steps: 3, weights: "once", computing: 1 },
];

/** A configuration in words, as the name of its test. */
export function choicesText(choices: object): string {
  const words = Object.entries(choices).map(([name, value]: [string, unknown]) =>
    value === true ? name : `${name} ${String(value)}`,
  );
  return words.join(", ") || "nothing said";
}
