/**
 * `cp.async`: each lane copies 4, 8 or 16 bytes from global to shared memory, beside its other work but
 * through the proxy of ordinary accesses. A source shorter than the copy is filled up with zeros.
 */
import { Knowledge } from "../../happens-before/knowledge.ts";
import { Issue, lanesOf, recordOrdinary } from "../asynchronous.ts";
import { addressKind } from "../barriers/rules.ts";
import {
  barrierBytes,
  barrierPlace,
  changeBarrier,
  findBarrier,
  toldNothing,
  toldToAll,
} from "../barriers/table.ts";
import type {
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  OperandView,
  Place,
} from "../collective.ts";
import { CarriedBytes } from "./bytes.ts";
import { groupsOf } from "./groups.ts";
import type { Work } from "./groups.ts";

interface CopyForm {
  readonly instruction: CollectiveInstruction;
  readonly to: OperandView;
  readonly from: OperandView;
  readonly size: OperandView;
  /** The number of bytes that come from the source, or a predicate that none do. */
  readonly rest: OperandView | undefined;
  readonly restIsPredicate: boolean;
}

/** What one lane moves. */
interface LaneCopy {
  readonly target: Place;
  readonly source: Place | undefined;
  readonly bytes: number;
  readonly taken: number;
}

/** `[dst], [src], size {, source size | ignore} {, policy}` */
export function ordinaryCopy(instruction: CollectiveInstruction): Collective | undefined {
  const { operands, modifiers } = instruction;
  const [to, from, size, ...others] = operands;
  if (to === undefined || from === undefined || size === undefined) return undefined;
  if (modifiers.includes("L2::cache_hint")) others.pop();
  const [rest] = others;
  const restIsPredicate = rest?.operand.kind === "register" && rest.operand.type === "pred";
  const form: CopyForm = { instruction, to, from, size, rest, restIsPredicate };
  return { aligned: false, run: (call) => runCopy(form, call) };
}

function takenBytes(form: CopyForm, call: CollectiveCall, lane: number, bytes: number): number {
  const given = form.rest?.word(call.warp, lane);
  if (given === undefined) return bytes;
  if (form.restIsPredicate) return given === 1 ? 0 : bytes;
  return Math.min(bytes, given);
}

function laneCopy(form: CopyForm, call: CollectiveCall, lane: number, issue: Issue): LaneCopy {
  const { machine, warp } = call;
  const { instruction } = form;
  const bytes = form.size.word(warp, lane);
  const taken = takenBytes(form, call, lane, bytes);
  const request = { warp, instruction, lane, bytes, alignment: bytes };
  const address = form.to.address(warp, lane);
  const target = machine.resolve({ ...request, kind: "shared", address });
  issue.record(target, bytes, "write", lane);
  if (taken === 0) return { target, source: undefined, bytes, taken };
  const start = form.from.address(warp, lane);
  const source = machine.resolve({ ...request, kind: "global", address: start, bytes: taken });
  issue.record(source, taken, "read", lane);
  return { target, source, bytes, taken };
}

function runCopy(form: CopyForm, call: CollectiveCall): "done" {
  const { machine, warp, mask } = call;
  const lanes = lanesOf(mask);
  const issue = new Issue(
    { machine, warp, lane: lanes[0] ?? 0, instruction: form.instruction },
    "generic",
  );
  const copies = lanes.map((lane) => laneCopy(form, call, lane, issue));
  const work: Work = { issue, sourceRead: false, done: false };
  const groups = groupsOf("ordinary", warp);
  for (const lane of lanes) groups.add(lane, work);
  machine.schedule(() => {
    for (const copy of copies) moveLane(copy);
    work.sourceRead = true;
    work.done = true;
    machine.changed();
  });
  return "done";
}

function moveLane({ target, source, bytes, taken }: LaneCopy): void {
  const carried = new CarriedBytes(bytes);
  if (source !== undefined) carried.take(0, source.views, source.offset, taken);
  carried.put(0, target.views, target.offset, bytes);
}

/**
 * `cp.async.mbarrier.arrive [bar]`: each lane arrives once all its copies so far are done. Without
 * `.noinc` the arrival is one that the barrier did not expect: it is added to those pending first.
 */
export function arriveWhenCopied(instruction: CollectiveInstruction): Collective | undefined {
  const [barrier] = instruction.operands;
  if (barrier === undefined) return undefined;
  const kind = addressKind(instruction.modifiers);
  const expected = instruction.modifiers.includes("noinc");
  return {
    aligned: false,
    run: ({ machine, warp, mask }) => {
      const arrivals = lanesOf(mask).map((lane) => {
        const issuer = { machine, warp, lane, instruction };
        const place = barrierPlace(issuer, kind, barrier.address(warp, lane));
        recordOrdinary(issuer, place, barrierBytes, "atomic");
        if (expected) findBarrier(issuer, place);
        else changeBarrier(issuer, place, toldNothing, (object) => object.addPending());
        return { issuer, place, copies: groupsOf("ordinary", warp).batch(lane) };
      });
      const arrive = (): void => {
        if (arrivals.some(({ copies }) => copies.told === undefined)) {
          machine.schedule(arrive);
          return;
        }
        for (const { issuer, place, copies } of arrivals)
          changeBarrier(issuer, place, toldToAll(copies.told ?? Knowledge.none), (object) =>
            object.arrive(1),
          );
      };
      machine.schedule(arrive);
      return "done";
    },
  };
}
