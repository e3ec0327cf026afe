/**
 * The running op's scratch in shared memory. Agents that run the same code beside each other, program
 * threads or warps, have a part each:
 *
 *   shared_memory + offset + stride · (rank of the thread among those that run · its warps + warp)
 */
import type { AnyOp } from "../../../ir/node.ts";
import type { AddressOperand, Register } from "../../module.ts";
import { address, integer } from "../../operands.ts";
import { threadBarrier } from "../barriers.ts";
import type { EmitContext } from "../context.ts";
import { scratchOperand } from "../../../layout/model/placed-types.ts";

export class ScratchMemory {
  readonly #context: EmitContext;
  readonly #op: AnyOp;
  readonly #base: Register;
  readonly #offset: number;
  /** Of the agent's part. */
  readonly bytes: number;

  constructor(context: EmitContext, op: AnyOp) {
    const scratch = scratchOperand(op);
    const area = scratch && context.windows.definitions.get(scratch);
    if (area?.kind !== "alloc_scratch")
      throw new Error(`${op.kind} has no scratch in shared memory`);
    const { bytes, at } = area.attributes;
    if (at === undefined) throw new Error(`the scratch of ${op.kind} has no place`);
    this.#context = context;
    this.#op = op;
    this.#base = agentBase(context, bytes);
    this.#offset = at;
    this.bytes = bytes;
  }

  /** b32: the lane's own place, `place` bytes from the start. */
  at(place: Register | undefined): Register {
    if (place === undefined) return this.#base;
    return this.#context.code.make("b32", "add.u32", this.#base, place);
  }

  /** `offset` bytes behind a place that `at` gave. */
  address(place: Register, offset: number): AddressOperand {
    return address(place, this.#offset + offset);
  }

  /**
   * Before the first store. Lanes meet before an op whose scratch others may still use; what the op
   * itself did with it before is ordered here.
   */
  begin(): void {
    if (this.#context.lastScratchUser === this.#op) threadBarrier(this.#context, "scratch is read");
    this.#context.lastScratchUser = this.#op;
  }
}

/** Where the agent's part begins, less the buffer's offset. */
function agentBase(context: EmitContext, stride: number): Register {
  const { code } = context;
  const agent = agentRank(context);
  const { shared } = context.numbers;
  if (agent === undefined) return shared;
  return code.make("b32", "mad.lo.u32", agent, integer(stride), shared);
}

/** b32: how many of the agents that run are before this one; undefined for a single one. */
function agentRank(context: EmitContext): Register | undefined {
  const { code, numbers, scope, kernel } = context;
  const rank = threadRank(context);
  if (scope.warps === kernel.warps) return rank;
  if (rank === undefined) return numbers.warp;
  return code.make("b32", "mad.lo.u32", rank, integer(kernel.warps), numbers.warp);
}

/** b32: how many of the threads that run are before this one; undefined for a single thread. */
function threadRank({ code, numbers, scope: { threads } }: EmitContext): Register | undefined {
  if (threads.length === 1) return undefined;
  if (threads.every((thread, rank) => thread === rank)) return numbers.thread;
  const running = threads.reduce((mask, thread) => mask | (1 << thread), 0);
  const bit = code.make("b32", "shl.b32", code.constant("b32", 1), numbers.thread);
  const before = code.make("b32", "sub.u32", bit, integer(1));
  const both = code.make("b32", "and.b32", before, integer(running));
  return code.make("b32", "popc.b32", both);
}
