/**
 * One batch for several arrays. Each has modes of its own for the same places; what all of them have as one becomes one.
 *
 *   a   12 by 64, 128 by 768        the same extents, cut alike, and joined where every array lets them be
 *   b   1536 by 1
 */
import type { Mode } from "./strided.ts";

/** An extent with a stride for each array. */
export interface JointMode {
  readonly extent: number;
  readonly strides: readonly number[];
}

/** The modes that lists of modes with the same number of places have in common; undefined where cuts do not divide each other. */
export function jointModes(lists: readonly (readonly Mode[])[]): readonly JointMode[] | undefined {
  const pending = lists.map((modes) => modes.filter(({ extent }) => extent > 1).toReversed());
  const found: JointMode[] = [];
  while (pending.some((modes) => modes.length > 0)) {
    const heads = pending.map(([head]) => head);
    if (!heads.every((head) => head !== undefined)) return undefined;
    const extent = Math.min(...heads.map((head) => head.extent));
    if (heads.some((head) => head.extent % extent !== 0)) return undefined;
    for (const modes of pending) {
      const head = modes.shift();
      if (head !== undefined && head.extent > extent)
        modes.unshift({ extent: head.extent / extent, stride: head.stride * extent });
    }
    found.unshift({ extent, strides: heads.map(({ stride }) => stride) });
  }
  return joinedModes(found);
}

function joinedModes(modes: readonly JointMode[]): readonly JointMode[] {
  const found: JointMode[] = [];
  for (const mode of modes) {
    const before = found.at(-1);
    const follows = before?.strides.every(
      (stride, i) => stride === mode.extent * (mode.strides[i] ?? 0),
    );
    if (before !== undefined && follows === true)
      found[found.length - 1] = { extent: before.extent * mode.extent, strides: mode.strides };
    else found.push(mode);
  }
  return found;
}
