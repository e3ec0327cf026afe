/** How deep data from a file is nested: JSON is read to any depth, and functions that call themselves for each level run out of stack. */

/** Whether nothing lies within more than so many levels of lists and records. */
export function isShallow(value: unknown, mostLevels: number): boolean {
  const open: (readonly [value: unknown, level: number])[] = [[value, 0]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [each, level] = next;
    if (typeof each !== "object" || each === null) continue;
    if (level === mostLevels) return false;
    for (const inner of Object.values(each)) open.push([inner, level + 1]);
  }
  return true;
}
