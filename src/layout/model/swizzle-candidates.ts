/**
 * The swizzle choice: which layouts of a shared-memory buffer the solver may choose from, the preferred ones first. They are those that wgmma
 * and TMA can read and write, in both orders of the last two axes, and unswizzled row-major order. The solver takes the cheapest: bank
 * conflicts are counted by `access-cost.ts` and weighed by `cost.ts`, and an instruction whose operands cannot be stored so is refused
 * (`plan/select.ts`).
 *
 *   bf16 [2, 64, 128] in shared memory
 *
 *   | layout                               | wgmma | bank conflicts of column reads |
 *   |--------------------------------------|-------|--------------------------------|
 *   | shared(tile 64 64, swizzle 128)      | yes   | none                           |
 *   | shared(tile 64 32, swizzle 64)       | yes   | twofold                        |
 *   | shared()                             | no    | many                           |
 */
import { sharedLayout, sharedProblem } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";

type Shape = readonly number[];

/** What one access of a thread moves at most. */
const widestBytes = 16;
const swizzleWidths = [128, 64, 32] as const;

/** Layouts of an allocation in shared memory, the preferred ones first. */
export function swizzleCandidates(shape: Shape, bits: number): readonly SharedLayout[] {
  const plain = sharedLayout({});
  if (shape.length < 2) return [plain];
  const [rows = 1, columns = 1] = shape.slice(-2);
  const candidates = [
    ...wholeRows(shape, bits),
    ...tilesOf(rows, columns, bits, []),
    plain,
    ...tilesOf(columns, rows, bits, [1, 0]),
    sharedLayout({ order: [1, 0] }),
  ];
  return candidates.filter((layout) => sharedProblem(layout, shape) === undefined);
}

/** Rows as wide as a swizzle follow on through all axes, so that blocks of eight may span several of them. */
function wholeRows(shape: Shape, bits: number): readonly SharedLayout[] {
  const rows = shape.slice(0, -1).reduce((product, extent) => product * extent, 1);
  const width = swizzleWidths.find((bytes) => bytes * 8 === (shape.at(-1) ?? 1) * bits);
  const isInBlocks = (shape.at(-2) ?? 1) % 8 === 0;
  return width === undefined || isInBlocks || rows % 8 !== 0
    ? []
    : [sharedLayout({ swizzle: width })];
}

function tilesOf(
  rows: number,
  columns: number,
  bits: number,
  order: readonly number[],
): readonly SharedLayout[] {
  const layouts: SharedLayout[] = [];
  for (const width of [...swizzleWidths, 0]) {
    const elements = ((width === 0 ? widestBytes : width) * 8) / bits;
    if (rows % 8 !== 0 || columns % elements !== 0) continue;
    const whole = columns === elements;
    if (whole && width === 0) continue;
    layouts.push(
      sharedLayout({ order, ...(!whole && { tile: [rows, elements] }), swizzle: width }),
    );
  }
  return layouts;
}
