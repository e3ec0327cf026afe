/** The nesting depth of data from a file: JSON has any depth, and recursive functions would run out of stack. */

/** Whether lists and records are nested at most `mostLevels` deep. */
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
