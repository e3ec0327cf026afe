/**
 * What each rank sends to each other, and what it makes of what comes: every collective is one round of such an exchange, a large
 * all-reduce two. Nothing here knows how bytes travel.
 *
 *   all_gather       everything to all                joins what comes along the axis
 *   reduce_scatter   part i of the axis to member i   combines what comes, in the group's order
 *   all_reduce       part i of all elements to member i, which combines them and sends that to all
 */
import { atOnce } from "../evaluate/frame.ts";
import type { Steps } from "../evaluate/frame.ts";
import { concatenate, slice } from "../evaluate/shapes.ts";
import { emptyTensor, reshaped } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import { elementBytes, sizeOf, slotsOf } from "../ops/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Collective, Reduction } from "./collective.ts";
import { reduced } from "./reduce.ts";

/** Where a rank stands in its group. */
export interface Standing {
  readonly group: readonly number[];
  readonly position: number;
}

/** One round: what goes to each member of the group, and what all that comes is made into. */
export interface Round {
  readonly send: (to: number) => readonly Tensor[];
  /** What came from each member, from oneself as well, in the group's order. */
  readonly receive: (parts: readonly (readonly Tensor[])[]) => readonly Tensor[] | Round;
}

/** Bytes up to which an all-reduce sends everything to all at once: half the messages for twice the bytes. */
const oneShotBytes = 1 << 15;

function now<T>(steps: Steps<T>): T {
  const done = atOnce(steps);
  if (done === undefined) throw new Error("moving elements waits for nobody");
  return done.value;
}

/** Part `index` of `count` along an axis. */
export function partOf(value: Tensor, axis: number, index: number, count: number): Tensor {
  const extent = value.shape[axis];
  if (extent === undefined || extent % count !== 0)
    throw new TilewrightError({
      code: "TW9705",
      message: `axis ${axis} of ${value.element}[${value.shape.join(", ")}] cannot be cut for ${count} ranks`,
      expected: extent === undefined ? "an axis that the array has" : `a multiple of ${count}`,
      found: extent === undefined ? `axis ${axis}` : `${extent}`,
    });
  const each = extent / count;
  const starts = value.shape.map((_, at) => (at === axis ? index * each : 0));
  const limits = value.shape.map((whole, at) => (at === axis ? (index + 1) * each : whole));
  const steps = value.shape.map(() => 1);
  return now(slice(value, starts, limits, steps));
}

/** Tensors one after another along an axis. */
export function joined(parts: readonly Tensor[], axis: number): Tensor {
  const [first] = parts;
  if (first === undefined) throw new Error("a group has a member");
  if (first.shape[axis] === undefined)
    throw new TilewrightError({
      code: "TW9705",
      message: `${first.element}[${first.shape.join(", ")}] cannot be joined along axis ${axis}`,
      expected: "an axis that the array has",
      found: `axis ${axis}`,
    });
  const extent = parts.reduce((sum, { shape }) => sum + (shape[axis] ?? 0), 0);
  const shape = first.shape.with(axis, extent);
  return now(concatenate(parts, axis, { kind: "tensor", element: first.element, shape }));
}

export function zerosLike({ element, shape }: Tensor): Tensor {
  return emptyTensor({ element, shape });
}

const column = (parts: readonly (readonly Tensor[])[], index: number): readonly Tensor[] =>
  parts.flatMap((each) => each.slice(index, index + 1));

/** Elements from one share of `count` to the next, without their shape. */
function share(value: Tensor, index: number, count: number): Tensor {
  const all = sizeOf(value.shape);
  const [from, to] = [Math.floor((index * all) / count), Math.floor(((index + 1) * all) / count)];
  const slots = slotsOf(value.element);
  return {
    ...value,
    shape: [to - from],
    data: value.data.slice(from * slots, to * slots),
  };
}

const bytesOf = (values: readonly Tensor[]): number =>
  values.reduce((sum, { element, shape }) => sum + sizeOf(shape) * elementBytes(element), 0);

/** The first round of a collective, as one of the group sees it. */
export function firstRound(
  collective: Collective,
  standing: Standing,
  values: readonly Tensor[],
): Round {
  const { group, position } = standing;
  const count = group.length;
  const combined = (parts: readonly (readonly Tensor[])[], reduction: Reduction) =>
    values.map((_, i) => reduced(column(parts, i), reduction));
  const joinedAlong = (parts: readonly (readonly Tensor[])[], axis: number) =>
    values.map((_, i) => joined(column(parts, i), axis));
  switch (collective.kind) {
    case "all_gather":
      return { send: () => values, receive: (parts) => joinedAlong(parts, collective.axis) };
    case "all_reduce":
      return count <= 2 || bytesOf(values) <= oneShotBytes
        ? { send: () => values, receive: (parts) => combined(parts, collective.reduction) }
        : byShares(collective.reduction, count, values);
    case "reduce_scatter":
      return {
        send: (to) => values.map((value) => partOf(value, collective.axis, to, count)),
        receive: (parts) => combined(parts, collective.reduction),
      };
    case "all_to_all":
      return {
        send: (to) => values.map((value) => partOf(value, collective.split, to, count)),
        receive: (parts) => joinedAlong(parts, collective.concat),
      };
    case "collective_permute":
      return permutation(collective.pairs, standing, values);
    case "collective_broadcast":
      return collective.hasRoots
        ? byRoots(values)
        : { send: () => (position === 0 ? values : []), receive: ([first = []]) => first };
    case "collective_reduce":
      return {
        send: (to) => (to === 0 ? values : []),
        receive: (parts) =>
          position === 0 ? combined(parts, collective.reduction) : values.map(zerosLike),
      };
  }
}

/** All-reduce of much: each combines its share of the elements for all. */
function byShares(reduction: Reduction, count: number, values: readonly Tensor[]): Round {
  return {
    send: (to) => values.map((value) => share(value, to, count)),
    receive: (parts) => {
      const own = values.map((_, i) => reduced(column(parts, i), reduction));
      return {
        send: () => own,
        receive: (sums) =>
          values.map(({ shape }, i) => reshaped(joined(column(sums, i), 0), shape)),
      };
    },
  };
}

function permutation(
  pairs: readonly (readonly number[])[],
  { group, position }: Standing,
  values: readonly Tensor[],
): Round {
  const own = group[position];
  return {
    send: (to) =>
      pairs.some(([source, target]) => source === own && target === group[to]) ? values : [],
    receive: (parts) => {
      const from = pairs.find(([, target]) => target === own)?.[0];
      const source = from === undefined ? undefined : parts[group.indexOf(from)];
      return source ?? values.map(zerosLike);
    },
  };
}

function byRoots(values: readonly Tensor[]): Round {
  const roots = values.at(-1);
  const sent = values.slice(0, -1);
  return {
    send: () => sent,
    receive: (parts) =>
      sent.map((_, i) => {
        const root = Number(roots?.data[i]);
        const value = parts[root]?.[i];
        if (value !== undefined) return value;
        throw new TilewrightError({
          code: "TW9705",
          message: `root ${root} is no place in a group of ${parts.length}`,
          expected: `0 … ${parts.length - 1}`,
          found: `${root}`,
        });
      }),
  };
}
