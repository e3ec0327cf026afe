/**
 * Checks a placement op by op, by brute force: tables of which lane holds which element, and no function
 * of the layout algebra but the element map. It knows nothing of how the placement was found.
 */
import type { AccessOp } from "../../src/ir/indexed.ts";
import type { AnyOp, Op, OpOf, Region, Value } from "../../src/ir/node.ts";
import { ruleOf } from "../../src/ir/ops.ts";
import type { OpRules } from "../../src/ir/ops.ts";
import { regionList, yieldedValues } from "../../src/ir/traverse.ts";
import * as named from "../../src/layout/algebra/named-layouts.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";
import { tensorBoxProblem, wgmmaProblem } from "../../src/layout/algebra/shared-legality.ts";
import { matrixOf } from "../../src/layout/model/product-instructions.ts";
import { windowsOf } from "../../src/layout/model/windows.ts";
import type { Windows } from "../../src/layout/model/windows.ts";
import { allocate } from "../../src/layout/plan/allocate.ts";
import type { Placement } from "../../src/layout/plan/place.ts";
import { placedKernel } from "../../src/layout/plan/placed-kernel.ts";
import { verifyMemory } from "../../src/lower/verify/memory.ts";
import { lanesPerWarp } from "../../src/targets/target.ts";
import {
  coordinates,
  holdingsOf,
  numberOf,
  product,
  shapeOf,
  sharedBits,
} from "./lane-holdings.ts";
import type { Holdings, Shape } from "./lane-holdings.ts";
import { dot, scaledDot } from "./placement-products.ts";

export function checkPlacement(placement: Placement): void {
  new Checker(placement).check();
}

class Checker {
  readonly placement: Placement;
  readonly windows: Windows;
  readonly #holdings = new Map<string, Holdings>();
  #oneWarp = false;

  constructor(placement: Placement) {
    this.placement = placement;
    this.windows = windowsOf(placement.kernel);
  }

  /** Warps of a program thread. */
  get warps(): number {
    return this.placement.kernel.warps;
  }

  check(): void {
    this.region(this.placement.kernel.body);
    for (const { source, target, plan, op } of this.placement.conversions)
      if (plan.source.text !== source.text || plan.target.text !== target.text)
        fail(op, "the plan converts something else");
    const allocated = allocate(placedKernel(this.placement));
    if (allocated.placed !== undefined) verifyMemory(allocated, allocated.placed);
  }

  region(region: Region, oneWarp = false): void {
    const before = this.#oneWarp;
    this.#oneWarp ||= oneWarp;
    for (const op of region.ops) {
      for (const result of op.results) this.#result(op, result);
      ruleOf(rules, op)(op, this);
      if (op.kind !== "warps") for (const inner of regionList(op)) this.region(inner);
    }
    this.#oneWarp = before;
  }

  /** Every element of a tile is somewhere; a warp alone holds all of it. */
  #result(op: AnyOp, value: Value): void {
    const layout = this.find(value);
    if (layout === undefined || layout.kind === "splat") return;
    const shape = shapeOf(value);
    const holdings = this.holdings(layout, shape);
    const count = product(shape);
    const whole = (from: number, to: number): boolean => {
      const found = new Set<number>();
      for (const held of holdings.slice(from, to)) for (const element of held) found.add(element);
      return found.size === count;
    };
    if (!whole(0, holdings.length)) fail(op, `${layout.text} does not hold the whole tile`);
    for (let warp = 0; this.#oneWarp && warp < this.warps; warp += 1)
      if (!whole(warp * lanesPerWarp, (warp + 1) * lanesPerWarp))
        fail(op, `warp ${warp} does not hold its tile in ${layout.text}`);
  }

  find(value: Value): RegisterLayout | undefined {
    return this.placement.layouts.get(value);
  }

  layout(value: Value): RegisterLayout {
    const layout = this.find(value);
    if (layout === undefined) throw new Error(`%${value.id} has no layout`);
    return layout;
  }

  /** In which layouts the op reads the value. */
  read(op: AnyOp, value: Value): readonly RegisterLayout[] {
    const needs = this.placement.needs.get(op) ?? [];
    const found = needs.filter((need) => need.value === value).map(({ layout }) => layout);
    if (found.length === 0 && this.find(value) !== undefined)
      fail(op, `%${value.id} is read nowhere`);
    return found;
  }

