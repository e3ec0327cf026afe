/**
 * What a seed stands for: a kernel, its data, the target it is compiled for, where its tiles are placed, and the turns
 * that are taken. The same seed is the same subject for as long as the generators stay as they are; a failure is kept as IR, not as a seed.
 */
import { targets } from "../../src/targets/target.ts";
import type { Kernel } from "../../src/ir/node.ts";
import type { ScheduleName } from "../../src/sim/index.ts";
import { Random } from "../../src/support/random.ts";
import { randomKernel } from "../support/random-kernel.ts";
import type { Program } from "./parts.ts";
import { programKinds, programOf } from "./programs.ts";
import type { ProgramKind } from "./programs.ts";
import { tensorMemory } from "./tensor-memory/programs.ts";
import { tensorRoles } from "./tensor-memory/roles.ts";

export const fuzzTargets = ["sm_80", "sm_90a", "sm_100a", "sm_89", "sm_120a"] as const;
export type FuzzTarget = (typeof fuzzTargets)[number];

export interface Subject {
  readonly kernel: Kernel;
  readonly dimensions: { readonly [name: string]: number };
  /** Those that are not drawn with the data. */
  readonly scalars?: Program["scalars"] | undefined;
  /** What is in arrays, where that is not drawn. */
  readonly data?: Program["data"] | undefined;
  /** What the simulator is to give, where that is known. */
  readonly expected?: string | undefined;
  /** Within which bounds. */
  readonly near?: Program["near"] | undefined;
  readonly target: FuzzTarget;
  readonly schedule: ScheduleName;
  /** Of the data and of the turns. */
  readonly seed: number;
  /** Which of all possible placements; the cheapest unless given. */
  readonly placement?: number | undefined;
}

/** Programs on tensor memory, each its own. */
const tensorPrograms = { tensorMemory, tensorRoles };
export type TensorKind = keyof typeof tensorPrograms;
export const tensorKinds = Object.keys(tensorPrograms) as readonly TensorKind[];

export type SubjectKind = "values" | ProgramKind | TensorKind;

export const subjectKinds: readonly SubjectKind[] = [
  "values",
  "values",
  "values",
  ...programKinds,
  ...tensorKinds,
  "carries",
  "edges",
];
function isTensorKind(kind: SubjectKind): kind is TensorKind {
  return (tensorKinds as readonly string[]).includes(kind);
}

const schedules: readonly ScheduleName[] = ["fixed", "random", "adversarial"];

function programFor(kind: SubjectKind, seed: number, random: Random): Program {
  if (isTensorKind(kind)) return tensorPrograms[kind](random);
  if (kind !== "values") return programOf(kind, random);
  // Rows that fill no last block.
  const statements = random.below(4) === 0 ? 19 : 8;
  return {
    kernel: randomKernel(seed, { exact: true, statements }),
    dimensions: { n: 1 + random.below(7) },
  };
}

/** Kinds of programs whose results are computed beside them, by how many of those come before one of the other kind. */
const referencedKinds = [
  "referenced",
  "referenced",
  "referenced",
  "exchanges",
  "specialized",
] as const;

/**
 * Every fourth program has its results computed beside it, and one of sixteen others is on tensor memory; the others are of the kinds that they were before there
 * were such.
 */
function kindOf(seed: number, kinds: readonly SubjectKind[], random: Random): SubjectKind {
  const onTensors = kinds.filter(isTensorKind);
  const onlyTensors = onTensors.length === kinds.length;
  if (onTensors.length > 0 && (onlyTensors || seed % 16 === 6))
    return (
      onTensors[(onlyTensors ? seed : Math.floor(seed / 16)) % onTensors.length] ?? "tensorMemory"
    );
  const beside = referencedKinds.filter((kind) => kinds.includes(kind));
  const others = kinds.filter(
    (kind) => !(referencedKinds as readonly string[]).includes(kind) && !isTensorKind(kind),
  );
  const isReferenced = beside.length > 0 && (others.length === 0 || seed % 4 === 1);
  return isReferenced
    ? (beside[Math.floor(seed / 4) % beside.length] ?? "referenced")
    : random.pick(others);
}

/** The subject of a seed, of one of the kinds and for one of the targets given. */
export function subjectOf(
  seed: number,
  among: readonly FuzzTarget[] = fuzzTargets,
  kinds: readonly SubjectKind[] = subjectKinds,
): Subject & { readonly kind: SubjectKind } {
  const random = new Random(seed);
  const kind = kindOf(seed, kinds, random);
  const program = programFor(kind, seed, random);
  const { kernel, dimensions, scalars, data, expected, near } = program;
  const size = kernel.grid.reduce((product, { cluster }) => product * cluster, 1);
  const fitting = among.filter(
    (name) => size <= targets[name].clusterSize && program.targets?.includes(name) !== false,
  );
  const target = random.pick(fitting.length > 0 ? fitting : among);
  const schedule = random.pick(schedules);
  const placement = random.below(4) === 0 ? undefined : random.below(2 ** 31);
  const given = { kernel, dimensions, scalars, data, expected, near };
  return { kind, ...given, target, schedule, seed, placement };
}
