/**
 * Faults planted by rule in what is emitted for kernels on tensor memory: each wait, commit, fence, allocation and barrier is left out, or moved before or behind
 * the next instruction that it has to do with, and lanes are looked for in another quarter. `tensor-memory-text.test.ts` tries them.
 *
 *   tcgen05.wait::ld.sync.aligned;            left out: loads are still under way at the dealloc
 *   @%p4 tcgen05.commit… [%r75];              early: before the products that it is to tell of
 */
import { bf16, block, dot, f16, f32, f8e4m3fn, full, kernel, loop, tensor } from "tilewright";
import type { HostArray, KernelDefinition } from "tilewright";
import { tcgen05Matmul } from "../../examples/tcgen05-matmul.ts";
import { normal } from "../../examples/support/data.ts";
import { Random } from "../../src/support/random.ts";
import { programOf } from "../fuzz/tensor-memory/programs.ts";
import type { Group, Plan, Region, Statement } from "../fuzz/tensor-memory/plan.ts";

export interface FaultyKernel {
  readonly name: string;
  readonly definition: KernelDefinition;
  readonly inputs: { readonly [name: string]: HostArray };
}

const ring: FaultyKernel = {
  name: "ring",
  definition: tcgen05Matmul as unknown as KernelDefinition,
  inputs: { a: normal(bf16, [128, 328], 1), b: normal(bf16, [328, 128], 2) },
};

const looped: FaultyKernel = {
  name: "loop",
  definition: kernel(
    {
      name: "looped",
      inputs: { x: tensor(f16, [64, 192]), y: tensor(f16, [192, 32]) },
      outputs: { out: tensor(f32, [64, 32]) },
    },
    ({ x, y, out }) => {
      const carry = full(f32, [64, 32], 3);
      const sum = loop({ to: 6, carry }, (step, accumulator) =>
        dot(x.at(block(0, 64), block(step, 32)).load(), y.at(block(step, 32)).load(), {
          accumulator,
        }),
      );
      out.store(sum);
    },
  ) as unknown as KernelDefinition,
  inputs: { x: normal(f16, [64, 192], 3), y: normal(f16, [192, 32], 4) },
};

/** One thread that stores and loads sums, changes factors in both memories, and copies scales. */
function alone(): FaultyKernel {
  const group = (isScaled: boolean, more: Partial<Group>): Group => ({
    ...{ a: bf16, b: bf16, sum: f32, rows: 128, depth: 32, isScaled },
    sums: [{ tiles: 1, columns: 32 }],
    lefts: [{ place: "tensor" }],
    rights: [{ columns: 32, along: true }],
    ...more,
  });
  const groups = [
    group(false, {}),
    group(true, { a: f8e4m3fn, b: f8e4m3fn, lefts: [{ place: "along" }] }),
  ];
  const of = (at: number): Region => ({
    ...{ group: at, sums: 0, column: 0, isDynamic: false, width: 32 },
    tile: { base: 0, turns: false },
  });
  const multiply = (at: number, adds: "always" | "never"): Statement => ({
    ...{ kind: "multiply", into: of(at), left: 0, right: 0, adds },
  });
  const land: readonly Statement[] = [
    { kind: "commit", barrier: "done" },
    { kind: "wait", barrier: "done" },
  ];
  const refill = (side: "left" | "right"): Statement => ({
    ...{ kind: "refill", group: 0, side, factor: 0, version: 1 },
  });
  const load = (at: number, output: number): Statement => ({
    ...{ kind: "load", from: of(at), shape: undefined, output },
  });
  const plan: Plan = {
    ...{ warps: 4, groups, isWhole: false },
    statements: [
      { kind: "store", into: of(0), shape: undefined, negates: false },
      ...[multiply(0, "always"), ...land, load(0, 0), refill("left"), refill("right")],
      ...[multiply(0, "never"), { kind: "scales", group: 1, version: 0 } as const],
      ...[multiply(1, "never"), multiply(1, "always"), ...land],
      ...[{ kind: "scales", group: 1, version: 1 } as const, multiply(1, "always"), ...land],
      { kind: "store", into: of(1), shape: undefined, negates: true },
      ...[load(1, 1), load(0, 2)],
    ],
    outputs: [0, 1, 0].map((at) => ({ group: at, turns: 1, width: 32 })),
  };
  const program = programOf(plan, new Random(5));
  const scalars = { flag: 0, none: 0, start: 0 };
  return {
    name: "alone",
    definition: { kernel: program.kernel } as unknown as KernelDefinition,
    inputs: { ...program.data, ...(scalars as object) },
  };
}

