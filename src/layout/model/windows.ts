/**
 * Windows on memory, followed back to what they are windows of.
 *
 *   tileA.at(slot)          slice_ref of alloc [2, 128, 64]    shared: one view for each layout of tileA
 *   a.at(rows, depth)       slice_ref of the parameter a       global: strides, and how the start is aligned
 *
 * Offsets known only at run time are seen through their divisors. A shared window is looked at twice:
 * with such offsets at 0, and at their divisor; what holds of both holds of every multiple.
 */
import { Memo, onceForEach } from "../../support/memo.ts";
import { packedBytes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, OpOf, Value } from "../../ir/node.ts";
import type { WindowKind } from "../../ir/ops.ts";
import { factsOf } from "../../ir/range-analysis/index.ts";
import type { Facts } from "../../ir/range-analysis/index.ts";
import { sizeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { chosenAmong, isWindow } from "../../ir/traits.ts";
import { refOf } from "../../ir/traverse.ts";
import { unproved, WindowModel } from "../access/window-model.ts";
import { startDivisor, windowShape } from "../access/window.ts";
import type { GlobalBox, MemoryWindow } from "../access/window.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { reshapeView, sliceView, transposeView, wholeView } from "../algebra/shared-view.ts";
import type { SharedView } from "../algebra/shared-view.ts";

type Step = OpOf<WindowKind>;

export interface SharedWindow {
  readonly space: "smem" | "peer";
  /** The allocation or member of a union that the window lies in. */
  readonly root: Value;
  readonly allocation: readonly number[];
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Equal texts mean equal views, whatever the allocation. */
  readonly text: string;
  /** The window where the allocation is stored so, with run-time offsets at 0 and at their divisor;
   * undefined where a reshape cannot be seen through. */
  readonly views: (layout: SharedLayout) => readonly [SharedView, SharedView] | undefined;
}

export interface GlobalAxis {
  readonly extent: Size;
  /** Elements from one to the next; undefined where a reshape hides it. */
  readonly stride: Size | undefined;
}

export interface GlobalWindow {
  readonly space: "gmem";
  /** The parameter or scratch that the window lies in. */
  readonly root: Value;
  readonly dtype: DType;
  readonly axes: readonly GlobalAxis[];
  /** Axes of the array along which the window stays at one index. */
  readonly dropped: readonly GlobalAxis[];
  /** Divides the number of the first element. */
  readonly start: number;
  /** The box of an array that the window is; undefined where a reshape makes it none. */
  readonly box: GlobalBox | undefined;
  /** How many arrays it may lie in, where which of them is known at run time only; 1 elsewhere. */
  readonly arrays: number;
}

export type Window = SharedWindow | GlobalWindow;

export class Windows {
  readonly definitions: ReadonlyMap<Value, AnyOp>;
  readonly facts: Facts;
  readonly #boxes: WindowModel;
  readonly #known = new Map<Value, Window>();
  readonly #byText = new Map<string, SharedWindow>();

  constructor(kernel: Kernel) {
    this.facts = factsOf(kernel);
    this.definitions = this.facts.definitions;
    this.#boxes = new WindowModel(kernel, this.facts, () => (bound) => unproved(this.facts, bound));
  }

  of(ref: Value): Window {
    const known = this.#known.get(ref);
    if (known !== undefined) return known;
    const window = this.#resolve(ref);
    this.#known.set(ref, window);
    return window;
  }

  #resolve(ref: Value): Window {
    const steps: Step[] = [];
    let root = ref;
    for (;;) {
      const op = this.definitions.get(root);
      if (op === undefined || !isWindow(op)) break;
      steps.unshift(op);
      root = op.operands.ref;
    }
    const { space } = refOf(ref);
    if (space === "tmem") throw new Error(`%${ref.id} is a window of tensor memory`);
    return space === "gmem"
      ? globalWindow(root, this.#boxes.of(ref), this.#arraysOf(root))
      : this.#shared(root, steps, ref, space);
  }

  #arraysOf(root: Value): number {
    const op = this.definitions.get(root);
    return Math.max(1, op === undefined ? 1 : chosenAmong(op).length);
  }

  #shared(
    root: Value,
    steps: readonly Step[],
    ref: Value,
    space: SharedWindow["space"],
  ): SharedWindow {
    const { dtype, shape } = refOf(root);
    const allocation = shape.map(Number);
    const moves = steps.map((step) => this.#move(step));
    const text = [allocation.join(), dtype.bits, ...moves.map((move) => move.text)].join(" ");
    const key = `${space} ${root.id} ${text}`;
    const known = this.#byText.get(key);
    if (known !== undefined) return known;
    const shapes = { allocation, shape: refOf(ref).shape.map(Number) };
    const views = viewsOf.get(text, () => viewsThrough(moves, allocation, dtype.bits));
    const window: SharedWindow = { space, root, dtype, ...shapes, text, views };
    this.#byText.set(key, window);
    return window;
  }

  #move(step: Step): Move {
    if (step.kind === "peer_ref") return staying;
    if (step.kind === "transpose_ref") return transposeMove(step.attributes.permutation);
    if (step.kind === "reshape_ref") return reshapeMove(step.attributes.shape.map(Number));
    const sizes = step.attributes.sizes.map(Number);
    const { dropped } = step.attributes;
    const constants = step.operands.offsets.map((offset) => this.facts.constant(offset));
    const divisors = step.operands.offsets.map((offset) => this.facts.divisor(offset));
    return sliceMove(sizes, constants, divisors, dropped);
  }
}

