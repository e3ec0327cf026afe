/**
 * Copies behind a thread's back, by TMA or by lanes in its place: windows of views that reach over ends, into one of several buffers and read
 * from there by another view; and tiles that leave shared memory for windows of global memory, over what is there or combined with it.
 */
import { dtypes, f32, i32 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import {
  barrier,
  commitGlobal,
  commitGroup,
  commitShared,
  copyAsync,
  scoped,
  smem,
  waitGroup,
} from "../../../src/index.ts";
import type { Ref } from "../../../src/index.ts";
import { isFloat } from "./draft.ts";
import type { Draft } from "./draft.ts";
import { countOf, held, viewOf } from "./held.ts";
import { drawView, loaded, slotsOf, tracedWindow, windowOf } from "./memory-steps.ts";
import type { Along, Source } from "./memory-steps.ts";
import { binary, cast } from "./numbers.ts";
import { tileOf, valueOf } from "./steps.ts";
import type { Slot, Value } from "./steps.ts";

/** A window or buffer as copies take it. */
export function refOf(value: Value): Ref {
  return value as unknown as Ref;
}

/** Elements of sixteen bytes, of which rows of copies are multiples. */
export function grainOf(dtype: DType): number {
  return (16 * 8) / dtype.bits;
}

export function sizesOf(window: readonly Along[]): readonly number[] {
  return window.flatMap(({ size }) => (size === undefined ? [] : [size]));
}

/** A window that can be copied: rows of whole sixteens of bytes, some other axes by number. */
export function drawCopied(
  draft: Draft,
  dtype: DType,
  shape: readonly number[],
  start: (extent: number) => number | Slot,
): readonly Along[] {
  const { random } = draft;
  return shape.map((extent, axis): Along => {
    const isLast = axis === shape.length - 1;
    if (!isLast && draft.chance(0.15))
      return { start: draft.chance(0.5) ? random.below(extent) : draft.indexBelow(extent) };
    const size = isLast ? grainOf(dtype) * (1 + random.below(3)) : random.pick(draft.extents);
    const along = { start: start(extent), size };
    return draft.chance(0.15) ? { ...along, end: random.below(extent + 4) - 1 } : along;
  });
}

/** Whether a window is no larger than there is room for, and than copies may be. */
export function isCopied(draft: Draft, shape: readonly number[]): boolean {
  return countOf(shape) <= draft.room && shape.length > 0 && shape.every((extent) => extent <= 256);
}

function anywhere(draft: Draft): (extent: number) => number | Slot {
  return (extent) =>
    draft.chance(0.5) ? draft.random.below(extent + 6) - 3 : draft.exactly(i32, []);
}

/** A window that is brought into one of several buffers. */
export function copyStep(draft: Draft, sources: readonly Source[]): void {
  const source = draft.random.pick(sources);
  const seen = drawView(draft, source.shape, !source.isLaunched);
  const window = drawCopied(draft, source.dtype, seen.shape, anywhere(draft));
  const shape = sizesOf(window);
  if (!isCopied(draft, shape)) return;
  const dtype = source.dtype === f32 && draft.chance(0.3) ? dtypes.tf32 : source.dtype;
  const hasNan = dtype.kind === "float" && !/^f[46]e/.test(dtype.name);
  const fill = hasNan && draft.chance(0.3) ? "nan" : "zero";
  const buffers = draft.random.pick([1, 1, 2, 3]);
  const into = draft.random.below(buffers);
  const read = drawView(draft, shape, true);
  draft.giveBy(
    `copy ${JSON.stringify(window)} of ${source.dtype.name} ${seen.shape.join()}`,
    slotsOf(window),
    dtype,
    read.shape,
    (tracing) =>
      scoped({ all: smem(dtype, [buffers, ...shape]), ready: barrier() }, ({ all, ready }) => {
        const buffer = all.at(into);
        const from = seen
          .trace(tracing.array(source.name))
          .at(...tracedWindow(window, tracing.read));
        copyAsync(refOf(from), buffer as never, { barrier: ready, fill });
        ready.wait();
        return tileOf(read.trace(valueOf(buffer)).load());
      }),
    (computing) => {
      const view = windowOf(seen.view(computing.array(source.name)), window, computing.read);
      const copied = loaded(view, fill === "nan" ? { fill: NaN } : {}, undefined);
      const items = copied.items.map((item) => cast(source.dtype, dtype, item));
      return loaded(read.view(viewOf({ dtype, shape, items })), {}, undefined);
    },
  );
}

const added = ["i32", "u32", "i64", "u64", "f32"];
const compared = ["i32", "u32", "i64", "u64"];

/** A tile that leaves for a window of global memory. */
export function copyOutStep(draft: Draft): void {
  if (draft.inWarps) return;
  const source = draft.some(({ shape }) => shape.length > 0);
  const { dtype, shape } = source;
  // Threads share bytes of 4-bit elements where rows are odd.
  if (dtype.bits < 8 && countOf(shape) % 2 !== 0) return;
  const seen = drawView(draft, shape, true);
  const window = drawCopied(draft, dtype, seen.shape, anywhere(draft));
  const sizes = sizesOf(window);
  if (!isCopied(draft, sizes)) return;
  const combinings = [
    "none",
    "none",
    ...(added.includes(dtype.name) ? ["add"] : []),
    ...(compared.includes(dtype.name) ? ["min", "max"] : []),
  ];
  const reduction = draft.random.pick(combinings);
  const isSum = reduction === "add" && isFloat(dtype);
  const drawn = draft.exactly(dtype, sizes);
  const [first, value] = [source, drawn].map((slot) => (isSum ? draft.tamed(slot, 8) : slot));
  if (first === undefined || value === undefined) return;
  const name = `sent${draft.scratch.size}`;
  draft.scratch.set(name, { dtype, shape });
  draft.giveBy(
    `copy out ${reduction} ${JSON.stringify(window)} of ${dtype.name} ${seen.shape.join()}`,
    [first, value, ...slotsOf(window)],
    dtype,
    shape,
    ({ read, array }) =>
      scoped({ buffer: smem(dtype, sizes) }, ({ buffer }) => {
        const memory = array(name);
        memory.store(read(first));
        commitGlobal();
        buffer.store(tileOf(read(value)) as never);
        commitShared();
        const to = refOf(seen.trace(memory).at(...tracedWindow(window, read)));
        copyAsync(
          buffer as never,
          to,
          reduction === "none" ? {} : { reduction: reduction as "add" },
        );
        commitGroup();
        waitGroup(0);
        return tileOf(memory.load());
      }),
    ({ read }) => {
      const items = [...read(first).items];
      const numbers = viewOf(held(i32, shape, (_, position) => BigInt(position)));
      const places = windowOf(seen.view(numbers), window, read);
      const given = read(value).items;
      held(i32, sizes, (place, at) => {
        const position = places.get(place);
        if (position === undefined) return 0n;
        const [own, other] = [items[Number(position)] ?? 0, given[at] ?? 0];
        items[Number(position)] =
          reduction === "none" ? other : binary(reduction, dtype, own, other);
        return 0n;
      });
      return { dtype, shape, items };
    },
  );
}
