/** The instructions on mbarriers. */
import { Knowledge } from "../../happens-before/knowledge.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { finishedOperations, forLanes, lanesOf, recordOrdinary } from "../asynchronous.ts";
import type { Issuer } from "../asynchronous.ts";
import type {
  AddressKind,
  CollectiveCall,
  CollectiveInstruction,
  CollectiveRule,
  OperandView,
  Place,
  WarpView,
} from "../collective.ts";
import { reportBarrierLeftovers } from "./leftovers.ts";
import { largestCount, tokenPending } from "./mbarrier.ts";
import type { BarrierProblem, Mbarrier } from "./mbarrier.ts";
import {
  barrierBytes,
  barrierPlace,
  changeBarrier,
  createBarrier,
  findBarrier,
  isIntact,
  removeBarrier,
  reportMissedPhase,
  toldNothing,
  toldToAll,
} from "./table.ts";
import type { BarrierRecord, Told } from "./table.ts";

/** How an address operand is to be understood. */
export function addressKind(modifiers: readonly string[]): AddressKind {
  const shared = modifiers.some((modifier) => modifier.split("::")[0] === "shared");
  return shared ? "shared" : "generic";
}

const init: CollectiveRule = (instruction) => {
  const [place, count] = instruction.operands;
  if (place === undefined || count === undefined) return undefined;
  const kind = addressKind(instruction.modifiers);
  return forLanes(instruction, (issuer) => {
    const { lane } = issuer;
    const arrivals = count.word(issuer.warp, lane);
    if (arrivals < 1 || arrivals > largestCount)
      throw new TilewrightError({
        code: "TW8065",
        message: `mbarrier.init with a count of ${arrivals}`,
        location: instruction.location,
        expected: `1 to ${largestCount}`,
        found: String(arrivals),
      });
    const found = barrierPlace(issuer, kind, place.address(issuer.warp, lane));
    recordOrdinary(issuer, found, barrierBytes, "write");
    createBarrier(issuer, found, arrivals);
  });
};

const inval: CollectiveRule = (instruction) => {
  const [place] = instruction.operands;
  if (place === undefined) return undefined;
  const kind = addressKind(instruction.modifiers);
  return forLanes(instruction, (issuer) => {
    const { lane } = issuer;
    const found = barrierPlace(issuer, kind, place.address(issuer.warp, lane));
    recordOrdinary(issuer, found, barrierBytes, "write");
    const record = removeBarrier(issuer, found);
    const { machine, warp } = issuer;
    if (machine.checks && machine.isOwn)
      reportBarrierLeftovers(machine, found.block ?? warp.block, found.offset, record);
  });
};

const pendingCount: CollectiveRule = (instruction) => {
  const [result, token] = instruction.operands;
  if (result === undefined || token === undefined) return undefined;
  return forLanes(instruction, ({ warp, lane }) => {
    result.setWord(warp, lane, tokenPending(token.wide(warp, lane)));
  });
};

type Change = (barrier: Mbarrier, operand: number) => BarrierProblem | undefined;

/** expect_tx and complete_tx: no arrival, and no order. */
function transactions(change: Change): CollectiveRule {
  return (instruction) => {
    const [place, bytes] = instruction.operands;
    if (place === undefined || bytes === undefined) return undefined;
    const kind = addressKind(instruction.modifiers);
    return forLanes(instruction, (issuer) => {
      const { lane } = issuer;
      const found = barrierPlace(issuer, kind, place.address(issuer.warp, lane));
      recordOrdinary(issuer, found, barrierBytes, "atomic");
      const operand = bytes.word(issuer.warp, lane);
      changeBarrier(issuer, found, toldNothing, (barrier) => change(barrier, operand));
    });
  };
}

function arrival(modifiers: readonly string[]): Change {
  const drop = modifiers[0] === "arrive_drop";
  if (modifiers.includes("expect_tx"))
    return (barrier, bytes) =>
      barrier.expect(bytes) ?? (drop ? barrier.arriveAndDrop(1) : barrier.arrive(1));
  if (drop) return (barrier, count) => barrier.arriveAndDrop(count);
  if (modifiers.includes("noComplete"))
    return (barrier, count) => barrier.arriveWithoutCompleting(count);
  return (barrier, count) => barrier.arrive(count);
}

