/**
 * Pipelines: steps of which a later one's windows are copied while an earlier one's are used. Windows move with every step, with some, or not at all, reach
 * over ends, and may come back; blocks that leave are those of the last step that visited their window.
 *
 *   for i < I, k < K:   carries, y = body(i, k, x0[window(i, k)], …, carries)     memory[window(i, k)] = y
 */
import { i32 } from "../../../src/formats/dtype.ts";
import { commitGlobal, pipeline, waitGroup, when } from "../../../src/index.ts";
import type { Ref, Tile } from "../../../src/index.ts";
import { bodyLike, carried, like, numberOf, whole } from "./control-steps.ts";
import type { Filling } from "./control-steps.ts";
import { isNumber } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { countOf, viewOf } from "./held.ts";
import type { Held } from "./held.ts";
import { drawView, loaded } from "./memory-steps.ts";
import type { Seen, Source } from "./memory-steps.ts";
import {
  computedMoving,
  drawMoving,
  shapeOf,
  storeItems,
  tracedMoving,
  usesOfMoving,
} from "./moving.ts";
import type { At, Moving, Whole } from "./moving.ts";
import { binary } from "./numbers.ts";
import type { Item } from "./numbers.ts";
import { computeBody, tileOf, traceBody, usesOf, valueOf } from "./steps.ts";
import type { Body, Computing, Slot, TracedValue, Tracing } from "./steps.ts";

export interface Input {
  readonly name: string;
  readonly source: Source;
  readonly moving: Moving;
  readonly fill: "zero" | "nan";
  readonly options: object;
  /** How the body reads the block. */
  readonly seen: Seen;
}

export function drawInput(draft: Draft, sources: readonly Source[], at: number): Input | undefined {
  const source = draft.random.pick(sources);
  const { dtype } = source;
  const moving = drawMoving(draft, dtype, source.shape);
  if (moving === undefined) return undefined;
  const hasNan = dtype.kind === "float" && !/^f[46]e/.test(dtype.name);
  const fill = hasNan && draft.chance(0.3) ? "nan" : "zero";
  const depth = draft.chance(0.3) ? { depth: 2 + draft.random.below(3) } : {};
  const evict = draft.chance(0.1) ? { evict: draft.random.pick(["first", "last"]) } : {};
  const seen = drawView(draft, shapeOf(moving), true);
  return { name: `x${at}`, source, moving, fill, options: { ...depth, ...evict, fill }, seen };
}

/** What the body reads of the block of a step. */
export function tracedBlock({ seen }: Input, block: Ref | undefined): Tile {
  return tileOf(seen.trace(valueOf(block ?? {})).load());
}

export function computedBlock(
  { source, moving, fill, seen }: Input,
  at: At<number>,
  { read, array }: Computing,
): Held {
  const view = computedMoving(moving, at, array(source.name), read);
  const block = loaded(view, fill === "nan" ? { fill: NaN } : {}, undefined);
  return loaded(seen.view(viewOf(block)), {}, undefined);
}

interface Output {
  readonly name: string;
  /** The memory that it goes to, what that holds before, and its window. */
  readonly memory: string;
  readonly before: Slot;
  readonly moving: Moving;
  readonly options: object;
  /** Whether steps add to what the one before has left, and which does not. */
  readonly gathers: "outer" | "once" | undefined;
}

function drawOutput(draft: Draft, at: number): Output | undefined {
  const before = draft.some(({ shape }) => shape.length > 0);
  const { dtype, shape } = before;
  if (dtype.bits < 8 && countOf(shape) % 2 !== 0) return undefined;
  const moving = drawMoving(draft, dtype, shape);
  if (moving === undefined) return undefined;
  const firsts = new Set(moving.starts.map(({ first }) => first));
  const [first] = firsts.size === 1 ? firsts : [undefined];
  const gathers = isNumber(dtype) && draft.chance(0.5) ? first : undefined;
  // A window that goes on along one axis and stays along the others does not come back.
  const movingOnes = moving.starts.filter((start) => start.first !== "once");
  const goesOn = movingOnes.length <= 1 && movingOnes.every((start) => start.goesOn);
  const depth = draft.chance(0.5) ? { depth: 1 + draft.random.below(3) } : {};
  const revisited = !goesOn || draft.chance(0.2);
  const memory = `drained${draft.scratch.size}`;
  draft.scratch.set(memory, { dtype, shape });
  return { name: `y${at}`, memory, before, moving, options: { ...depth, revisited }, gathers };
}

