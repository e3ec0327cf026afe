/** Ops at which processes meet: each exchanges its operands with its group and computes its own result. */
import type { AnyGraphOp, ChannelHandle, GraphRegion } from "../ops/index.ts";
import { emptyTensor } from "./value.ts";
import type { Datum, Tensor } from "./value.ts";
import { unsupported } from "./frame.ts";
import type { Frame, Steps } from "./frame.ts";
import { mapInPieces } from "./map.ts";
import { exchangeMode, processGroups, processIndex } from "./processes.ts";
import type { GroupMode } from "./processes.ts";
import { scalarRegion } from "./region.ts";
import { concatenate, slice } from "./shapes.ts";
import { conversion } from "./elementwise/convert.ts";

/** Where a process stands among those it exchanges with. */
interface Meeting {
  readonly group: readonly number[];
  readonly position: number;
}

function meetingOf(
  rows: readonly (readonly number[])[],
  mode: GroupMode,
  frame: Frame,
): Meeting | undefined {
  const { session } = frame;
  const own = processIndex(session.place, session.partitions);
  const group = processGroups(rows, mode, session).find((members) => members.includes(own));
  return group === undefined ? undefined : { group, position: group.indexOf(own) };
}

/** The operands of all members, in the order of the group. */
function* exchange(
  op: AnyGraphOp,
  { group }: Meeting,
  value: readonly Datum[],
): Steps<readonly (readonly Tensor[])[]> {
  const answer = yield { op, kind: "exchange", channel: op.kind, group, value };
  return answer as readonly (readonly Tensor[])[];
}

/** Results of zeros, for a process outside all groups. */
function zeros(op: AnyGraphOp, frame: Frame): readonly Tensor[] {
  return op.results.map((_, i) => emptyTensor(frame.result(op, i)));
}

export interface Groups {
  readonly rows: readonly (readonly number[])[];
  readonly mode: GroupMode;
}

export function* allGather(
  op: AnyGraphOp,
  frame: Frame,
  operands: readonly Tensor[],
  dimension: number,
  { rows, mode }: Groups,
): Steps<readonly Datum[]> {
  const meeting = meetingOf(rows, mode, frame);
  if (meeting === undefined) return zeros(op, frame);
  const values = yield* exchange(op, meeting, operands);
  const results: Tensor[] = [];
  for (let i = 0; i < operands.length; i++) {
    const parts = values.map((each) => each[i] as Tensor);
    results.push(yield* concatenate(parts, dimension, frame.result(op, i)));
  }
  return results;
}

/** The sum, or whatever the region computes, of one operand over all members. */
function* combined(
  values: readonly Tensor[],
  region: GraphRegion,
  frame: Frame,
  op: AnyGraphOp,
): Steps<Tensor> {
  const run = scalarRegion(region, frame, op);
  const [first, ...rest] = values as [Tensor, ...Tensor[]];
  // The region may compute in another type than the operands have.
  const [parameter] = region.parameters;
  const element = parameter === undefined ? first.element : frame.typeOf(parameter, op).element;
  const widen = function* (value: Tensor): Steps<Tensor> {
    if (value.element === element) return value;
    const wide = emptyTensor({ element, shape: value.shape });
    return yield* mapInPieces(wide, conversion(value.element, element), [value]);
  };
  let sum = yield* widen(first);
  for (const value of rest) {
    const target = emptyTensor({ element, shape: first.shape });
    sum = yield* mapInPieces(target, run, [sum, yield* widen(value)]);
  }
  return sum;
}

export function* allReduce(
  op: AnyGraphOp,
  frame: Frame,
  operands: readonly Tensor[],
  region: GraphRegion,
  { rows, mode }: Groups,
): Steps<readonly Datum[]> {
  const meeting = meetingOf(rows, mode, frame);
  if (meeting === undefined) return zeros(op, frame);
  const values = yield* exchange(op, meeting, operands);
  const results: Tensor[] = [];
  for (let i = 0; i < operands.length; i++) {
    const parts = values.map((each) => each[i] as Tensor);
    results.push(yield* combined(parts, region, frame, op));
  }
  return results;
}