  holdings(layout: RegisterLayout, shape: Shape): Holdings {
    const key = `${layout.text} ${shape.join()}`;
    const known = this.#holdings.get(key);
    if (known !== undefined) return known;
    const made = holdingsOf(layout, shape, this.warps);
    this.#holdings.set(key, made);
    return made;
  }

  /** Every lane that holds element e of the result holds `sources(e)` of the operand. */
  available(
    op: AnyOp,
    result: { readonly layout: RegisterLayout; readonly shape: Shape },
    operand: { readonly layout: RegisterLayout; readonly shape: Shape },
    sources: (element: number) => readonly number[],
  ): void {
    if (operand.layout.kind === "splat") return;
    if (result.layout.kind === "splat") fail(op, "different elements became one number");
    const [made, held] = [
      this.holdings(result.layout, result.shape),
      this.holdings(operand.layout, operand.shape),
    ];
    made.forEach((elements, lane) => {
      for (const element of elements)
        for (const source of sources(element))
          if (held[lane]?.has(source) !== true)
            fail(op, `lane ${lane} lacks element ${source} for ${element}`);
    });
  }

  /** Both layouts hold the same in the same lanes. */
  sameLanes(op: AnyOp, left: RegisterLayout, right: RegisterLayout, shape: Shape): void {
    if (left.text === right.text) return;
    if (left.kind === "splat" || right.kind === "splat") fail(op, "a number and a tile");
    const [ours, theirs] = [this.holdings(left, shape), this.holdings(right, shape)];
    ours.forEach((elements, lane) => {
      const others = theirs[lane] ?? new Set();
      if (elements.size !== others.size || [...elements].some((each) => !others.has(each)))
        fail(op, `lane ${lane} differs between ${left.text} and ${right.text}`);
    });
  }

  /** The op reads the value in this layout. */
  lies(op: AnyOp, value: Value, wanted: RegisterLayout): void {
    for (const read of this.read(op, value)) this.sameLanes(op, read, wanted, shapeOf(value));
  }

  operandLegal(op: AnyOp, ref: Value, side: "left" | "right"): void {
    const window = this.windows.of(ref);
    if (window.space === "gmem") fail(op, "wgmma does not read global memory");
    const layout = this.placement.shared.get(window.root);
    const views = layout && window.views(layout);
    if (views === undefined) fail(op, "the operand has no layout");
    const [mn, k] = side === "left" ? [0, 1] : [1, 0];
    const count = side === "left" ? 64 : (window.shape[1] ?? 0);
    const problem = views.map((view) => wgmmaProblem(view, { mn, k, count })).find(Boolean);
    if (problem !== undefined) fail(op, problem);
  }
}

function fail(op: AnyOp, message: string): never {
  throw new Error(`${op.kind}: ${message}`);
}

const nothing = (): void => undefined;

function pointwise(op: AnyOp, operands: readonly Value[], checker: Checker, at = 0): void {
  const result = op.results[at];
  const layout = result && checker.find(result);
  if (result === undefined || layout === undefined) return;
  const shape = shapeOf(result);
  for (const operand of operands) {
    if (checker.find(operand) === undefined) continue;
    for (const read of checker.read(op, operand))
      checker.available(op, { layout, shape }, { layout: read, shape }, (element) => [element]);
  }
}

/** The result's element e is the operand's element `source(e)`, in the same lane. */
function moved(
  op: AnyOp,
  operand: Value,
  source: (element: number) => number | readonly number[],
  checker: Checker,
): void {
  const [result] = op.results;
  const layout = result && checker.find(result);
  if (result === undefined || layout === undefined || checker.find(operand) === undefined) return;
  const [shape, own] = [shapeOf(operand), shapeOf(result)];
  // Many lanes may hold an element.
  const sources = Array.from({ length: product(own) }, (_, element) => [source(element)].flat());
  for (const read of checker.read(op, operand))
    checker.available(op, { layout, shape: own }, { layout: read, shape }, (element) => {
      return sources[element] ?? [source(element)].flat();
    });
}

/**
 * Lanes that hold a part hold the result; others only if lanes that share its parts with them, along the
 * bits of the axes that disappear, hold one.
 */