function some<T>(count: number, draw: (at: number) => T | undefined): readonly T[] {
  return Array.from({ length: count }, (_, at) => draw(at)).filter((each) => each !== undefined);
}

/** Options that hold of all inputs: room for `delay` steps and one more. */
function drawOptions(draft: Draft, inputs: readonly Input[]): object {
  const { random } = draft;
  const depth = random.pick([1, 2, 2, 3, 4]);
  const delay = draft.chance(0.3) ? { delay: depth > 1 ? random.below(2) : 0 } : {};
  const lookahead = draft.chance(0.2) ? { lookahead: 1 } : {};
  const prefetch = draft.chance(0.3)
    ? { prefetch: inputs.map(({ name }) => name).toReversed() }
    : {};
  const synchronous = draft.chance(0.1) ? { synchronous: true } : {};
  return { depth, ...delay, ...lookahead, ...prefetch, ...synchronous };
}

/** Stores a block, or combines it with what the step before has left. */
function storeBlock({ gathers }: Output, block: Ref, value: Tile, { i, k }: At<Whole>): void {
  const store = (tile: Tile): void => {
    block.store(tile as never);
  };
  if (gathers === undefined) {
    store(value);
    return;
  }
  const isFirst = gathers === "outer" ? k.eq(0) : i.eq(0).and(k.eq(0));
  when(
    isFirst,
    () => {
      store(value);
    },
    () => {
      store(tileOf(valueOf(block).load().maximum(value)));
    },
  );
}

/** A pipeline as it is drawn. */
interface Plan {
  readonly inputs: readonly Input[];
  readonly outputs: readonly Output[];
  /** Steps of the outer axis, which there is none of where they are 1, and of the fastest. */
  readonly outer: number | Slot;
  readonly inner: number | Slot;
  readonly initial: readonly Slot[];
  readonly body: Body;
  readonly options: object;
}

function drawPlan(draft: Draft, sources: readonly Source[], fill: Filling): Plan {
  const { random } = draft;
  const inputs = some(1 + random.below(2), (at) => drawInput(draft, sources, at));
  const outputs = some(random.below(3), (at) => drawOutput(draft, at));
  const count = (usual: readonly number[]): number | Slot =>
    draft.chance(0.4) ? draft.indexBelow(4) : random.pick(usual);
  const [outer, inner] = [count([1, 1, 2, 3]), count([0, 1, 2, 3, 4])];
  const axes = [0, 1].map(() => draft.slot(i32, []));
  const initial = draft.chance(0.8) ? carried(draft) : [];
  const takes = like(draft, initial);
  const blocks = inputs.map(({ source: { dtype }, seen }) => draft.slot(dtype, seen.shape));
  const stored = outputs.map(({ before: { dtype }, moving }) => draft.slot(dtype, shapeOf(moving)));
  const body = bodyLike(draft, [...axes, ...blocks, ...takes], [...initial, ...stored], fill);
  return { inputs, outputs, outer, inner, initial, body, options: drawOptions(draft, inputs) };
}

