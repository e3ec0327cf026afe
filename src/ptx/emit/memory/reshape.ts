/**
 * Windows on global memory under another shape. Axes of both shapes fall into groups of equal products;
 * a group of one axis each is left as it is, with its bounds. Others must be contiguous and inside for
 * certain: their axes become those of a new array, which is the old one where it was whole, and elsewhere
 * the window itself, whose start is then a base of its own.
 *
 *   | window                      | reshaped       | groups               | array              |
 *   |-----------------------------|----------------|----------------------|--------------------|
 *   | x: [n, 512]                 | [n, 8, 64]     | n : n, 512 : 8 · 64  | [n, 8, 64]         |
 *   | x: [n, 512]                 | [512 · n]      | n · 512 : 512 · n    | [512 · n]          |
 *   | x rows 64 i to 64 i + 63    | [64, 8, 64]    | 64 : 64, 512 : 8 · 64 | [n, 8, 64]        |
 *   | x rows 64 i to 64 i + 63    | [32768]        | 64 · 512 : 32768     | [32768], moved     |
 */
import { divisorNumber } from "../../../ir/facts/index.ts";
import { divideSizeExactly, knownDivisor, multiplySizes, sameSize } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { reshapeView } from "../../../layout/algebra/shared-view.ts";
import { greatestCommonDivisor } from "../../../support/integers.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type {
  GlobalValue,
  Position,
  RefValue,
  ReshapedValue,
  RootAxis,
  SharedValue,
  WindowAxis,
} from "../values.ts";
import { isZero, zeroPosition } from "./positions.ts";
import { addProduct, wideRegister } from "./wide.ts";
import type { WideSum } from "./wide.ts";

export function reshapeRef(
  context: EmitContext,
  source: RefValue,
  shape: readonly Size[],
): RefValue {
  if (source.kind === "shared") return reshapeShared(source, shape) ?? reshaped(source, shape);
  const global = source.kind === "global" ? reshapeGlobal(context, source, shape) : undefined;
  return global ?? reshaped(source, shape);
}

function reshaped(source: RefValue, shape: readonly Size[]): ReshapedValue {
  return {
    kind: "reshaped",
    dtype: source.dtype,
    source,
    shape,
    origin: shape.map(() => zeroPosition),
    axes: shape.map((size, axis) => ({ root: axis, size, bounds: [] })),
    required: [],
  };
}

/** Undefined where its axes do not follow on. The window is still the source's. */
export function reshapeShared(
  source: SharedValue,
  shape: readonly Size[],
): SharedValue | undefined {
  const { dtype } = source;
  const view = reshapeView({ ...source, bits: dtype.bits }, shape.map(Number));
  return view && { ...source, shape: view.shape, strides: view.strides };
}

interface Group {
  /** Axes of the window, outermost first. */
  readonly from: readonly WindowAxis[];
  /** Sizes of the new axes, outermost first. */
  readonly to: readonly Size[];
}

/** Groups of equal products, outermost first; undefined where an axis that disappears has bounds. */
function groupsOf(
  axes: readonly WindowAxis[],
  shape: readonly Size[],
): readonly Group[] | undefined {
  const left = axes.filter(({ size, bounds }) => size !== 1 || bounds.length > 0);
  const right = [...shape];
  const groups: Group[] = [];
  while (left.length > 0 || right.length > 0) {
    const from: WindowAxis[] = left.splice(-1);
    const to: Size[] = right.splice(-1);
    if (from.length === 0 || to[0] === 1) {
      // Ones may stand anywhere; they hold nothing apart.
      left.push(...from);
      if (to.some((size) => size !== 1)) return undefined;
      groups.unshift({ from: [], to });
      continue;
    }
    if (!evenOut(from, to, left, right)) return undefined;
    groups.unshift({ from, to });
  }
  return groups;
}

/** Takes more axes on the smaller side until both products agree. */
function evenOut(from: WindowAxis[], to: Size[], left: WindowAxis[], right: Size[]): boolean {
  for (;;) {
    const covered = multiplySizes(...from.map(({ size }) => size));
    const placed = multiplySizes(...to);
    if (sameSize(covered, placed)) return true;
    const smaller =
      divideSizeExactly(covered, placed) !== undefined ||
      (typeof covered === "number" && typeof placed === "number" && placed < covered);
    const next = smaller ? right.splice(-1) : left.splice(-1);
    if (next.length === 0) return false;
    if (smaller) to.unshift(...(next as Size[]));
    else from.unshift(...(next as WindowAxis[]));
  }
}

