/** The words for what the shadow memories and barriers find. */
import type { Op } from "../ir/node.ts";
import { opName } from "../ir/op-names.ts";
import { formatPosition } from "../support/location.ts";
import type { RelatedNote } from "../support/diagnostics.ts";
import type { BarrierArray, BarrierElement } from "./barriers.ts";
import type { Memory } from "./memory.ts";
import { placeText } from "../happens-before/access.ts";
import type { Access, Origin } from "../happens-before/access.ts";
import type { Leftovers, Overrun } from "../happens-before/barrier.ts";
import type { Conflict } from "../happens-before/shadow.ts";
import type { Findings } from "./reports.ts";

type Race = Extract<Conflict, { kind: "race" }>;

const verbs: { readonly [M in Access["mode"]]: string } = {
  read: "reads",
  observe: "reads a byte of",
  write: "writes",
  atomic: "updates",
};

function accessText({ op, mode, from, place }: Access): string {
  const verb = mode === "observe" && from !== undefined ? verbs.read : verbs[mode];
  return `${opName(op)} ${verb} it in ${placeText(place)}`;
}

function originNote({ op, place }: Origin, what: string): RelatedNote {
  return { message: `${what}: ${opName(op)} in ${placeText(place)}`, location: op.location };
}

/** Where the memory was allocated, for reports about what is in it. */
function memoryNote({ description }: Memory): readonly RelatedNote[] {
  const { name, location } = description;
  return location === undefined ? [] : [{ message: `${name} is allocated here`, location }];
}

export function reportConflict(findings: Findings, memory: Memory, conflict: Conflict): void {
  if (conflict.kind === "race") reportRace(findings, memory, conflict);
  else if (conflict.kind === "uninitialised") reportUninitialised(findings, memory, conflict);
  else reportUnion(findings, memory, conflict);
}

function reportRace(findings: Findings, memory: Memory, race: Race): void {
  const { earlier, current, granule } = race;
  findings.add(
    {
      code: "TW3001",
      message: `data race on ${memory.description.name}: ${opName(current.op)} and ${opName(earlier.op)} are not ordered`,
      location: current.op.location,
      expected: "one of them ordered before the other by a barrier, a wait or a fence",
      found: `${accessText(current)}, first at byte ${Math.floor(granule * memory.granuleBytes)}`,
      remedy: raceRemedy(memory, race),
      notes: [
        { message: accessText(earlier), location: earlier.op.location },
        ...memoryNote(memory),
      ],
    },
    earlier.op,
    current.op,
  );
}

function raceRemedy(memory: Memory, { earlier, current, missing }: Race): string {
  const fence = memory.description.space === "smem" ? "commitShared()" : "commitGlobal()";
  if (missing === "fence")
    return `call ${fence} in thread ${earlier.place.thread} after its ${opName(earlier.op)}, before what orders it with ${opName(current.op)}`;
  if (earlier.op.kind === "copy_async" && earlier.mode === "write" && current.mode === "read")
    return `${copyWait(memory, earlier.op, earlier)} before this ${opName(current.op)}`;
  if (earlier.op.kind === "tcgen05_mma" || earlier.op.kind === "tcgen05_copy")
    return `call tcgen05Commit after the ${opName(earlier.op)} in thread ${earlier.place.thread}, and wait for its barrier before this ${opName(current.op)}`;
  if (earlier.op.kind === "wgmma") return "wait for the wgmma before its operands are changed";
  if ([earlier, current].some(({ op }) => op.kind === "copy_async"))
    return "wait for the copy before the other access, or order the copy after it";
  const strong = [earlier, current].filter(({ from }) => from !== undefined);
  if (strong.length === 2) return "give both a scope that has both blocks in it";
  if (strong.some(({ op }) => op.kind === "atomic_load" || op.kind === "atomic_store"))
    return "give both a memoryOrder, or order one before the other";
  return sameBlock(earlier, current)
    ? "let one thread arrive on a barrier after its access and the other wait for it before its own"
    : "order the blocks with a semaphore, or let each write a part of its own";
}

/** How to wait until the copy has landed. */
function copyWait({ owner }: Memory, { operands }: Op<"copy_async">, { place }: Origin): string {
  const { barrier } = operands;
  if (barrier === undefined) return `call waitGroup() in thread ${place.thread} after the copy,`;
  const allocations = owner?.machine.program.allocations ?? [];
  const allocated = allocations.find(({ op }) => op.results.includes(barrier));
  const name = allocated?.op.attributes.name;
  return `wait on the copy's barrier${name === undefined ? "" : ` ${name}`}`;
}

function reportUninitialised(
  findings: Findings,
  memory: Memory,
  { current, granule }: Extract<Conflict, { kind: "uninitialised" }>,
): void {
  findings.add(
    {
      code: "TW3002",
      message: `${opName(current.op)} of ${memory.description.name}, which nobody has written`,
      location: current.op.location,
      expected: `${memory.description.name} written before it is read`,
      found: `byte ${Math.floor(granule * memory.granuleBytes)} read in ${placeText(current.place)}`,
      notes: memoryNote(memory),
    },
    current.op,
  );
}