function reduced(
  op: Op<"reduce"> | Op<"arg_reduce">,
  axes: readonly number[],
  checker: Checker,
): void {
  const { source } = op.operands;
  const [result] = op.results;
  const layout = result && checker.find(result);
  if (result === undefined || layout === undefined || layout.kind === "splat") return;
  const [from, to] = [shapeOf(source), shapeOf(result)];
  const kept = (element: number): number =>
    numberOf(
      coordinates(element, from).filter((_, axis) => !axes.includes(axis)),
      to,
    );
  for (const read of checker.read(op, source)) {
    const parts = checker.holdings(read, from).map((held) => new Set([...held].map(kept)));
    const sharing = sharedBits(read, from.length, axes);
    checker.holdings(layout, to).forEach((held, lane) => {
      const own = parts[lane] ?? new Set();
      if ([...own].some((part) => !held.has(part))) fail(op, `lane ${lane} lacks its result`);
      for (const element of held)
        if (
          !parts.some((others, other) => ((lane ^ other) & ~sharing) === 0 && others.has(element))
        )
          fail(op, `lane ${lane} cannot know element ${element}`);
    });
  }
}

/** What goes into a carry or result lies as it does. */
function handed(
  op: AnyOp,
  values: readonly Value[],
  into: readonly Value[],
  checker: Checker,
): void {
  values.forEach((value, position) => {
    const target = into[position];
    const wanted = target && checker.find(target);
    if (wanted === undefined || checker.find(value) === undefined) return;
    if (value.type.kind === "inflight")
      checker.sameLanes(op, checker.layout(value), wanted, shapeOf(value));
    else if (!checker.read(op, value).some(({ text }) => text === wanted.text))
      fail(op, `%${value.id} is not handed on in ${wanted.text}`);
  });
}

function ends(region: Region, results: readonly Value[], checker: Checker): void {
  const end = region.ops.at(-1);
  if (end !== undefined) handed(end, yieldedValues(region), results, checker);
}

function carries(
  op: Op<"loop"> | Op<"while">,
  parameters: readonly Value[],
  checker: Checker,
): void {
  handed(op, op.operands.initial, op.results, checker);
  parameters.forEach((parameter, position) => {
    const result = op.results[position];
    if (result !== undefined && checker.find(result)?.text !== checker.find(parameter)?.text)
      fail(op, "a carry moves between iterations");
  });
  ends(op.regions.body, op.results, checker);
}

function written(op: Exclude<AccessOp, Op<"load">>, checker: Checker): void {
  const value = op.kind === "atomic_load" ? op.operands.fill : op.operands.value;
  for (const layout of checker.read(op, value)) beside(op, { layout, value }, checker);
}

/** A lane that accesses an element has its index along each indexed axis, and its mask. */
function beside(
  op: AccessOp,
  { layout, value }: { readonly layout: RegisterLayout; readonly value: Value | undefined },
  checker: Checker,
): void {
  const { indices, where } = op.operands;
  const shape = value === undefined ? [] : shapeOf(value);
  const rank = Math.max(0, ...indices.map((index) => shapeOf(index).length));
  const first = op.attributes.indexed?.[0] ?? 0;
  const repeated = (tile: Value, start: number): void => {
    const own = shapeOf(tile);
    const back = (element: number): readonly number[] => {
      const found = coordinates(element, shape).slice(start, start + own.length);
      return [
        numberOf(
          found.map((each, axis) => (own[axis] === 1 ? 0 : each)),
          own,
        ),
      ];
    };
    const fits = checker.read(op, tile).some((read) => {
      try {
        checker.available(op, { layout, shape }, { layout: read, shape: own }, back);
        return true;
      } catch {
        return false;
      }
    });
    if (!fits && checker.find(tile) !== undefined) fail(op, "an index or mask is in another lane");
  };
  if (rank > 0) for (const index of indices) repeated(index, first);
  if (where?.type.kind === "tile") repeated(where, 0);
}

type OneOperand = OpOf<"unary" | "classify" | "assume" | "cast" | "bitcast">;

/** The rule of an op whose one operand lies as its result does. */
function likeItsSource(op: OneOperand, checker: Checker): void {
  pointwise(op, [op.operands.source], checker);
}