/** What a warp's release tells; one step for all lanes of the instruction. */
function released(warp: WarpView, modifiers: readonly string[]): Knowledge {
  if (warp.timeline === undefined || modifiers.includes("relaxed")) return warp.fenced;
  return warp.timeline.publish();
}

/** What a release tells whoever waits at a place: all of it in the warp's own block, or as far as its scope reaches. */
function toldAt(
  warp: WarpView,
  { block }: Place,
  knowledge: Knowledge,
  modifiers: readonly string[],
): Told {
  if (knowledge === Knowledge.none || block === warp.block) return toldToAll(knowledge);
  const reaches = modifiers.includes("cluster");
  return {
    block: finishedOperations(warp, knowledge),
    cluster: reaches ? knowledge : Knowledge.none,
  };
}

const arrive: CollectiveRule = (instruction) => {
  const { modifiers, operands } = instruction;
  const [state, place, operand] = operands;
  if (state === undefined || place === undefined) return undefined;
  const kind = addressKind(modifiers);
  const change = arrival(modifiers);
  const dropped = state.operand.kind === "discard";
  return {
    aligned: false,
    run: ({ machine, warp, mask }) => {
      const lanes = lanesOf(mask);
      const places = lanes.map((lane) => {
        const issuer = { machine, warp, lane, instruction };
        const found = barrierPlace(issuer, kind, place.address(warp, lane));
        recordOrdinary(issuer, found, barrierBytes, "atomic");
        return { issuer, found };
      });
      const told = released(warp, modifiers);
      for (const { issuer, found } of places) {
        const { lane } = issuer;
        const { token } = findBarrier(issuer, found).barrier;
        const count = operand?.word(warp, lane) ?? 1;
        const tells = toldAt(warp, found, told, modifiers);
        changeBarrier(issuer, found, tells, (barrier) => change(barrier, count));
        if (!dropped) state.setWide(warp, lane, token);
      }
      return "done";
    },
  };
};

/** A wait that has failed so far. */
interface Waiting {
  readonly record: BarrierRecord;
  /** The phase in which it began; undefined once it has given up. */
  readonly since: number | undefined;
  /** The phase in which it gave up. */
  readonly gaveUp: number | undefined;
  /** The lanes that failed and stand there still, if for this barrier alone, and where it lies. */
  standing?: { readonly mask: number; readonly found: Place; readonly phase: number } | undefined;
}

/** Failing waits of each warp, by instruction. */
const waits = new WeakMap<WarpView, Map<CollectiveInstruction, Waiting>>();

function waitsOf(warp: WarpView): Map<CollectiveInstruction, Waiting> {
  let found = waits.get(warp);
  if (found === undefined) {
    found = new Map();
    waits.set(warp, found);
  }
  return found;
}

/** One wait in so many comes back empty-handed once, as a time limit may make it. */
const timeouts = 8;

interface WaitForm {
  readonly instruction: CollectiveInstruction;
  readonly kind: AddressKind;
  readonly result: OperandView;
  readonly place: OperandView;
  readonly phase: OperandView;
  readonly parity: boolean;
  readonly blocking: boolean;
  readonly acquires: boolean;
  /** Whether it hears of arrivals from other blocks. */
  readonly reachesCluster: boolean;
}

const wait: CollectiveRule = (instruction) => {
  const { modifiers, operands } = instruction;
  const [result, place, phase] = operands;
  if (result === undefined || place === undefined || phase === undefined) return undefined;
  const form: WaitForm = {
    instruction,
    kind: addressKind(modifiers),
    result,
    place,
    phase,
    parity: modifiers.includes("parity"),
    blocking: modifiers[0] === "try_wait",
    acquires: !modifiers.includes("relaxed"),
    reachesCluster: modifiers.includes("cluster"),
  };
  return { aligned: false, run: (call) => runWait(form, call) };
};