const staying: Move = { text: "", apply: (view) => view };

function transposeMove(permutation: readonly number[]): Move {
  const text = `transpose ${permutation.join()}`;
  return { text, apply: (view) => transposeView(view, permutation) };
}

function reshapeMove(shape: readonly number[]): Move {
  return { text: `reshape ${shape.join()}`, apply: (view) => reshapeView(view, shape) };
}

function sliceMove(
  sizes: readonly number[],
  constants: readonly (number | undefined)[],
  divisors: readonly number[],
  dropped: readonly number[],
): Move {
  return {
    text: `slice ${sizes.join()} of ${constants.join()} by ${divisors.join()} but ${dropped.join()}`,
    dynamic: constants.includes(undefined),
    apply: (view, far) => {
      const starts = sizes.map((size, axis) => {
        const start = constants[axis] ?? (far ? (divisors[axis] ?? 0) : 0);
        return start + size <= (view.shape[axis] ?? 0) ? start : 0;
      });
      return sliceView(view, starts, sizes, dropped);
    },
  };
}

/** The windows of a kernel, which all that ask about it share. */
export const windowsOf = onceForEach((kernel: Kernel) => new Windows(kernel));

/** The window as costs see it. */
function globalWindow(root: Value, window: MemoryWindow, count: number): GlobalWindow {
  const { dtype } = window;
  if (window.kind !== "global") {
    const axes = windowShape(window).map((extent) => ({ extent, stride: undefined }));
    return {
      space: "gmem",
      root,
      dtype,
      axes,
      dropped: [],
      start: 1,
      box: undefined,
      arrays: count,
    };
  }
  const { array, axes } = window;
  return {
    space: "gmem",
    root,
    dtype,
    axes: axes.map(({ root: along, size }) => ({ extent: size, stride: array[along]?.stride })),
    dropped: array.filter((_, axis) => axes.every(({ root: along }) => along !== axis)),
    start: startDivisor(window),
    box: window,
    arrays: count,
  };
}

/** A step on the way to a window. It outlives the kernel that it was found in, and holds nothing of it. */
interface Move {
  /** Equal texts mean equal moves. */
  readonly text: string;
  /** Some offset is known at run time only. */
  readonly dynamic?: boolean;
  apply(view: SharedView, far: boolean): SharedView | undefined;
}

/** Views by the text of their window: kernels of one program have windows that are alike. */
const viewsOf = new Memo<SharedWindow["views"]>(256);

/** The views of each layout, made once. */
function viewsThrough(
  moves: readonly Move[],
  allocation: readonly number[],
  bits: number,
): SharedWindow["views"] {
  const known = new Map<string, ReturnType<SharedWindow["views"]>>();
  return (layout) => {
    if (known.has(layout.text)) return known.get(layout.text);
    const whole: SharedView | undefined = wholeView(layout, allocation, bits);
    const see = (far: boolean): SharedView | undefined =>
      moves.reduce((view, move) => view && move.apply(view, far), whole as SharedView | undefined);
    const near = see(false);
    const far = moves.some((move) => move.dynamic) ? see(true) : near;
    const views = near === undefined || far === undefined ? undefined : ([near, far] as const);
    known.set(layout.text, views);
    return views;
  };
}

/** Equal keys mean windows that are alike in everything that costs and copies depend on. */
export function globalKey({ axes, dropped, dtype, start, box, arrays }: GlobalWindow): string {
  const parts = [...axes, ...dropped].map(({ extent, stride }) => {
    const step = stride === undefined ? "?" : sizeText(stride);
    return `${sizeText(extent)} by ${step}`;
  });
  return `${dtype.name} ${parts.join()} of ${axes.length} from ${start} ${box && boxKey(box)}${arrays > 1 ? ` of ${arrays}` : ""}`;
}

function boxKey({ array, origin, axes, moved }: GlobalBox): string {
  const extents = array.map(({ extent }) => sizeText(extent)).join();
  const before = origin.map(({ fact }) => fact.least < 0n).join();
  const bounds = axes.map((axis) => axis.bounds.map(({ level }) => level).join("+")).join();
  return `in ${extents} before ${before} bound ${bounds} moved ${moved}`;
}

/** Bytes that the window's elements take. */
export function windowBytes({ dtype, shape }: SharedWindow): number {
  return packedBytes(
    dtype,
    shape.reduce((count, extent) => count * extent, 1),
  );
}
