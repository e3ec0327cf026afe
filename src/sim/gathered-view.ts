/**
 * The view of a gather or scatter, by index tiles or a mask: a list of its elements, −1 where there is
 * none to access.
 *
 *   x: [100, 8], rows = [3, 99, 3], where = [true, false, true]
 *
 *   x.at(rows) [3, 8]     24 … 31, −1 (8 times), 24 … 31
 *
 * An index outside its axis is a mistake unless the mask leaves it out: what lies there is nobody's. An element that
 * a store writes twice is one too, since nothing says which of the two values stays.
 */
import { coordinatesOf, rowMajorStrides } from "../formats/shape.ts";
import type { Elements } from "../formats/dtype.ts";
import type { AnyOp, OpOf } from "../ir/node.ts";
import { gatheredShape, repetitionsOf } from "../ir/indexed.ts";
import type { AccessOp, Repetition } from "../ir/indexed.ts";
import { opName } from "../ir/op-names.ts";
import { isPromisedInside } from "../ir/promises.ts";
import { placeText } from "../happens-before/access.ts";
import type { Agent } from "./agent.ts";
import type { Assembler } from "./program.ts";
import { listedElements, sharesPlaces } from "./aliased-elements.ts";
import { elementsAt, scalarAt, viewAt } from "./values.ts";
import { breakPromise } from "./window-checks.ts";
import { isFullyValid, listedView, product } from "./view.ts";
import type { View } from "./view.ts";

/** Gives the view that the running step of an access accesses. */
export type ViewReader = (agent: Agent) => View;

/** How the access of an op finds its view; `shape` is that of the tile, empty for a scalar. */
export function accessedView(code: Assembler, op: AccessOp, shape: readonly number[]): ViewReader {
  const source = code.slot(op.operands.ref);
  const { indices, where } = op.operands;
  const promised = isPromisedInside(op);
  const whole = (agent: Agent): View => {
    const view = viewAt(agent, source);
    if (promised) requireWhole(agent, view);
    return view;
  };
  if (indices.length === 0 && where === undefined) return whole;
  if (where?.type.kind === "scalar") {
    const condition = code.slot(where);
    return (agent) =>
      Number(scalarAt(agent, condition)) === 1
        ? whole(agent)
        : listedView(viewAt(agent, source), [], noElement);
  }
  const gatherer = new Gatherer(code, op, shape);
  return (agent) => gatherer.view(agent, viewAt(agent, source));
}

const noElement = Int32Array.of(-1);

/** A tile beside the accessed one: its slot, and its element for each of those. */
interface Beside {
  readonly slot: number;
  readonly indices: Int32Array;
}

class Gatherer {
  readonly #op: AccessOp;
  readonly #shape: readonly number[];
  /** Where every element's position along each axis of the window comes from: a tile of indices, or the element itself. */
  readonly #axes: readonly (Beside | Int32Array)[];
  readonly #mask: Beside | undefined;