/** Part `index` of `count` along an axis. */
function part(value: Tensor, axis: number, index: number, count: number): Steps<Tensor> {
  const extent = (value.shape[axis] as number) / count;
  const starts = value.shape.map((_, each) => (each === axis ? index * extent : 0));
  const limits = value.shape.map((each, at) => (at === axis ? (index + 1) * extent : each));
  return slice(
    value,
    starts,
    limits,
    value.shape.map(() => 1),
  );
}

export function* reduceScatter(
  op: AnyGraphOp,
  frame: Frame,
  operand: Tensor,
  dimension: number,
  region: GraphRegion,
  { rows, mode }: Groups,
): Steps<readonly Datum[]> {
  const meeting = meetingOf(rows, mode, frame);
  if (meeting === undefined) return zeros(op, frame);
  const values = yield* exchange(op, meeting, [operand]);
  const sum = yield* combined(
    values.map((each) => each[0] as Tensor),
    region,
    frame,
    op,
  );
  return [yield* part(sum, dimension, meeting.position, meeting.group.length)];
}

export function* allToAll(
  op: AnyGraphOp,
  frame: Frame,
  operands: readonly Tensor[],
  axes: { readonly split: number; readonly concat: number; readonly count: number },
  groups: Groups,
): Steps<readonly Datum[]> {
  const meeting = meetingOf(groups.rows, groups.mode, frame);
  if (meeting === undefined) return zeros(op, frame);
  const values = yield* exchange(op, meeting, operands);
  const results: Tensor[] = [];
  for (let i = 0; i < operands.length; i++) {
    const parts: Tensor[] = [];
    for (const each of values)
      parts.push(yield* part(each[i] as Tensor, axes.split, meeting.position, axes.count));
    results.push(yield* concatenate(parts, axes.concat, frame.result(op, i)));
  }
  return results;
}

/** Operands of the first of the group, or each of the member whose place the last operand has. */
export function* collectiveBroadcast(
  op: AnyGraphOp,
  frame: Frame,
  operands: readonly Tensor[],
  hasRoots: boolean,
  { rows, mode }: Groups,
): Steps<readonly Datum[]> {
  const meeting = meetingOf(rows, mode, frame);
  if (meeting === undefined) return zeros(op, frame);
  const values = yield* exchange(op, meeting, operands);
  if (!hasRoots) return values[0] ?? [];
  const roots = operands.at(-1);
  return operands.slice(0, -1).map((_, i) => {
    const root = Number(roots?.data[i]);
    const value = values[root]?.[i];
    if (value === undefined)
      throw unsupported(op, `root ${root} is no place in a group of ${values.length}`);
    return value;
  });
}

/** The first of the group has the combined operands, the others zeros. */
export function* collectiveReduce(
  op: AnyGraphOp,
  frame: Frame,
  operand: Tensor,
  region: GraphRegion,
  { rows, mode }: Groups,
): Steps<readonly Datum[]> {
  const meeting = meetingOf(rows, mode, frame);
  if (meeting === undefined) return zeros(op, frame);
  const values = yield* exchange(op, meeting, [operand]);
  if (meeting.position !== 0) return zeros(op, frame);
  const parts = values.map((each) => each[0] as Tensor);
  return [yield* combined(parts, region, frame, op)];
}

export function* collectivePermute(
  op: AnyGraphOp,
  frame: Frame,
  operand: Tensor,
  pairs: readonly (readonly number[])[],
  channel: ChannelHandle | undefined,
): Steps<readonly Datum[]> {
  const { session } = frame;
  const own = processIndex(session.place, session.partitions);
  const routes = pairs.length === 0 ? [] : processGroups(pairs, exchangeMode(channel), session);
  const group = [...new Set(routes.flat())].sort((left, right) => left - right);
  if (!group.includes(own)) return zeros(op, frame);
  const values = yield* exchange(op, { group, position: group.indexOf(own) }, [operand]);
  const source = routes.find(([, target]) => target === own)?.[0];
  if (source === undefined) return zeros(op, frame);
  return values[group.indexOf(source)] ?? [];
}