function runWait(form: WaitForm, { machine, warp, mask }: CollectiveCall): "done" | "retry" {
  const { instruction, phase } = form;
  if (standsStill(waitsOf(warp).get(instruction), mask)) return "retry";
  // Lanes of a warp mostly wait for one barrier, which is then looked up once.
  const attempts = new Map<number, Attempt>();
  let passing = 0;
  for (const lane of lanesOf(mask)) {
    const address = form.place.address(warp, lane);
    const attempt = attempts.get(address) ?? attemptAt(form, { machine, warp, lane, instruction });
    attempts.set(address, attempt);
    const { barrier } = attempt.record;
    const passed = form.parity
      ? barrier.endedParity(phase.word(warp, lane))
      : barrier.endedToken(phase.wide(warp, lane));
    if (passed) passing |= 1 << lane;
    attempt.passed ||= passed;
  }
  const [first] = attempts.values();
  if (first === undefined) return "done";
  if (passing === 0 && form.blocking && keepsWaiting(form, first)) {
    const waiting = waitsOf(warp).get(instruction);
    if (waiting !== undefined && attempts.size === 1)
      waiting.standing = { mask, found: first.found, phase: first.record.barrier.phase };
    return "retry";
  }
  for (const lane of lanesOf(mask)) form.result.setWord(warp, lane, (passing >>> lane) & 1);
  for (const { issuer, found, record, passed } of attempts.values()) {
    recordOrdinary(issuer, found, barrierBytes, "atomic");
    if (!passed) continue;
    record.awaited = record.barrier.phase;
    const { block, cluster } = record.ended;
    const heard = form.reachesCluster ? block.join(cluster) : block;
    if (form.acquires) warp.learn(heard);
    else warp.see(heard);
  }
  if (passing === mask) waitsOf(warp).delete(instruction);
  else warp.polled();
  return "done";
}

/** Whether the lanes wait for the same phase of the same barrier as when they failed, so that they fail again. */
function standsStill(waiting: Waiting | undefined, mask: number): boolean {
  const standing = waiting?.standing;
  if (waiting === undefined || standing?.mask !== mask) return false;
  const { record } = waiting;
  waiting.standing = undefined;
  if (record.barrier.phase !== standing.phase || !isIntact(record, standing.found)) return false;
  waiting.standing = standing;
  return true;
}

function attemptAt({ kind, place }: WaitForm, issuer: Issuer): Attempt {
  const found = barrierPlace(issuer, kind, place.address(issuer.warp, issuer.lane));
  return { issuer, found, record: findBarrier(issuer, found), passed: false };
}

interface Attempt {
  readonly issuer: Issuer;
  readonly found: Place;
  readonly record: BarrierRecord;
  /** Whether a lane came through. */
  passed: boolean;
}

/** Whether a failing wait goes on; it gives up at most once a phase, and then counts as a new one. */
function keepsWaiting({ instruction }: WaitForm, { issuer, found, record }: Attempt): boolean {
  const { machine, warp } = issuer;
  const { phase } = record.barrier;
  const known = waitsOf(warp).get(instruction);
  const same = known?.record === record;
  if (same && known.since !== undefined) {
    known.standing = undefined;
    if (phase - known.since < 2) return true;
    reportMissedPhase(issuer, found);
  }
  const gaveUp = same && known.gaveUp === phase;
  const goesOn = gaveUp || machine.random.below(timeouts) !== 0;
  waitsOf(warp).set(instruction, {
    record,
    since: goesOn ? phase : undefined,
    gaveUp: goesOn && !gaveUp ? undefined : phase,
  });
  return goesOn;
}

const operations: { readonly [operation: string]: CollectiveRule } = {
  init,
  inval,
  expect_tx: transactions((barrier, bytes) => barrier.expect(bytes)),
  complete_tx: transactions((barrier, bytes) => barrier.complete(bytes)),
  arrive,
  arrive_drop: arrive,
  test_wait: wait,
  try_wait: wait,
  pending_count: pendingCount,
};

export const mbarrier: CollectiveRule = (instruction) => {
  const [operation = ""] = instruction.modifiers;
  return operations[operation]?.(instruction);
};
