/** Broken text is reported, whatever is broken: nothing but our own errors, and always a place. */
import { expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Random } from "../../support/random.ts";
import type { PtxModule } from "../module.ts";
import { printPtx } from "../printer.ts";
import { parsePtx } from "./index.ts";

const original = `.version 8.0
.target sm_90a, debug
.address_size 64
.visible .const .align 8 .b8 table[2][2] = {{1, 0x2}, {3}};
.global .align 8 .u64 pointers[2] = {generic(table)+4, 0xFF00(table)};
.extern .shared .align 128 .b8 dynamic[];
.func (.param .b32 result) twice (.param .b32 value) ;
.visible .entry kernel (.param .u64 .ptr .global .align 4 out, .param .align 64 .b8 map[128])
.maxntid 64, 1, 1
{
  .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .pred %p<2>; .reg .v2 .b32 %v;
  .loc 1 3 4 // a comment
  ld.param.u64 %rd1, [out+0];
  @!%p1 mov.b32 %r1, (3 << 2) * -WARP_SZ; /* another */
  mul.f32 %r2, %r1, 0f3F800000;
  { .reg .b32 temp; .param .b32 param0; st.param.b32 [param0], %r1;
    call.uni (param0), twice, (param0, %r2), proto; proto : .callprototype (.param .b32 _) _ (.param .b32 _); }
$loop: .pragma "nounroll";
  shfl.sync.bfly.b32 %r1|%p1, %v.x, 16, 31, -1;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, 0}], [%r3];
  targets: .branchtargets $loop, $loop;
  brx.idx %r1, targets;
}
.file 1 "a.cu"
.section .debug_str {
$name: .b8 97,0
}
`;

const pieces = original.match(/[\w$%]+|\s+|[^\w\s]/g) ?? [];

/** A few cuts, copies and swaps of words or characters. */
function mutate(random: Random): string {
  const parts = [...pieces];
  for (let change = 1 + random.below(3); change > 0; change--) {
    const at = random.below(parts.length);
    const choice = random.below(5);
    if (choice === 0) parts.splice(at, 1 + random.below(4));
    else if (choice === 1) parts.splice(at, 0, random.pick(pieces));
    else if (choice === 2) parts.splice(at, 1, random.pick(pieces));
    else if (choice === 3) parts.splice(at, parts.length);
    else
      parts.splice(at, 0, String.fromCodePoint(random.below(random.below(2) === 0 ? 128 : 9000)));
  }
  return parts.join("");
}

function attempt(text: string, seed: number): PtxModule | TilewrightError {
  try {
    return parsePtx(text);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw new Error(`seed ${seed}`, { cause: error });
  }
}

test("the text itself is sound", () => {
  expect(() => parsePtx(original)).not.toThrow();
});

test("mutations give a module that can be printed and read, or a report with a place", () => {
  let [read, reported] = [0, 0];
  for (let seed = 0; seed < 1500; seed++) {
    const text = mutate(new Random(seed));
    const outcome = attempt(text, seed);
    if (outcome instanceof TilewrightError) {
      expect(outcome.position?.line, `seed ${seed}`).toBeGreaterThan(0);
      expect(outcome.position?.column, `seed ${seed}`).toBeGreaterThan(0);
      expect(outcome.code, `seed ${seed}`).toMatch(/^TW71/);
      reported++;
    } else {
      const printed = printPtx(outcome);
      const again = attempt(printed, seed);
      if (again instanceof TilewrightError) throw new Error(`seed ${seed}`, { cause: again });
      expect(printPtx(again), `seed ${seed}`).toBe(printed);
      read++;
    }
  }
  expect(read).toBeGreaterThan(100);
  expect(reported).toBeGreaterThan(500);
});
