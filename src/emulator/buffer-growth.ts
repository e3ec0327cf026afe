/**
 * How buffers grow: by doubling, so that a heap that grows step by step is seldom copied, and where a process has no room for
 * that by what is needed. Where it has no room for that either, the engine's RangeError is for whoever asked.
 */
export interface Growth {
  /** Bytes that are needed, and those that there were before. */
  readonly needed: number;
  readonly before: number;
  /** More are never made. */
  readonly largest: number;
}

export function grown<T>(make: (bytes: number) => T, { needed, before, largest }: Growth): T {
  const doubled = Math.min(largest, 2 * before);
  if (doubled <= needed) return make(needed);
  try {
    return make(doubled);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return make(needed);
  }
}