function tracePlan(plan: Plan, tracing: Tracing): readonly TracedValue[] {
  const { inputs, outputs, outer, inner, initial, body, options } = plan;
  const { read, array } = tracing;
  const traced = (count: number | Slot): Whole | number =>
    typeof count === "number" ? count : numberOf(read(count));
  const atOf = ({ i, k }: { readonly i?: Whole; readonly k: Whole }): At<Whole> => ({
    i: i ?? k.mul(0),
    k,
    count: traced(inner),
  });
  const described = ({ name, moving, options: own }: Input | Output, from: string) => {
    const at = (given: never): Ref => tracedMoving(moving, atOf(given), array(from), read);
    return [name, { at, ...own }] as const;
  };
  for (const { memory, before } of outputs) array(memory).store(read(before));
  if (outputs.length > 0) commitGlobal();
  const ended = pipeline(
    {
      grid: { ...(outer !== 1 && { i: traced(outer) }), k: traced(inner) },
      inputs: Object.fromEntries(inputs.map((input) => described(input, input.source.name))),
      outputs: Object.fromEntries(outputs.map((output) => described(output, output.memory))),
      ...options,
      ...(initial.length > 0 && { carry: initial.map((slot) => tileOf(read(slot))) }),
    } as never,
    (given: { readonly [name: string]: Ref }, values: readonly Tile[] = []) => {
      const at = atOf(given as never);
      const tiles = inputs.map((input) => tracedBlock(input, given[input.name]));
      const made = traceBody(body, tracing, [at.i, at.k, ...tiles, ...values] as TracedValue[]);
      outputs.forEach((output, place) => {
        const block = given[output.name];
        const value = made[initial.length + place];
        if (block !== undefined) storeBlock(output, block, value as Tile, at);
      });
      return made.slice(0, initial.length) as never;
    },
  ) as unknown as readonly TracedValue[] | undefined;
  if (outputs.length > 0) waitGroup(0);
  return [...(ended ?? []), ...outputs.map(({ memory }) => tileOf(array(memory).load()))];
}

/** What a block holds after a step: what the body gives, or the larger of that and what the step before has left. */
function gathered(
  { gathers, before: { dtype } }: Output,
  given: readonly Item[],
  left: readonly Item[] | undefined,
  { i, k }: At<number>,
): readonly Item[] {
  const isFirst = gathers === "outer" ? k === 0 : i === 0 && k === 0;
  if (gathers === undefined || isFirst) return given;
  return given.map((item, at) => binary("max", dtype, left?.[at] ?? 0, item));
}

function computePlan(plan: Plan, computing: Computing): readonly Held[] {
  const { inputs, outputs, outer, inner, initial, body } = plan;
  const { read } = computing;
  const numbered = (count: number | Slot): number =>
    typeof count === "number" ? count : Number(read(count).items[0]);
  const [rows, columns] = [numbered(outer), numbered(inner)];
  const drained = outputs.map(({ before }) => [...read(before).items]);
  let values: readonly Held[] = initial.map(read);
  let left: readonly (readonly Item[])[] = [];
  for (let step = 0; step < rows * columns; step++) {
    const at = { i: Math.floor(step / columns), k: step % columns, count: columns };
    const tiles = inputs.map((input) => computedBlock(input, at, computing));
    const made = computeBody(body, computing, [whole(at.i), whole(at.k), ...tiles, ...values]);
    values = made.slice(0, initial.length);
    left = outputs.map((output, place) => {
      const { items = [] } = made[initial.length + place] ?? {};
      const block = gathered(output, items, left[place], at);
      storeItems(output.moving, output.before.shape, block, at, drained[place] ?? [], read);
      return block;
    });
  }
  return [...values, ...outputs.map(({ before }, at) => ({ ...before, items: drained[at] ?? [] }))];
}

export function pipelineStep(draft: Draft, sources: readonly Source[], fill: Filling): void {
  if (draft.inWarps) return;
  const plan = drawPlan(draft, sources, fill);
  const { inputs, outputs, outer, inner, initial, body } = plan;
  const before = outputs.map((output) => output.before);
  draft.add({
    name: `pipeline of ${inputs.length} inputs and ${outputs.length} outputs`,
    uses: [
      ...[outer, inner].filter((count) => typeof count === "object"),
      ...[...inputs, ...outputs].flatMap(({ moving }) => usesOfMoving(moving)),
      ...[...before, ...initial, ...usesOf(body)],
    ],
    gives: like(draft, [...initial, ...before]),
    trace: (tracing) => tracePlan(plan, tracing),
    compute: (computing) => computePlan(plan, computing),
  });
}