/** `loop` has its products from a `dot`; the others say what starts, ends and is waited for. */
export const faultyKernels: readonly FaultyKernel[] = [ring, alone(), looped];

export interface Fault {
  /** The instruction, its place among those that are alike, and what becomes of it. */
  readonly name: string;
  readonly text: string;
}

/** Instructions that are left out and moved. */
const single = /\btcgen05\.(?:wait|alloc|dealloc|relinquish|commit)|\bfence\.(?:proxy|mbarrier)/;
/** What those are moved behind, and before. */
const others =
  /\btcgen05\.(?!fence|wait)|\bbar\.|\b(?:st|ld)\.(?:shared|global)|\bmbarrier\.arrive/;
/** What agents meet by; such instructions behind each other are one point. */
const meeting = /\btcgen05\.fence|\bbar\.|\bmbarrier\.try_wait|\bbra \$wait/;

/** An instruction without its registers. */
function opcodeOf(line: string): string {
  return /(?:@!?%\w+ )?(\S+)/.exec(line.trim())?.[1]?.replace(/;$/, "") ?? line;
}

/** Instructions from one number to another by which agents meet. */
interface Point {
  readonly name: string;
  readonly lines: readonly number[];
}

function pointsOf(lines: readonly string[]): readonly Point[] {
  const points: { lines: number[] }[] = [];
  let last = -1;
  lines.forEach((line, at) => {
    if (line.trim().startsWith("$") || line.trim() === "" || line.trim().startsWith(".loc")) return;
    if (meeting.test(line)) {
      if (last < 0) points.push({ lines: [] });
      points.at(-1)?.lines.push(at);
      last = at;
    } else last = -1;
  });
  return points.map(({ lines: own }, at) => {
    const reasons = own.flatMap((each) => / \/\/ (.*)$/.exec(lines[each] ?? "")?.[1] ?? []);
    const reason = (reasons[0] ?? "a wait").replaceAll(/%\d+/g, "a buffer");
    return { name: `point ${at + 1} (${reason})`, lines: own };
  });
}

/** All faults of a text. */
export function faultsOf(ptx: string): readonly Fault[] {
  const lines = ptx.split("\n");
  const without = (gone: readonly number[]): string =>
    lines.filter((_, at) => !gone.includes(at)).join("\n");
  const matching = (pattern: RegExp, among: readonly number[] = [...lines.keys()]) =>
    among.filter((at) => pattern.test(lines[at] ?? ""));
  const moved = (from: number, to: number): string => {
    const rest = lines.toSpliced(from, 1);
    return rest.toSpliced(to, 0, lines[from] ?? "").join("\n");
  };
  const counts = new Map<string, number>();
  const singles = matching(single).flatMap((at): readonly Fault[] => {
    const opcode = opcodeOf(lines[at] ?? "");
    const place = (counts.get(opcode) ?? 0) + 1;
    counts.set(opcode, place);
    const before = matching(others).findLast((each) => each < at);
    const behind = matching(others).find((each) => each > at);
    return [
      { name: `${opcode} ${place} left out`, text: without([at]) },
      ...(before === undefined
        ? []
        : [{ name: `${opcode} ${place} early`, text: moved(at, before) }]),
      ...(behind === undefined
        ? []
        : [{ name: `${opcode} ${place} late`, text: moved(at, behind) }]),
    ];
  });
  const parts = {
    "fences before": /fence::before/,
    "fences after": /fence::after/,
    barriers: /\bbar\./,
    waits: /try_wait|bra/,
  };
  const atPoints = pointsOf(lines).flatMap((point) =>
    Object.entries(parts).flatMap(([name, pattern]): readonly Fault[] => {
      const gone = matching(pattern, point.lines);
      return gone.length === 0
        ? []
        : [{ name: `${name} of ${point.name} left out`, text: without(gone) }];
    }),
  );
  const everywhere = (["before", "after"] as const).map((side) => ({
    name: `all fences ${side} left out`,
    text: without(matching(new RegExp(`fence::${side}`))),
  }));
  const quarters = matching(/, 2097152, /).map((at, place) => ({
    name: `quarter ${place + 1} of another warp`,
    text: lines.with(at, lines[at]?.replace(/, 2097152, /, ", 4194304, ") ?? "").join("\n"),
  }));
  return [...singles, ...everywhere, ...atPoints, ...quarters];
}
