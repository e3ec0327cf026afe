/**
 * Whether a planted fault is told: by the simulator with one of its codes, by compiled code where that has to stop; and whether the same program without
 * it is clean, and gives the same compiled as simulated.
 */
import { Random } from "../../../src/support/random.ts";
import type { Program } from "../parts.ts";
import { isRefusal, judge, otherWays, outcome, simulated } from "../run.ts";
import type { Outcome, Verdict } from "../run.ts";
import { fuzzTargets } from "../subjects.ts";
import type { Subject } from "../subjects.ts";
import type { Faulty } from "./faulty.ts";

/** How a seed has a program run. */
function subjectFor(program: Program, seed: number): Subject {
  const random = new Random(seed);
  const fitting = fuzzTargets.filter((name) => program.targets?.includes(name) !== false);
  return {
    ...program,
    target: random.pick(fitting),
    schedule: random.pick(["fixed", "random", "adversarial"] as const),
    seed,
    placement: random.below(2) === 0 ? undefined : random.below(2 ** 31),
  };
}

/** Codes of what checks alone find; the placed kernel is simulated without them. */
const ofChecks: ReadonlySet<string> = new Set(["TW3001", "TW3008", "TW3009"]);

function missed(name: string, found: Outcome, wanted: readonly string[]): string | undefined {
  if (found.kind === "refused" && wanted.includes(found.code)) return undefined;
  const text = found.kind === "result" ? "says nothing" : found.text;
  return `${name}, which is to say ${wanted.join(" or ")}: ${text}`;
}

export async function judgeFault(faulty: Faulty, seed: number): Promise<Verdict> {
  const right = await judge(subjectFor(faulty.right, seed));
  if (right.kind !== "same")
    return right.kind === "skipped"
      ? right
      : { ...right, why: `${faulty.name}, without its fault: ${right.why}` };
  let made: Program | undefined;
  const traced = await outcome(async () => {
    made = faulty.wrong();
    return "";
  });
  const different = (why: string): Verdict => ({
    kind: "different",
    why: `${faulty.name}: ${why}`,
  });
  if (made === undefined) {
    const why = missed("tracing", traced, faulty.told);
    return why === undefined ? { kind: "same" } : different(why);
  }
  const drawn = subjectFor(made, seed);
  const subject = faulty.placedAsUsual === true ? { ...drawn, placement: undefined } : drawn;
  const why = missed("the simulator", await simulated(subject), faulty.told);
  if (why !== undefined) return different(why);
  if (faulty.trapped === undefined) return { kind: "same" };
  for await (const [name, found] of otherWays(subject)) {
    const wanted = name === "the emulator" ? faulty.trapped : faulty.told;
    if (name !== "the emulator" && wanted.every((code) => ofChecks.has(code))) continue;
    const why = missed(name, found, wanted);
    if (why === undefined) continue;
    if (found.kind === "refused" && isRefusal(found.code))
      return { kind: "skipped", why: found.code };
    return different(why);
  }
  return { kind: "same" };
}
