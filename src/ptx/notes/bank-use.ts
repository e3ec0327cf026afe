/**
 * What loads and stores of shared memory cost in wavefronts, as their layouts say, and what they would cost
 * at best. Wide and narrow accesses go by lanes; matrices go by rows of 16 bytes, eight at a time.
 */
import type { AnyOp, Kernel, Op } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";
import { bankConflicts, wavefrontsOf } from "../../layout/algebra/bank-conflicts.ts";
import type { BankUse } from "../../layout/algebra/bank-conflicts.ts";
import { elementAt } from "../../layout/algebra/element-maps.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import { bitReader } from "../../layout/algebra/shared-view.ts";
import type { SharedView } from "../../layout/algebra/shared-view.ts";
import { windowsOf } from "../../layout/model/windows.ts";
import type { Placement } from "../../layout/plan/place.ts";
import type { MemoryAccess } from "./memory-instructions.ts";

/** The wavefronts of one op, each time it runs. */
export interface OpBankUse {
  readonly op: AnyOp;
  readonly wavefronts: number;
  readonly ideal: number;
}

/** How each load and store of shared memory uses the banks; `accessesOf` tells what was emitted for an op. */
export function bankUses(
  placement: Placement,
  accessesOf: (op: AnyOp) => readonly MemoryAccess[],
): readonly OpBankUse[] {
  const windows = windowsOf(placement.kernel);
  return sharedOps(placement.kernel).flatMap((op) => {
    const window = windows.of(op.operands.ref);
    const layout = tileLayout(op, placement);
    if (window.space === "gmem" || layout === undefined || layout.kind === "splat") return [];
    const stored = placement.shared.get(window.root);
    const [view] = (stored && window.views(stored)) ?? [];
    if (view === undefined) return [];
    const use = useOf(layout, view, accessesOf(op));
    return use === undefined ? [] : [{ op, wavefronts: use.wavefronts, ideal: use.ideal }];
  });
}

function sharedOps(kernel: Kernel): readonly (Op<"load"> | Op<"store">)[] {
  const found: (Op<"load"> | Op<"store">)[] = [];
  walkOps(kernel.body, (op) => {
    // Which banks indices meet in is not known before the kernel runs.
    const isAccess = op.kind === "load" || op.kind === "store";
    if (isAccess && op.operands.indices.length === 0) found.push(op);
  });
  return found;
}

/** Where the tile lies that is loaded or stored. */
export function tileLayout(
  op: Op<"load"> | Op<"store">,
  { layouts, needs }: Placement,
): RegisterLayout | undefined {
  const [result] = op.results;
  if (op.kind === "load") return result && layouts.get(result);
  return needs.get(op)?.find(({ value }) => value === op.operands.value)?.layout;
}

function useOf(
  layout: RegisterLayout,
  view: SharedView,
  accesses: readonly MemoryAccess[],
): Pick<BankUse, "wavefronts" | "ideal"> | undefined {
  const shared = accesses.filter(({ kind }) => kind.startsWith("shared"));
  const matrix = shared.find((access) => access.matrix !== undefined);
  if (matrix !== undefined) return matrixUse(layout, view, matrix.matrix === "transposed", shared);
  const widest = Math.max(...shared.map(({ bytes = 0 }) => bytes));
  const widths = [16, 8, 4, 2, 1].filter((bytes) => bytes <= widest);
  for (const bytes of widths) {
    const use = bankConflicts(layout, view, bytes);
    if (use !== undefined) return use;
  }
  return undefined;
}

const wordBytes = 4;
const rowWords = 4;

/** The first matrix of warp 0 stands for all: layouts are permutations of bits. */
function matrixUse(
  layout: RegisterLayout,
  view: SharedView,
  transposed: boolean,
  accesses: readonly MemoryAccess[],
): Pick<BankUse, "wavefronts" | "ideal"> {
  const bitOf = bitReader(view);
  const words = Array.from({ length: 8 }, (_, row) => {
    const place = transposed
      ? { warp: 0, lane: row >> 1, register: row & 1 }
      : { warp: 0, lane: 4 * row, register: 0 };
    const element = elementAt(layout, view.shape, place) ?? 0;
    const first = Math.floor(bitOf(element) / 8 / wordBytes);
    return Array.from({ length: rowWords }, (__, word) => first + word);
  }).flat();
  const matrices = accesses.reduce((sum, { bytes = 0 }) => sum + bytes / wordBytes, 0);
  const warps = 4;
  return { wavefronts: matrices * warps * wavefrontsOf(words), ideal: matrices * warps };
}
