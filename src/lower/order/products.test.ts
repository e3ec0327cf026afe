/** What products wait for before their left factor's registers are written again, and what they are handed. */
import { describe, expect, test } from "vitest";
import { runEdited, withoutLines } from "../../../test/support/edited-kernel.ts";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import type { AnyOp, Region } from "../../ir/node.ts";
import { changeBody, changeOps, changeRegions } from "../../ir/rewrite/substitute.ts";
import { walkOps } from "../../ir/traverse.ts";
import {
  accumulator,
  array,
  barrier,
  commitShared,
  dot,
  full,
  kernel,
  loop,
  smem,
  wgmma,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../pipeline.ts";
import { verifyOrder } from "./order.ts";

const [rounds, rows, depth] = [3, 64, 16];
const left = fromNumbers(bf16, [rows, depth], new Array<number>(rows * depth).fill(2));

/** Rounds of a product whose left factor is a tile, and of another behind it that `pending` may leave in flight. */
const again = (pending?: number): KernelDefinition =>
  kernel(
    {
      name: "again",
      inputs: { left: array(bf16, [rows, depth]) },
      outputs: { out: array(f32, [rows, depth]), other: array(f32, [rows, depth]) },
      scratch: { a: smem(bf16, [rows, depth]), b: smem(bf16, [depth, depth]) },
    },
    ({ left: source, out, other, a, b }) => {
      a.store(source.load());
      b.store(full(bf16, [depth, depth], 1));
      commitShared();
      const tile = source.load();
      const zero = () => accumulator(f32, [rows, depth]);
      const [sum, second] = loop({ to: rounds, carry: [zero(), zero()] }, (_, [before, last]) => {
        const started = wgmma(before, tile, b);
        const behind = wgmma(last, a, b);
        return [started, pending === undefined ? behind : behind.waitPending(pending)];
      });
      out.store(sum.wait());
      other.store(second.wait());
    },
  );

function waitsOf({ kernel: traced }: KernelDefinition): readonly number[] {
  const found: number[] = [];
  walkOps(place(traced, targets.sm_90a).kernel.body, (op: AnyOp) => {
    if (op.kind === "products_wait") found.push(op.attributes.pending);
  });
  return found;
}

describe("registers of a left factor", () => {
  test.each([
    ["nothing", undefined, [1]],
    ["the one before", 1, []],
    ["too little", 2, [1]],
  ] as const)("whose round waits for %s", async (_, pending, waits) => {
    expect(waitsOf(again(pending))).toEqual(waits);
    const { codes, results } = await runEdited(again(pending), { left });
    expect(codes).toEqual([]);
    for (const name of ["out", "other"])
      expect(new Set(results?.[name] && toNumbers(results[name]))).toEqual(
        new Set([rounds * depth * 2]),
      );
  });
});

test("a kernel without the wait is refused", () => {
  const { kernel: ordered } = place(again().kernel, targets.sm_90a);
  const strip = (region: Region): Region =>
    changeOps(
      region,
      region.ops
        .filter(({ kind }) => kind !== "products_wait")
        .map((op) => changeRegions(op, strip)),
    );
  expect(() => verifyOrder(changeBody(ordered, strip(ordered.body)))).toThrow(
    "at most 1 products may be in flight",
  );
});

test("what another thread multiplies is handed over by the lanes that wrote it", async () => {
  const handed = kernel(
    {
      name: "handed",
      threads: ["write", "multiply"],
      inputs: { left: array(bf16, [rows, depth]) },
      outputs: { out: array(f32, [rows, depth]) },
      scratch: {
        a: smem(bf16, [rows, depth]),
        b: smem(bf16, [depth, depth]),
        ready: barrier(),
      },
    },
    ({ left: source, out, a, b, ready, write, multiply }) => {
      write(() => {
        a.store(source.load());
        b.store(full(bf16, [depth, depth], 1));
        ready.arrive();
      });
      multiply(() => {
        ready.wait();
        out.store(dot(a.load(), b.load()));
      });
    },
  );
  const fence = /fence\.proxy\.async.*the tensor cores may read/m;
  const { ptx, codes, results } = await runEdited(handed, { left });
  expect(ptx).toMatch(fence);
  expect(codes).toEqual([]);
  expect(new Set(results?.["out"] && toNumbers(results["out"]))).toEqual(new Set([depth * 2]));
  const without = await runEdited(handed, { left }, { edit: withoutLines(fence) });
  expect(without.codes).not.toEqual([]);
});