function reportUnion(
  findings: Findings,
  memory: Memory,
  { earlier, current, granule }: Extract<Conflict, { kind: "union" }>,
): void {
  const [reader, writer] = [current, earlier].map((access) => memberName(memory, access));
  findings.add(
    {
      code: "TW3003",
      message: `${opName(current.op)} of ${reader} reads bytes of ${memory.description.name} that ${writer} has written`,
      location: current.op.location,
      expected: `bytes written through ${reader}`,
      found: `byte ${Math.floor(granule * memory.granuleBytes)} read in ${placeText(current.place)}`,
      notes: [
        { message: `${opName(earlier.op)} through ${writer}`, location: earlier.op.location },
        ...memoryNote(memory),
      ],
    },
    earlier.op,
    current.op,
  );
}

/** The member of a union that an access goes through. */
function memberName({ owner }: Memory, { member }: Access): string {
  return owner?.machine.program.members[member - 1] ?? "the union itself";
}

function sameBlock(left: Origin, right: Origin): boolean {
  return left.place.block.every((index, axis) => index === right.place.block[axis]);
}

/** `use` of memory is not ordered before `ending`, after which the memory is gone. */
export function reportLateUse(findings: Findings, name: string, use: Access, ending: Access): void {
  if (sameBlock(use, ending)) {
    reportUnawaited(findings, use);
    return;
  }
  findings.add(
    {
      code: "TW3010",
      message: `a block can end while ${opName(use.op)} of another block still uses its ${name}`,
      location: use.op.location,
      expected: "the use ordered before the block's end",
      found: `${opName(use.op)} in ${placeText(use.place)}`,
      notes: [
        {
          message: `ends here: ${placeText(ending.place)}`,
          location: ending.op.location,
        },
      ],
    },
    use.op,
  );
}

/** An asynchronous operation that can still be under way when what it uses is gone. */
export function reportUnawaited(findings: Findings, { op, place }: Origin, remedy?: string): void {
  findings.add(
    {
      code: "TW3009",
      message: `${opName(op)} is not awaited`,
      location: op.location,
      expected: "a wait for it before its memory goes away",
      found: `${opName(op)} issued in ${placeText(place)} can still be under way`,
      remedy,
    },
    op,
  );
}

export function reportLeftovers(
  findings: Findings,
  barriers: BarrierArray,
  element: BarrierElement,
  { arrivals, unawaited, extraPhases }: Leftovers,
): void {
  if (extraPhases > 0) reportExtraPhases(findings, barriers, element, extraPhases);
  const [first] = arrivals;
  if (first !== undefined)
    findings.add(
      {
        code: "TW3008",
        message: `arrivals are left over on ${barriers.nameOf(element)}`,
        location: first.op.location,
        expected: `${element.state.needed} arrivals, which complete phase ${element.state.phase}`,
        found: `${arrivals.length} when its block ended`,
        notes: [
          ...arrivals.slice(0, 4).map((arrival) => originNote(arrival, "arrived")),
          { message: "the barrier is allocated here", location: barriers.op.location },
        ],
      },
      barriers.op,
      first.op,
    );
  const copy = unawaited?.arrivals.find(({ op }) => op.kind === "copy_async");
  if (copy !== undefined) reportUnawaited(findings, copy);
}

/** A wait would not know which of several phases it is for. */
function reportExtraPhases(
  findings: Findings,
  barriers: BarrierArray,
  element: BarrierElement,
  extraPhases: number,
): void {
  const [arrival] = element.state.lastArrivals;
  findings.add(
    {
      code: "TW3008",
      message: `phases of ${barriers.nameOf(element)} completed that nobody waits for`,
      location: (arrival?.op ?? barriers.op).location,
      expected: "at most one phase completed behind the last wait",
      found: `${extraPhases} when its block ended`,
      notes: [
        ...(arrival === undefined ? [] : [originNote(arrival, "arrived in the last one")]),
        { message: "the barrier is allocated here", location: barriers.op.location },
      ],
    },
    barriers.op,
  );
}

export function reportOverrun(
  findings: Findings,
  barriers: BarrierArray,
  element: BarrierElement,
  { phase, wait, overrunBy }: Overrun,
): void {
  const [first] = overrunBy;
  findings.add(
    {
      code: "TW3007",
      message: `${barriers.nameOf(element)} can complete phase ${phase + 1} before a wait for phase ${phase} has passed`,
      location: wait.op.location,
      expected: "each wait ordered before an arrival of the next phase",
      found: `the wait in ${placeText(wait.place)} is not`,
      notes: [
        ...overrunBy
          .slice(0, 4)
          .map((arrival) => originNote(arrival, `arrived in phase ${phase + 1}`)),
        { message: "the barrier is allocated here", location: barriers.op.location },
      ],
    },
    wait.op,
    ...(first === undefined ? [] : [first.op]),
  );
}

export function arrivalsText(arrivals: readonly Origin[]): string {
  if (arrivals.length === 0) return "nobody has arrived";
  const places = arrivals.map(
    ({ op, place }) => `${placeText(place)} at ${formatPosition(op.location.position)}`,
  );
  return `arrived: ${places.join("; ")}`;
}