const rules: OpRules<[Checker], void> = {
  constant: nothing,
  block_index: nothing,
  grid_size: nothing,
  cluster_rank: nothing,
  thread_index: nothing,
  size: nothing,
  iota: (op, checker) => notOneNumber(op, checker),
  unary: likeItsSource,
  classify: likeItsSource,
  binary: (op, checker) => {
    pointwise(op, [op.operands.left, op.operands.right], checker);
  },
  compare: (op, checker) => pointwise(op, [op.operands.left, op.operands.right], checker),
  assume: likeItsSource,
  fma: (op, checker) => {
    pointwise(op, [op.operands.a, op.operands.b, op.operands.c], checker);
  },
  select: (op, checker) => {
    pointwise(op, [op.operands.condition, op.operands.ifTrue, op.operands.ifFalse], checker);
  },
  cast: likeItsSource,
  // The law of the verifier holds where layouts are stated.
  inline_ptx: (op, checker) => {
    if (op.attributes.layouts === undefined) pointwise(op, op.operands.sources, checker);
  },
  bitcast_width(op, checker) {
    const last = (value: Value | undefined): number =>
      shapeOf(value ?? op.operands.source).at(-1) ?? 1;
    const parts = last(op.operands.source) / last(op.results[0]);
    // A wide element has parts, and a narrow one is a part of one.
    const wide = (element: number): readonly number[] =>
      Array.from({ length: parts }, (_, part) => element * parts + part);
    const back = parts >= 1 ? wide : (element: number): number => Math.floor(element * parts);
    moved(op, op.operands.source, back, checker);
  },
  bitcast: (op, checker) => pointwise(op, [op.operands.source], checker),
  inline_ptx_memory: nothing,
  is_simulated: nothing,
  address_of: nothing,
  optimization_barrier: (op, checker) =>
    op.operands.values.forEach((value, at) => pointwise(op, [value], checker, at)),

  broadcast(op, checker) {
    const { source } = op.operands;
    const { shape, axes } = op.attributes;
    const from = shapeOf(source);
    const back = (element: number): number => {
      const found = coordinates(element, shape);
      return numberOf(
        axes.map((axis, index) => (from[index] === 1 ? 0 : (found[axis] ?? 0))),
        from,
      );
    };
    if (source.type.kind === "tile") moved(op, source, back, checker);
  },
  reshape: (op, checker) => {
    moved(op, op.operands.source, (element) => element, checker);
  },
  transpose(op, checker) {
    const { permutation } = op.attributes;
    const from = shapeOf(op.operands.source);
    const to = permutation.map((axis) => from[axis] ?? 1);
    const back = (element: number): number => {
      const found = coordinates(element, to);
      return numberOf(
        from.map((_, axis) => found[permutation.indexOf(axis)] ?? 0),
        from,
      );
    };
    moved(op, op.operands.source, back, checker);
  },
  layout_cast: nothing,
  convert_layout: nothing,
  alloc_scratch: nothing,
  lane_barrier: nothing,
  barriers_ready: nothing,
  products_wait: nothing,
  cluster_barrier: nothing,
  copies_read: nothing,
  slice(op, checker) {
    const { starts, sizes } = op.attributes;
    const from = shapeOf(op.operands.source);
    const back = (element: number): number =>
      numberOf(
        coordinates(element, sizes).map((each, axis) => each + (starts[axis] ?? 0)),
        from,
      );
    moved(op, op.operands.source, back, checker);
  },
  concatenate(op, checker) {
    const [result] = op.results;
    const layout = result && checker.find(result);
    if (result === undefined || layout === undefined) return;
    notOneNumber(op, checker);
    const shape = shapeOf(result);
    const { axis } = op.attributes;
    let start = 0;
    for (const part of op.operands.parts) {
      const own = shapeOf(part);
      const first = start;
      start += own[axis] ?? 0;
      const end = start;
      const back = (element: number): readonly number[] => {
        const found = coordinates(element, shape);
        const along = found[axis] ?? 0;
        return along < first || along >= end
          ? []
          : [numberOf(found.with(axis, along - first), own)];
      };
      // A tile that is joined with itself is read in two windows; one of them must be the right one.
      const reads = checker.read(op, part);
      const works = reads.some((read) => {
        try {
          checker.available(op, { layout, shape }, { layout: read, shape: own }, back);
          return true;
        } catch {
          return false;
        }
      });
      if (!works) fail(op, "a part is not where the result needs it");
    }
  },
  reduce: (op, checker) => reduced(op, op.attributes.axes, checker),
  arg_reduce: (op, checker) => reduced(op, [op.attributes.axis], checker),
  scan: (op, checker) => {
    notOneNumber(op, checker);
    pointwise(op, [op.operands.source], checker);
  },
  sort: (op, checker) => {
    notOneNumber(op, checker);
    pointwise(op, [op.operands.keys, ...op.operands.payloads], checker);
  },
  dot,
  scaled_dot: scaledDot,
  alloc: nothing,
  alloc_union: nothing,
  tmem_member: nothing,
  union_member: nothing,
  slice_ref: nothing,
  transpose_ref: nothing,
  reshape_ref: nothing,
  peer_ref: nothing,
  select_ref: nothing,
  load: (op, checker) => {
    const layout = op.results[0] && checker.find(op.results[0]);
    if (layout !== undefined) beside(op, { layout, value: op.results[0] }, checker);
    if (op.operands.fill?.type.kind === "tile") pointwise(op, [op.operands.fill], checker);
  },
  store: written,
  atomic: written,
  atomic_compare_exchange: written,
  atomic_load: written,
  atomic_store: written,

  ...{ take_block: nothing, taken_block: nothing },
  copy_async(op, checker) {
    const copy = checker.placement.copies.get(op);
    if (copy === undefined) fail(op, "no way to copy is chosen");
    if (copy.method !== "tensor") {
      if (op.attributes.multicast.length > 0 || op.attributes.reduction !== "none")
        fail(op, "only tensor copies multicast and reduce");
      return;
    }
    const sides = [op.operands.source, op.operands.destination].map((ref) =>
      checker.windows.of(ref),
    );
    for (const window of sides) {
      const layout =
        window.space === "gmem" ? undefined : checker.placement.shared.get(window.root);
      if (window.space === "gmem" || layout === undefined || copy.pieces > 1) continue;
      for (const view of window.views(layout) ?? []) {
        const problem = tensorBoxProblem(view);
        if (problem !== undefined) fail(op, problem);
      }
    }
  },
  prefetch: nothing,
  prefetch_maps: nothing,
  commit_group: nothing,
  wait_group: nothing,
  proxy_fence: nothing,
  accumulator: inFlight,
  wgmma(op, checker) {
    inFlight(op, checker);
    const { a, b, metadata } = op.operands;
    const { bits } = matrixOf(a).dtype;
    checker.operandLegal(op, b, "right");
    if (a.type.kind === "ref") checker.operandLegal(op, a, "left");
    else checker.lies(op, a, named.wgmmaLeft(bits, checker.warps));
    if (metadata) checker.lies(op, metadata, named.wgmmaMetadata(bits, checker.warps));
  },
  wgmma_wait: inFlight,
  ...{ alloc_tmem: nothing, tmem_load: nothing, tmem_store: nothing },
  tcgen05_mma: (op, checker) => checker.operandLegal(op, op.operands.b, "right"),
  ...{ tcgen05_copy: nothing, tcgen05_commit: nothing },

  alloc_barrier: nothing,
  linear_index: nothing,
  barrier_arrive: nothing,
  barrier_wait: nothing,
  barrier_test: nothing,
  delay: nothing,
  block_sync: nothing,
  cluster_arrive: nothing,
  cluster_wait: nothing,
  set_registers: nothing,
  grid_dependency: nothing,
  alloc_semaphore: nothing,
  semaphore_signal: nothing,
  semaphore_wait: nothing,
  semaphore_read: nothing,

  loop: (op, checker) => {
    carries(op, op.regions.body.parameters.slice(1), checker);
  },
  while: (op, checker) => {
    carries(op, op.regions.body.parameters, checker);
    carries(op, op.regions.condition.parameters, checker);
  },
  if: (op, checker) => {
    ends(op.regions.then, op.results, checker);
    ends(op.regions.otherwise, op.results, checker);
  },
  switch: (op, checker) => {
    for (const region of op.regions.cases) ends(region, op.results, checker);
  },
  scoped: nothing,
  on_threads: nothing,
  warps: (op, checker) => {
    checker.region(op.regions.body, true);
  },
  yield: nothing,
  ...{ debug_print: nothing, print_layout: nothing, profile_mark: nothing },
  ...{ assert: nothing, debug_break: nothing },
};

function notOneNumber(op: AnyOp, checker: Checker): void {
  for (const result of op.results)
    if (checker.find(result)?.kind === "splat") fail(op, "different elements are one number");
}

function inFlight(op: Op<"accumulator"> | Op<"wgmma"> | Op<"wgmma_wait">, checker: Checker): void {
  const wanted = named.wgmmaAccumulator(checker.warps);
  for (const each of op.results) checker.sameLanes(op, checker.layout(each), wanted, shapeOf(each));
  if (op.kind === "accumulator" && op.operands.initial !== undefined)
    pointwise(op, [op.operands.initial], checker);
}
