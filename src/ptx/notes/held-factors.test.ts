/** The search for left factors that stay in registers over the rounds of a loop finds them, and nothing else. */
import { expect, test } from "vitest";
import { parsePtx } from "../parser/index.ts";
import { heldFactors } from "./held-factors.ts";

/** A loop with a product, whose left factor is written where `inLoop` says. */
const text = (inLoop: boolean): string => `.version 8.0
.target sm_90a
.address_size 64
.visible .entry kernel ()
{
    .reg .b64 %d<2>;
    .reg .b32 %r<9>;
    .reg .pred %p<2>;
    mov.b32 %r4, 0;
    mov.b32 %r5, 0;
    mov.b32 %r6, 0;
    mov.b32 %r7, 0;
    mov.b32 %r8, 0;
    mov.b64 %d0, 0;
$loop:
    ${inLoop ? "xor.b32 %r4, %r8, %r4;\n    xor.b32 %r5, %r8, %r5;\n    xor.b32 %r6, %r8, %r6;\n    xor.b32 %r7, %r8, %r7;" : ""}
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, %d0, 1, 1, 1, 0;
    add.s32 %r8, %r8, 1;
    setp.lt.s32 %p0, %r8, 9;
    @%p0 bra $loop;
    ret;
}
`;

test("a factor is held where no round of the loop writes it", () => {
  const held = heldFactors(parsePtx(text(false))).flatMap(({ registers }) => registers);
  expect(held.map(({ name }) => name)).toEqual(["%r4", "%r5", "%r6", "%r7"]);
  expect(heldFactors(parsePtx(text(true)))).toEqual([]);
});