  constructor(code: Assembler, op: AccessOp, shape: readonly number[]) {
    this.#op = op;
    this.#shape = shape;
    const beside = repetitionsOf(op, shape).map((repetition) => ({
      slot: code.slot(repetition.value),
      indices: repeatedIndices(repetition),
    }));
    const indices = beside.slice(0, op.operands.indices.length).values();
    this.#axes = gatheredShape(op).axisOf.map((axis) =>
      axis === undefined ? (indices.next().value as Beside) : positionsAlong(shape, axis),
    );
    this.#mask = beside[op.operands.indices.length];
  }

  view(agent: Agent, window: View): View {
    const { sizes, lower, upper, elements: listed } = window;
    const strides = listed === undefined ? window.strides : rowMajorStrides(sizes);
    const mask = this.#mask && elementsAt(agent, this.#mask.slot);
    const masked = this.#mask?.indices;
    const rank = this.#axes.length;
    const elements = new Int32Array(product(this.#shape)).fill(-1);
    for (let flat = 0; flat < elements.length; flat++) {
      if (mask !== undefined && !isSet(mask, masked?.[flat] ?? 0)) continue;
      let element = listed === undefined ? window.offset : 0;
      let isInside = true;
      for (let axis = 0; axis < rank; axis++) {
        const index = this.#indexOf(agent, window, axis, flat);
        if (index < (lower[axis] as number) || index >= (upper[axis] as number)) isInside = false;
        element += index * (strides[axis] as number);
      }
      if (isInside) elements[flat] = listed === undefined ? element : (listed[element] ?? -1);
      if (elements[flat] === -1) this.#leaveOut(agent, flat);
    }
    const view = listedView(window, this.#shape, elements);
    if (this.#mayStoreTwice(window)) requireDistinct(agent, this.#op, view, elements);
    return view;
  }

  /** Whether several elements may be stored in one place. */
  #mayStoreTwice(window: View): boolean {
    const isStore = this.#op.kind === "store" || this.#op.kind === "atomic_store";
    return isStore && (this.#op.operands.indices.length > 0 || sharesPlaces(window));
  }

  /** Nothing is accessed of an element that is outside, which must not be one of an access that is promised to be inside. */
  #leaveOut(agent: Agent, flat: number): void {
    if (isPromisedInside(this.#op))
      breakPromise(agent, `element [${coordinatesOf(flat, this.#shape).join(", ")}]`);
  }

  /** The position of an element along an axis of the window. */
  #indexOf(agent: Agent, window: View, axis: number, flat: number): number {
    const from = this.#axes[axis] as Beside | Int32Array;
    if (from instanceof Int32Array) return from[flat] as number;
    const index = elementsAt(agent, from.slot)[from.indices[flat] as number] as number | bigint;
    if (index < 0 || index >= (window.sizes[axis] as number))
      this.#refuse(agent, window, { axis, index, flat });
    return Number(index);
  }

  #refuse(
    agent: Agent,
    window: View,
    found: { readonly axis: number; readonly index: number | bigint; readonly flat: number },
  ): never {
    const { name } = window.memory.description;
    const { axis, index, flat } = found;
    if (isPromisedInside(this.#op))
      breakPromise(agent, `index ${index} on axis ${axis} of ${name}`);
    const extent = window.sizes[axis] as number;
    return stop(agent, this.#op, "TW3005", {
      message: `${opName(this.#op)} with index ${index} on axis ${axis} of ${name}, which has ${extent}`,
      expected: `indices from 0 to ${extent - 1}`,
      found: `${index}, for element [${coordinatesOf(flat, this.#shape).join(", ")}] in ${placeText(agent.place())}`,
      remedy: "leave such elements out with { where }, or with { outOfBounds }",
    });
  }
}

/** Stops the run where a window reaches outside that an access promises to be inside. */
export function requireWhole(agent: Agent, view: View): void {
  if (view.fault !== undefined || isFullyValid(view)) return;
  const { sizes, lower, upper, memory } = view;
  const axis = sizes.findIndex(
    (size, each) => (lower[each] ?? 0) > 0 || (upper[each] ?? size) < size,
  );
  const where = axis < 0 ? "" : `, on axis ${axis}`;
  breakPromise(agent, `a window that reaches outside ${memory.description.name}${where}`);
}

/** A store through strides that lay elements over each other writes each once. */
export function requireApart(agent: Agent, op: OpOf<"store" | "atomic_store">, view: View): void {
  if (sharesPlaces(view)) requireDistinct(agent, op, view, listedElements(view));
}

function requireDistinct(
  agent: Agent,
  op: AnyOp,
  { memory, sizes }: View,
  elements: Int32Array,
): void {
  const first = new Map<number, number>();
  elements.forEach((element, flat) => {
    if (element < 0) return;
    const other = first.get(element);
    if (other === undefined) {
      first.set(element, flat);
      return;
    }
    const place = (each: number): string => `[${coordinatesOf(each, sizes).join(", ")}]`;
    stop(agent, op, "TW3023", {
      message: `store writes element ${element} of ${memory.description.name} twice`,
      expected: "indices and strides that lead to each element once",
      found: `${place(other)} and ${place(flat)} in ${placeText(agent.place())}`,
    });
  });
}

function stop(
  agent: Agent,
  op: AnyOp,
  code: "TW3005" | "TW3023",
  details: {
    readonly message: string;
    readonly expected: string;
    readonly found: string;
    readonly remedy?: string;
  },
): never {
  return agent.machine.findings.stop({ code, location: op.location, ...details }, op);
}

function isSet(mask: Elements, flat: number): boolean {
  return Number(mask[flat]) === 1;
}

/** The element of a repeated tile for each element of what it is repeated over. */
function repeatedIndices({ from, to, axes }: Repetition): Int32Array {
  const strides = rowMajorStrides(from);
  return Int32Array.from({ length: product(to) }, (_, flat) => {
    const own = coordinatesOf(flat, to);
    return axes.reduce(
      (sum, axis, index) =>
        sum + (from[index] === 1 ? 0 : (own[axis] ?? 0) * (strides[index] ?? 0)),
      0,
    );
  });
}

/** The position of every element along an axis of its own shape. */
function positionsAlong(shape: readonly number[], axis: number): Int32Array {
  const stride = product(shape.slice(axis + 1));
  const extent = shape[axis] ?? 1;
  return Int32Array.from(
    { length: product(shape) },
    (_, flat) => Math.floor(flat / stride) % extent,
  );
}

/**
 * The accesses of an atomic update one after another, each with distinct elements, so that an element which indices or strides
 * lead to twice is updated twice.
 */
export function distinctRounds(view: View): readonly View[] {
  const elements = sharesPlaces(view) ? listedElements(view) : view.elements;
  if (elements === undefined) return [view];
  const seen = new Map<number, number>();
  const rounds: Int32Array[] = [];
  elements.forEach((element, flat) => {
    if (element < 0) return;
    const round = seen.get(element) ?? 0;
    seen.set(element, round + 1);
    const own = (rounds[round] ??= new Int32Array(elements.length).fill(-1));
    own[flat] = element;
  });
  if (rounds.length <= 1) return [view];
  return rounds.map((own) => listedView(view, view.sizes, own));
}
