/**
 * The wgmma operations of a warpgroup. An operation begins when the last of its four warps has issued it;
 * operations end in order, some time later. Until a warp has waited for one, the registers it named are
 * not the warp's own:
 *
 *   warp         wgmma {d}     commit      …       wait_group 0     reads d
 *   registers    d ──┐ counts as not written            ┌─▶ d
 *   operation        └─ ─ shared memory is read, the product made ┘
 *
 * Results are kept aside and come into the registers when the wait lets go of them. Whoever reads the
 * registers before finds them unwritten; whoever writes them is found out when they come back.
 */
import type { Issue } from "../asynchronous.ts";
import type { BlockView, CollectiveInstruction, MachineView, WarpView } from "../collective.ts";
import type { RegisterWords } from "./fragments.ts";

export const warpsPerGroup = 4;

/** A register as a wgmma names it, where it lies in the warp's words. */
export interface NamedRegister {
  readonly start: number;
  readonly defined: number;
}

/** What one warp brings into an operation. */
export interface WarpPart {
  readonly warp: WarpView;
  readonly accumulators: readonly NamedRegister[];
  /** A's registers; none where A comes from shared memory. */
  readonly inputs: readonly NamedRegister[];
  /** Four bits for each chunk of a sparse A's rows. */
  readonly metadata: Uint8Array | undefined;
  readonly issue: Issue;
}

export interface Operation {
  readonly instruction: CollectiveInstruction;
  /** Descriptors and scale, which all warps must agree on. */
  readonly uniform: string;
  readonly parts: (WarpPart | undefined)[];
  /** Makes the product; called once all parts are there. */
  readonly run: (parts: readonly WarpPart[], group: Warpgroup) => void;
  done: boolean;
}

/** A register that operations have under way. */
interface Flight {
  readonly register: NamedRegister;
  readonly role: "accumulator" | "input";
  readonly instruction: CollectiveInstruction;
  /** The lanes that had written it when it left. */
  readonly written: number;
  /** What operations read and write in its place. */
  readonly aside: RegisterWords;
  /** Operations that have not been awaited. */
  uses: number;
}

/** What a warp keeps of its operations. */
class WarpLedger {
  issued = 0;
  open: Operation[] = [];
  groups: (readonly Operation[])[] = [];
  readonly flights = new Map<number, Flight>();
  /** All registers as they were at the last wgmma.fence, and as operations left them since. */
  fenced: Int32Array | undefined;
}

export class Warpgroup {
  readonly #operations: Operation[] = [];
  /** The number of the first operation that is kept. */
  #first = 0;
  readonly #ledgers = Array.from({ length: warpsPerGroup }, () => new WarpLedger());

  ledger(warp: WarpView): WarpLedger {
    const ledger = this.#ledgers[warp.index % warpsPerGroup];
    if (ledger === undefined) throw new Error(`warp ${warp.index} of a warpgroup`);
    return ledger;
  }

  /** The operation that a warp's next wgmma belongs to, if another warp has issued it before. */
  next(warp: WarpView): Operation | undefined {
    return this.#operations[this.ledger(warp).issued - this.#first];
  }

  /** A warp issues an operation: its own part of it. */
  join(machine: MachineView, operation: Operation, part: WarpPart): void {
    const ledger = this.ledger(part.warp);
    if (this.next(part.warp) === undefined) this.#operations.push(operation);
    ledger.issued += 1;
    ledger.open.push(operation);
    operation.parts[part.warp.index % warpsPerGroup] = part;
    for (const register of part.accumulators) this.#lend(part, register, "accumulator", operation);
    for (const register of part.inputs) this.#lend(part, register, "input", operation);
    if (operation.parts.filter((known) => known !== undefined).length === warpsPerGroup)
      machine.schedule(() => this.#completeOldest(machine));
  }

  #lend(
    { warp }: WarpPart,
    register: NamedRegister,
    role: Flight["role"],
    { instruction }: Operation,
  ): void {
    const { flights } = this.ledger(warp);
    const known = flights.get(register.start);
    if (known !== undefined) {
      known.uses += 1;
      return;
    }
    const { start, defined } = register;
    const written = warp.words[defined] as number;
    const aside = warp.words.slice(start, start + 32);
    flights.set(start, { register, role, instruction, written, aside, uses: 1 });
    warp.flights.set(defined, instruction);
    warp.words[defined] = 0;
  }

  /** The words that stand for a register while it is under way. */
  aside(warp: WarpView, { start }: NamedRegister): RegisterWords {
    const flight = this.ledger(warp).flights.get(start);
    if (flight === undefined) throw new Error("a register that no wgmma has under way");
    return flight.aside;
  }

  #completeOldest(machine: MachineView): void {
    const operation = this.#operations.find(({ done }) => !done);
    if (operation === undefined) return;
    const parts = operation.parts.filter((part) => part !== undefined);
    operation.run(parts, this);
    operation.done = true;
    while (this.#operations[0]?.done === true && this.#everyWarpIssued()) {
      this.#operations.shift();
      this.#first += 1;
    }
    machine.changed();
  }

  /** Whether no warp will ask for the first operation again. */
  #everyWarpIssued(): boolean {
    return this.#ledgers.every(({ issued }) => issued > this.#first);
  }

  commit(warp: WarpView): void {
    const ledger = this.ledger(warp);
    ledger.groups.push(ledger.open);
    ledger.open = [];
  }

  /** The operations of all groups of a warp but its newest `pending`. */
  awaited(warp: WarpView, pending: number): readonly Operation[] {
    const { groups } = this.ledger(warp);
    return groups.slice(0, Math.max(0, groups.length - pending)).flat();
  }

  /** Lets go of what those operations named; gives back the registers that somebody wrote meanwhile. */
  settle(warp: WarpView, pending: number): readonly Flight[] {
    const ledger = this.ledger(warp);
    const touched: Flight[] = [];
    for (const operation of this.awaited(warp, pending)) {
      const part = operation.parts[warp.index % warpsPerGroup];
      part?.issue.tell("all");
      for (const register of [...(part?.accumulators ?? []), ...(part?.inputs ?? [])])
        this.#giveBack(warp, register, touched);
    }
    ledger.groups = ledger.groups.slice(Math.max(0, ledger.groups.length - pending));
    return touched;
  }

  #giveBack(warp: WarpView, { start, defined }: NamedRegister, touched: Flight[]): void {
    const ledger = this.ledger(warp);
    const flight = ledger.flights.get(start);
    if (flight === undefined) return;
    flight.uses -= 1;
    if (flight.uses > 0) return;
    ledger.flights.delete(start);
    warp.flights.delete(defined);
    if (warp.words[defined] !== 0) touched.push(flight);
    if (flight.role === "accumulator") {
      warp.words.set(flight.aside, start);
      ledger.fenced?.set(flight.aside, start);
      warp.words[defined] = -1;
    } else warp.words[defined] = flight.written;
  }
}

const groups = new WeakMap<BlockView, Map<number, Warpgroup>>();

export function warpgroupOf({ block, index }: WarpView): Warpgroup {
  const ofBlock = groups.get(block) ?? new Map<number, Warpgroup>();
  groups.set(block, ofBlock);
  const number = Math.floor(index / warpsPerGroup);
  const group = ofBlock.get(number) ?? new Warpgroup();
  ofBlock.set(number, group);
  return group;
}
