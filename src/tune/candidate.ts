/**
 * The choices of an operation for some sizes, before anything is run: planned, known by a hash of their kernels, and
 * held against a model.
 *
 *   choice ──plan──▶ refused? ─▶ rejected "plan"
 *              └─▶ key, estimate ──▶ far above the best? ─▶ rejected "model"
 */
import type { Operation, OperationPlan } from "../device/operation.ts";
import type { OperationChoices } from "../device/tuning/advice.ts";
import type { Choice, Rejection, Sizes } from "../device/tuning/line.ts";
import { gmemBytes, ratesOf, roofline } from "../ir/cost/index.ts";
import { printKernel } from "../ir/printer.ts";
import { checksum } from "../ptx/checksum.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Target } from "../targets/target.ts";

export interface Candidate {
  readonly choice: Choice;
  readonly operation: Operation;
  /** A hash of its kernels. */
  readonly key: string;
  /** Microseconds, by the model. */
  readonly estimate: number;
  /** Whether no blocks are launched. */
  readonly isIdle: boolean;
}

export interface RejectedChoice {
  readonly choice: Choice;
  readonly key: string;
  readonly rejected: Rejection;
  readonly reason: string;
}

export interface CandidateList {
  /** The one that the model thinks fastest first. */
  readonly candidates: readonly Candidate[];
  readonly rejected: readonly RejectedChoice[];
}

export interface Workplace {
  readonly target: Target;
  /** The GPU's name, for its rates; undefined for the usual board of the target. */
  readonly gpu: string | undefined;
}

/** What a choice must be within, of the best estimate, to be measured. */
const chance = 3;

export function candidatesOf(
  operation: Operation,
  choices: OperationChoices,
  sizes: Sizes,
  place: Workplace,
): CandidateList {
  const planned: Candidate[] = [];
  const rejected: RejectedChoice[] = [];
  for (const choice of choices.candidates(sizes, place.target)) {
    try {
      planned.push(candidateOf(operation.with(choice), choices, choice, sizes, place));
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      rejected.push({
        choice,
        key: "",
        rejected: "plan",
        reason: reasonOf(error),
      });
    }
  }
  const best = Math.min(...planned.map(({ estimate }) => estimate));
  const isHopeless = ({ estimate }: Candidate): boolean => estimate > chance * best;
  for (const candidate of planned.filter(isHopeless)) {
    const { choice, key, estimate } = candidate;
    const times = (estimate / best).toFixed(1);
    const reason = `the model gives it ${estimate.toPrecision(3)} µs, ${times} times the best estimate`;
    rejected.push({ choice, key, rejected: "model", reason });
  }
  const candidates = planned
    .filter((candidate) => !isHopeless(candidate))
    .sort((left, right) => left.estimate - right.estimate);
  return { candidates, rejected };
}

function candidateOf(
  operation: Operation,
  choices: OperationChoices,
  choice: Choice,
  sizes: Sizes,
  place: Workplace,
): Candidate {
  const plan = operation.plan(sizes, place.target);
  const texts = plan.launches.map(({ kernel }) => printKernel(kernel.kernel));
  const seconds = choices.estimate?.(choice, sizes, place.target);
  return {
    choice,
    operation,
    key: checksum(texts.join("\n")),
    estimate: seconds === undefined ? modelMicroseconds(plan, place) : seconds * 1e6,
    isIdle: plan.blocks().every((blocks) => blocks === 0),
  };
}

/** Microseconds that a launch takes besides its work. */
const launchMicroseconds = 2;

/**
 * The least time by what all launches compute and what their blocks move, of which choices differ in how often they read an array,
 * lengthened by processors that have nothing to do: a grid of 133
 * blocks takes as long on 132 processors as one of 264.
 */
function modelMicroseconds(plan: OperationPlan, { target, gpu }: Workplace): number {
  const cost = plan.cost();
  const moved = { ...cost, memoryBytes: gmemBytes(cost) };
  const least = roofline(moved, ratesOf(target, gpu)).milliseconds * 1e3;
  const idle = plan.blocks().map((blocks) => {
    const rounds = Math.ceil(blocks / target.processors);
    return blocks === 0 ? 1 : (rounds * target.processors) / blocks;
  });
  return least * Math.max(1, ...idle) + launchMicroseconds * plan.launches.length;
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof TilewrightError)) throw error;
  const { code, summary, expected, found } = error;
  // Without lines of source files: the words are kept in files that others read.
  const compared = [expected && `expected ${expected}`, found && `found ${found}`];
  return [`${code}: ${summary}`, ...compared.filter(Boolean)].join("; ");
}
