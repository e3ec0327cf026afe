/**
 * Faults planted by rule in kernels on tensor memory as they are written: each wait, commit, arrival and fence is left out, or changes places with the op before or
 * behind it, and each first product adds. The simulator finds each of them, with a line, under every schedule; those that do no harm are listed.
 */
import { expect, test } from "vitest";
import type { AnyOp, Kernel, Region } from "../../src/ir/node.ts";
import { walkOps, withRegions } from "../../src/ir/traverse.ts";
import { verifyKernel } from "../../src/ir/verify/index.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import { runKernel } from "../simulation.ts";
import { isTaken, takesAll } from "../support/sample.ts";
import { expectSurvivors } from "./survivors.ts";
import type { Reason } from "./survivors.ts";
import { faultyKernels } from "./tensor-memory.ts";
import type { FaultyKernel } from "./tensor-memory.ts";

const schedules = takesAll
  ? ([
      { schedule: "fixed" },
      { schedule: "random", seed: 1 },
      { schedule: "adversarial", seed: 1 },
    ] as const)
  : ([{ schedule: "random", seed: 1 }] as const);

/** Of those kernels that have any. */
const dimensions = { m: 128, n: 128, k: 328 };

const kinds: readonly string[] = [
  "barrier_wait",
  "barrier_arrive",
  "tcgen05_commit",
  "fence",
  "tmem_store",
];

const reasons: readonly Reason[] = [
  [/barrier_wait \d+ early$/, "nothing that it is for comes before it"],
  [/tmem_store \d+ late$/, "what it is moved behind touches other memory"],
];

interface Fault {
  readonly name: string;
  readonly kernel: Kernel;
}

function frozen<T extends object>(node: T): T {
  for (const part of Object.values(node))
    if (typeof part === "object" && part !== null) Object.freeze(part);
  return Object.freeze(node);
}

/** The kernel with the ops of one region changed. */
function changed(kernel: Kernel, op: AnyOp, change: (ops: AnyOp[], at: number) => void): Kernel {
  const visit = (region: Region): Region => {
    const at = region.ops.indexOf(op);
    const ops =
      at < 0 ? region.ops.map((each) => frozen(withRegions(each, visit))) : [...region.ops];
    if (at >= 0) change(ops, at);
    return frozen({ ...region, ops });
  };
  return { ...kernel, body: visit(kernel.body) };
}

function isValid(kernel: Kernel): boolean {
  try {
    verifyKernel(kernel);
    return true;
  } catch (error) {
    if (error instanceof TilewrightError) return false;
    throw error;
  }
}

/** Kinds of ops and results of those that have any, in order. */
function orderOf(kernel: Kernel): readonly string[] {
  const order: string[] = [];
  walkOps(kernel.body, ({ kind, results, location }) =>
    order.push(
      `${kind} ${results.map(({ id }) => id).join()} ${JSON.stringify(location.position)}`,
    ),
  );
  return order;
}

/** Ops that only say where others go on are passed over. */
const isPlain = ({ results, kind }: AnyOp): boolean => results.length === 0 && kind !== "yield";

function faultsOf(kernel: Kernel): readonly Fault[] {
  const faults: Fault[] = [];
  const counts = new Map<string, number>();
  walkOps(kernel.body, (op) => {
    const { kind } = op;
    const place = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, place);
    const add = (name: string, change: (ops: AnyOp[], at: number) => void): void => {
      const faulty = changed(kernel, op, change);
      const isChanged = orderOf(faulty).some((each, index) => each !== orderOf(kernel)[index]);
      if ((isChanged || name === "adds") && isValid(faulty))
        faults.push({ name: `${kind} ${place} ${name}`, kernel: faulty });
    };
    if (kind === "tcgen05_mma" && op.operands.adds !== undefined)
      add("adds", (ops, at) => {
        ops[at] = frozen({ ...op, operands: { ...op.operands, adds: undefined } }) as AnyOp;
      });
    if (!kinds.includes(kind)) return;
    add("left out", (ops, at) => ops.splice(at, 1));
    const moves = { early: -1, late: 1 } as const;
    for (const [name, step] of Object.entries(moves))
      add(name, (ops, at) => {
        ops.splice(at, 1);
        let to = step < 0 ? at - 1 : at;
        while (ops[to] !== undefined && !isPlain(ops[to] as AnyOp)) to += step;
        ops.splice(step < 0 ? Math.max(0, to) : Math.min(to + 1, ops.length - 1), 0, op);
      });
  });
  return faults;
}

/** Whether nothing tells of a fault, under some schedule. */
async function survives(
  faulty: Kernel,
  { inputs }: FaultyKernel,
  right: (name: string) => string | undefined,
): Promise<boolean> {
  for (const schedule of schedules) {
    try {
      const { findings, results } = await runKernel({ kernel: faulty }, inputs, {
        ...{ ...schedule, dimensions, target: targets.sm_100a },
      });
      for (const { message, position } of findings)
        expect(position?.line ?? 0, message).toBeGreaterThan(0);
      const isRight = Object.entries(results).every(
        ([name, { data }]) => (right(name) ?? data.join()) === data.join(),
      );
      if (findings.length === 0 && isRight) return true;
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      expect(error.position?.line ?? 0, error.message).toBeGreaterThan(0);
    }
  }
  return false;
}

test("faults in kernels are found by the simulator", { timeout: 3_600_000 }, async () => {
  const [tried, survived]: [string[], string[]] = [[], []];
  for (const kernel of faultyKernels.slice(0, 2)) {
    const { name, definition } = kernel;
    const clean = await runKernel(definition, kernel.inputs, {
      dimensions,
      target: targets.sm_100a,
    });
    expect(clean.findings).toEqual([]);
    const right = (result: string): string | undefined => clean.results[result]?.data.join();
    const faults = faultsOf(definition.kernel).filter((_, place) => isTaken(place, 4));
    for (const { name: fault, kernel: faulty } of faults) {
      tried.push(`${name}: ${fault}`);
      if (await survives(faulty, kernel, right)) survived.push(`${name}: ${fault}`);
    }
  }
  expect(tried.length).toBeGreaterThan(4);
  expectSurvivors("tensor-memory-ops", reasons, { tried, survived });
});
