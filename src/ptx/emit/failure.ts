/**
 * What a failed assertion changes for the rest of a kernel. Lanes go on, so that they meet where they always meet and
 * copies under way find their memory, up to the kernel's ordinary end; the host refuses the results. But nothing is
 * waited for in vain, repeated for ever or accessed outside of its array:
 *
 *   | what comes                                | without a failure | after one                                        |
 *   |-------------------------------------------|-------------------|--------------------------------------------------|
 *   | a wait for a barrier or a semaphore       | as long as it has | ends, once the failure is `patience` ago         |
 *   | `while`, asked each 256th round           | as long as it has | ends behind the round                            |
 *   | an index or a window that is not inside   | trap              | is moved to the first element                    |
 *
 * The launch has a cell of 8 bytes for it: 0, or the time of a failure. Only kernels that may fail have it, and only their
 * slow ways read it: a wait looks after 16 tries in vain. Until `patience` is over, copies have long ended, so that no block
 * ends before a copy into its memory does.
 */
import type { Operand, Register } from "../module.ts";
import { address, integer, symbol } from "../operands.ts";
import { threadBarrier, threadBarrierNumber, threadLanes } from "./barriers.ts";
import type { EmitContext } from "./context.ts";

const triesBetweenLooks = 16;
const roundsBetweenLooks = 256;
/** Nanoseconds. */
const patience = 2 ** 17;

/** Tells the launch that an assertion has failed, by the lanes that run this. */
export function tellFailure({ code, failureCell }: EmitContext): void {
  if (failureCell === undefined) return;
  const now = code.make("b64", "mov.u64", symbol("%globaltimer"));
  code.emit("st.relaxed.gpu.global.b64", [address(failureCell), now]);
}

/** All lanes of the agent know of the failure that one of them has told of. */
export function learnOfFailure(context: EmitContext): void {
  if (context.failureCell === undefined) return;
  threadBarrier(context, "all lanes know of the failure");
}

/** b64: when the launch's last failure was, or 0. */
function failureTime({ code }: EmitContext, cell: Register): Register {
  return code.make("b64", "ld.relaxed.gpu.global.b64", address(cell));
}

/** Tries until it is done, or until an assertion has failed for long enough. */
export function tryUntilDone(context: EmitContext, attempt: () => Register): void {
  const { code, failureCell } = context;
  if (failureCell === undefined) {
    const again = code.label("wait");
    code.place(again);
    code.jumpIf(attempt(), again, { negated: true, uniform: false });
    return;
  }
  const [slow, done] = [code.label("wait"), code.label("waited")];
  code.jumpIf(attempt(), slow, { negated: true, uniform: false });
  code.place(done);
  code.aside(() => {
    code.place(slow);
    const left = code.make("b32", "mov.b32", integer(triesBetweenLooks));
    const again = code.label("again");
    code.place(again);
    code.jumpIf(attempt(), done, { uniform: false });
    code.emit("sub.u32", [left, left, integer(1)]);
    code.jumpIf(code.make("pred", "setp.ne.u32", left, integer(0)), again, { uniform: false });
    stopAfterFailure(context, failureCell, { again: slow, over: done });
  });
}

/** Tries again, unless an assertion has failed and what was under way then has ended. */
export function stopAfterFailure(
  context: EmitContext,
  cell: Register,
  { again, over }: { readonly again: string; readonly over: string },
): void {
  const { code } = context;
  const then = failureTime(context, cell);
  code.jumpIf(code.make("pred", "setp.eq.u64", then, integer(0)), again, { uniform: false });
  const now = code.make("b64", "mov.u64", symbol("%globaltimer"));
  const since = code.make("b64", "sub.u64", now, then);
  const long = code.make("pred", "setp.gt.u64", since, integer(patience));
  code.jumpIf(long, over, { uniform: false });
  code.emit("bra", [symbol(again)]);
}

/** A count of a loop's rounds, of which some ask for a failure; undefined where nothing fails. */
export function beginRounds({ code, failureCell }: EmitContext): Register | undefined {
  return failureCell && code.constant("b32", 0);
}

/** Leaves the loop where an assertion has failed. All lanes of the agent leave together, since they may meet in the body. */
export function leaveAfterFailure(
  context: EmitContext,
  rounds: Register | undefined,
  { head, exit }: { readonly head: string; readonly exit: string },
): void {
  const { code, failureCell, scope } = context;
  if (rounds === undefined || failureCell === undefined) return;
  code.emit("add.u32", [rounds, rounds, integer(1)]);
  const place = code.make("b32", "and.b32", rounds, integer(roundsBetweenLooks - 1));
  code.jumpIf(code.make("pred", "setp.ne.u32", place, integer(0)), head);
  const own = code.make("pred", "setp.ne.u64", failureTime(context, failureCell), integer(0));
  const any =
    scope.warps === 1
      ? code.make("pred", "vote.sync.any.pred", own, integer(-1))
      : code.make(
          "pred",
          "barrier.red.or.pred",
          threadBarrierNumber(context),
          threadLanes(context),
          own,
        );
  code.jumpIf(any, exit);
}

/**
 * Ends the launch with an error where the predicate holds. Beside products in flight that is a breakpoint, which without a
 * debugger ends a launch as a trap does, with CUDA_ERROR_LAUNCH_FAILED: a trap leaves the kernel, so that the assembler waits for
 * products before it, and to wait in a branch serialises all of them (C7512, C7518).
 */
function endLaunch({ code, hasProducts }: EmitContext, where: Register, reason: string): void {
  code.guarded(where, () => {
    code.emit(hasProducts ? "brkpt" : "trap", [], reason);
  });
}

/** Traps where `outside` holds; after a failure moves what is outside to where it is not. */
export function trapOutside(
  context: EmitContext,
  outside: Register,
  reason: string,
  moves: () => readonly (readonly [Register, Operand])[],
): void {
  const { code, failureCell } = context;
  if (failureCell === undefined) {
    endLaunch(context, outside, reason);
    return;
  }
  const [found, inside] = [code.label("outside"), code.label("inside")];
  code.jumpIf(outside, found, { uniform: false });
  code.place(inside);
  code.aside(() => {
    code.place(found);
    const then = failureTime(context, failureCell);
    endLaunch(context, code.make("pred", "setp.eq.u64", then, integer(0)), reason);
    for (const [register, to] of moves()) code.emit(`mov.${register.type}`, [register, to]);
    code.emit("bra", [symbol(inside)]);
  });
}
