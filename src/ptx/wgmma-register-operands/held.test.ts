/** Factors that stay in registers over the rounds of a loop are found, and nothing else; products get registers that do not. */
import { describe, expect, test } from "vitest";
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  copyAsync,
  f32,
  kernel,
  loop,
  open,
  smem,
  wgmma,
} from "tilewright";
import { fromNumbers, toNumbers } from "tilewright";
import { lower } from "../../lower/stages.ts";
import { defaultTarget } from "../../targets/target.ts";
import type { PtxModule, Register, Statement } from "../module.ts";
import { parsePtx } from "../parser/index.ts";
import { heldFactors } from "./held.ts";
import { renewal, renewFactors } from "./renew.ts";

function bodyOf({ declarations }: PtxModule): readonly Statement[] {
  return declarations.flatMap((each) => (each.kind === "function" ? (each.body ?? []) : []));
}

interface Form {
  /** What each round does before the product. */
  readonly round?: string;
  readonly product?: string;
}

const dense =
  "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, %d0, 1, 1, 1, 0;";
const sparse =
  "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {%r0, %r1, %r2, %r3}, %d0, %d0, %r9, 0, 1, 1, 1, 0, 0;";

/** A loop with a product. */
const text = ({ round = "", product = dense }: Form): string => `.version 8.2
.target sm_90a
.address_size 64
.visible .entry kernel ()
{
    .reg .b64 %d<2>;
    .reg .b32 %r<10>;
    .reg .pred %p<2>;
    mov.b32 %r4, 0;
    mov.b32 %r5, 0;
    mov.b32 %r6, 0;
    mov.b32 %r7, 0;
    mov.b32 %r8, 0;
    mov.b32 %r9, 0;
    mov.b64 %d0, 0;
$loop:
    ${round}
    wgmma.fence.sync.aligned;
    ${product}
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    add.s32 %r8, %r8, 1;
    setp.lt.s32 %p0, %r8, 9;
    @%p0 bra $loop;
    ret;
}
`;

const heldNames = (form: Form) =>
  heldFactors(bodyOf(parsePtx(text(form)))).flatMap(({ registers }) =>
    registers.map(({ name }) => name),
  );

describe("a factor is held", () => {
  test("where no round of the loop writes it", () => {
    expect(heldNames({})).toEqual(["%r4", "%r5", "%r6", "%r7"]);
    const computed = [4, 5, 6, 7].map((each) => `xor.b32 %r${each}, %r8, %r${each};`).join("\n");
    expect(heldNames({ round: computed })).toEqual([]);
  });

  test("in those of its registers that none writes", () => {
    expect(heldNames({ round: "xor.b32 %r5, %r8, %r5;" })).toEqual(["%r4", "%r6", "%r7"]);
  });

  test("where rounds only move what is held", () => {
    const moved = [4, 5, 6, 7].map((each) => `mov.b32 %r${each}, %r9;`).join("\n");
    expect(heldNames({ round: moved })).toEqual(["%r4", "%r5", "%r6", "%r7"]);
    expect(heldNames({ round: moved.replaceAll("%r9", "%r8") })).toEqual([]);
  });

  test("as metadata, too", () => {
    expect(heldNames({ product: sparse })).toEqual(["%r9"]);
  });
});

test("products get registers that every round writes, before the fence", () => {
  let count = 100;
  const newRegister = (): Register => ({ kind: "register", name: `%r${count++}`, type: "b32" });
  for (const product of [dense, sparse]) {
    const body = bodyOf(parsePtx(text({ product })));
    const renewed = renewFactors(body, newRegister);
    expect(heldFactors(renewed)).toEqual([]);
    const opcodes = renewed.flatMap((each) => (each.kind === "instruction" ? [each.opcode] : []));
    expect(opcodes.indexOf("xor.b32")).toBeLessThan(opcodes.indexOf("wgmma.fence.sync.aligned"));
    expect(renewFactors(renewed, newRegister)).toBe(renewed);
  }
});

const repeated = kernel(
  {
    name: "repeated",
    inputs: { a: tensor(bf16, [64, 64]), b: tensor(bf16, [64, 64]) },
    outputs: { out: tensor(f32, [64, 64]) },
    scratch: {
      left: smem(bf16, [64, 64]),
      right: smem(bf16, [64, 64]),
      ready: barrier({ arrivals: 2 }),
    },
  },
  ({ a, b, out, left, right, ready }) => {
    copyAsync(a, left, { barrier: ready });
    copyAsync(b, right, { barrier: ready });
    ready.wait();
    const factor = left.load();
    const sum = loop({ to: 3, carry: accumulator(f32, [64, 64]) }, (_, running) =>
      wgmma(running, factor, right),
    );
    out.store(sum.wait());
  },
);

test("kernels are emitted without, and compute the same", async () => {
  const body = bodyOf(lower(repeated.kernel, defaultTarget).module);
  expect(heldFactors(body)).toEqual([]);
  const copies = body.filter((each) => each.kind === "instruction" && each.comment === renewal);
  expect(copies).toHaveLength(16);
  const whole = (seed: number) =>
    fromNumbers(
      bf16,
      [64, 64],
      Array.from({ length: 64 * 64 }, (_, at) => ((at * seed) % 7) - 3),
    );
  const [a, b] = [whole(5), whole(11)];
  const device = await open("emulator");
  const { out } = await device.run(repeated, { a, b });
  device.dispose();
  const [left, right] = [toNumbers(a), toNumbers(b)];
  const expected = Array.from({ length: 64 * 64 }, (_, at) => {
    const [row, column] = [Math.floor(at / 64), at % 64];
    let sum = 0;
    for (let i = 0; i < 64; i += 1)
      sum += (left[64 * row + i] ?? NaN) * (right[64 * i + column] ?? NaN);
    return 3 * sum;
  });
  expect([...toNumbers(out)]).toEqual(expected);
});
