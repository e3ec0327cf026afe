/**
 * Which lines of a text another did not have, by the longest common subsequence of the two:
 *
 *   before  a b c d        after  a x c d e        new  x e
 */

/** Texts whose middles differ by more lines than this are called different altogether. */
const mostCells = 4_000_000;

export function newLines(before: readonly string[], after: readonly string[]): readonly boolean[] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start])
    start += 1;
  let [endBefore, endAfter] = [before.length, after.length];
  while (endBefore > start && endAfter > start && before[endBefore - 1] === after[endAfter - 1]) {
    endBefore -= 1;
    endAfter -= 1;
  }
  const isNew = after.map((_, index) => index >= start && index < endAfter);
  const [old, young] = [before.slice(start, endBefore), after.slice(start, endAfter)];
  if (old.length * young.length > mostCells) return isNew;
  for (const kept of commonLines(old, young)) isNew[start + kept] = false;
  return isNew;
}

/** The lines of `young` that a longest common subsequence has. */
function commonLines(old: readonly string[], young: readonly string[]): readonly number[] {
  const width = young.length + 1;
  const lengths = new Uint32Array((old.length + 1) * width);
  const length = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = young.length - 1; j >= 0; j -= 1)
      lengths[i * width + j] =
        old[i] === young[j]
          ? length(i + 1, j + 1) + 1
          : Math.max(length(i + 1, j), length(i, j + 1));
  const common: number[] = [];
  for (let i = 0, j = 0; i < old.length && j < young.length;)
    if (old[i] === young[j]) {
      common.push(j);
      i += 1;
      j += 1;
    } else if (length(i + 1, j) >= length(i, j + 1)) i += 1;
    else j += 1;
  return common;
}