/** Undefined where strides cannot express it. */
export function reshapeGlobal(
  context: EmitContext,
  source: GlobalValue,
  shape: readonly Size[],
): GlobalValue | undefined {
  const groups = groupsOf(source.axes, shape);
  if (groups === undefined) return undefined;
  const used = new Set(groups.flatMap(({ from }) => from.map(({ root }) => root)));
  const array: RootAxis[] = [];
  const origin: Position[] = [];
  const axes: WindowAxis[] = [];
  const moved: number[] = [];
  const push = (axis: RootAxis, start: Position): number => {
    array.push(axis);
    return origin.push(start) - 1;
  };
  source.array.forEach((axis, root) => {
    if (!used.has(root)) push(axis, source.origin[root] ?? zeroPosition);
  });
  for (const group of groups) {
    const [only, ...others] = group.from;
    const old = only && source.array[only.root];
    if (only !== undefined && old !== undefined && others.length + group.to.length === 1) {
      const root = push(old, source.origin[only.root] ?? zeroPosition);
      axes.push({ ...only, root });
      continue;
    }
    const stride = only === undefined ? 0 : mergedStride(source, group.from);
    if (stride === undefined) return undefined;
    const whole = group.from.every((axis) => isWhole(source, axis));
    if (!whole) moved.push(...group.from.map(({ root }) => root));
    group.to.forEach((size, index) => {
      const step = multiplySizes(stride, ...group.to.slice(index + 1));
      axes.push({ root: push({ extent: size, stride: step }, zeroPosition), size, bounds: [] });
    });
  }
  // A base is a byte: no window of 4-bit elements may begin in the middle of one.
  if (source.dtype.bits === 4 && movedDivisor(source, moved) % 2 !== 0) return undefined;
  return { ...source, ...movedBase(context, source, moved), array, origin, axes };
}

/** Divides the number of elements before the new base. */
function movedDivisor({ array, origin, moved = 0 }: GlobalValue, axes: readonly number[]): number {
  return axes.reduce(
    (divisor, axis) =>
      greatestCommonDivisor(
        divisor,
        divisorNumber((origin[axis] ?? zeroPosition).fact) * knownDivisor(array[axis]?.stride ?? 1),
      ),
    moved,
  );
}

function isWhole({ array, origin }: GlobalValue, { root, size }: WindowAxis): boolean {
  return isZero(origin[root] ?? zeroPosition) && sameSize(array[root]?.extent ?? 0, size);
}

/** Elements from one to the next of contiguous axes seen as one; undefined where they are not that. */
function mergedStride({ array }: GlobalValue, axes: readonly WindowAxis[]): Size | undefined {
  let expected: Size | undefined;
  let innermost: Size | undefined;
  for (const { root, size, bounds } of axes.toReversed()) {
    const stride = array[root]?.stride ?? 1;
    if (bounds.length > 0 || (expected !== undefined && !sameSize(stride, expected)))
      return undefined;
    innermost ??= stride;
    expected = multiplySizes(stride, size);
  }
  return innermost;
}

/** The address where the origins of the given axes are zero. */
function movedBase(
  context: EmitContext,
  source: GlobalValue,
  axes: readonly number[],
): Pick<GlobalValue, "base" | "moved"> {
  const { array, origin, base, moved, dtype } = source;
  if (axes.length === 0) return { base, moved };
  const { code } = context;
  const scale = dtype.bits === 4 ? 1 : dtype.bits / 8;
  const sum = axes.reduce<WideSum>(
    (total, axis) =>
      addProduct(context, total, origin[axis] ?? zeroPosition, array[axis]?.stride ?? 1, scale),
    { register: undefined, constant: 0 },
  );
  const offset = wideRegister(context, sum);
  const bytes = dtype.bits === 4 ? code.make("b64", "shr.s64", offset, integer(1)) : offset;
  return { base: code.make("b64", "add.s64", base, bytes), moved: movedDivisor(source, axes) };
}
