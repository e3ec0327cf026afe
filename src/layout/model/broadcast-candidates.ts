/**
 * Layouts of a large tile that leave a small one where it is wanted: of a tile that is reduced to it, or that it is repeated to. Lanes and
 * warps that hold copies of the small tile share out the axes that it lacks:
 *
 *   wanted of the sums of [64, 128]     (L2 L3 L4 R0 W0 W1)           L0 and L1 hold copies
 *   whole rows in each lane             (L2 L3 L4 R0 W0 W1 |)         the copies compute everything, too
 *   shared out                          (L2 L3 L4 R2 W0 W1 | R0 R1 L0 L1)
 *
 * How many neighbours a lane holds is what accesses to memory differ by: those of 16 bytes are moved at once; with twice as many
 * lanes of swizzled memory meet in fewer banks; half of them are what accumulators hold.
 */
import { exponentOf, isRegister, laneBit, laneBits, warpRun } from "../algebra/index-bits.ts";
import type { Bit } from "../algebra/index-bits.ts";
import { axesLayout } from "../algebra/register-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { Extent } from "./register-candidates.ts";

/** Bits of what a lane moves at once. */
const accessBits = 128;

/**
 * The whole tile's layouts in which free lanes share out the axes, the most welcome first. In the layout that is given,
 * each lane has all of these axes.
 */
export function spreadLayouts(
  whole: RegisterLayout,
  axes: readonly number[],
  { shape, bits, warps }: Extent,
): readonly RegisterLayout[] {
  if (whole.kind !== "axes") return [];
  const missing = Array<readonly Bit[]>(shape.length - whole.axes.length).fill([]);
  const owners = [...missing, ...whole.axes];
  const owned = new Set(owners.flat());
  const lanes = Array.from({ length: laneBits }, (_, lane) => laneBit(lane)).filter(
    (bit) => !owned.has(bit),
  );
  const ofWarps = warpRun(warps).filter((bit) => !owned.has(bit));
  const run = Math.max(0, Math.floor(Math.log2(accessBits / bits)));
  const isInnermost = axes.includes(shape.length - 1);
  const runs = (isInnermost ? [run, run + 1, run - 1] : [0, run]).filter((each) => each >= 0);
  // Sums of warps meet in shared memory, which takes longer than computing little in each of them.
  const made = runs.flatMap((each) => sharedOut(owners, axes, shape, [...lanes, ...ofWarps], each));
  if (ofWarps.length > 0)
    made.push(...runs.slice(0, 2).flatMap((each) => sharedOut(owners, axes, shape, lanes, each)));
  return made;
}

/** The layout whose innermost axis of those named begins with so many neighbours in a lane; nothing where no bit is free. */
function sharedOut(
  owners: readonly (readonly Bit[])[],
  axes: readonly number[],
  shape: readonly number[],
  free: readonly Bit[],
  neighbours: number,
): readonly RegisterLayout[] {
  const left = [...free];
  let run = neighbours;
  const result = owners.map((own) => own.map((bit) => (isRegister(bit) ? bit + neighbours : bit)));
  for (const axis of axes.toSorted((one, other) => other - one)) {
    const extent = shape[axis] ?? 1;
    const room = exponentOf(extent & -extent) ?? 0;
    const registers = Math.min(run, Math.max(0, room - (left.length === 0 ? 0 : 1)));
    const bits: Bit[] = Array.from({ length: registers }, (_, index) => index);
    bits.push(...left.splice(0, room - registers));
    result[axis] = [...bits, ...(result[axis] ?? [])];
    run = 0;
  }
  return left.length === free.length ? [] : [axesLayout(result)];
}
