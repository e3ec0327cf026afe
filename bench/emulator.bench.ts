/**
 * How fast the emulator runs plain instructions: `npx vitest bench bench/emulator.bench.ts`. Each run is about
 * ten million lane-instructions; straight arithmetic is meant to take less than 200 ms, and less than a
 * second with checks. What it costs to know the array of an address: `-t "one array"`; an address put together
 * from halves is not followed, and the same accesses are then only held against all memory there is.
 */
import { bench, describe } from "vitest";
import { EmulatedMemory, emulate } from "../src/emulator/index.ts";
import { parsePtx } from "../src/ptx/parser/index.ts";
import { targets } from "../src/targets/target.ts";

/** Text of 16 turns, each register and the ones after it. */
function unrolled(line: (register: (distance: number) => number) => string): string {
  return Array.from({ length: 16 }, (_, turn) => line((distance) => (turn + distance) % 8)).join(
    "\n",
  );
}

const bodies = {
  "f32 arithmetic": unrolled(
    (at) => `fma.rn.f32 %f${at(0)}, %f${at(1)}, %f${at(3)}, %f${at(5)};
      mul.f32 %f${at(2)}, %f${at(0)}, 0f3F7FF000; add.f32 %f${at(3)}, %f${at(0)}, %f${at(2)};`,
  ),
  "s32 arithmetic": unrolled(
    (at) => `mad.lo.s32 %r${at(0)}, %r${at(1)}, %r${at(3)}, %r${at(5)};
      xor.b32 %r${at(2)}, %r${at(0)}, 12345; add.s32 %r${at(3)}, %r${at(0)}, %r${at(2)};`,
  ),
  "shared memory": unrolled(
    (at) => `ld.shared.f32 %f${at(0)}, [%a]; add.f32 %f${at(0)}, %f${at(0)}, %f${at(1)};
      st.shared.f32 [%a], %f${at(0)};`,
  ),
  shuffles: unrolled(
    (at) => `shfl.sync.bfly.b32 %r${at(0)}, %r${at(1)}, 16, 31, -1;
      add.s32 %r${at(1)}, %r${at(0)}, %r${at(2)}; xor.b32 %r${at(3)}, %r${at(0)}, 5;`,
  ),
};

function moduleText(body: string): string {
  const start = Array.from(
    { length: 8 },
    (_, at) => `mov.b32 %r${at}, ${77 * at + 3}; mov.b32 %f${at}, 0f3F8${at}0000;`,
  );
  return `.version 8.0\n.target sm_90a\n.address_size 64
.visible .entry kernel() {
  .reg .pred %p; .reg .b32 %r<8>, %f<8>, %i, %a, %s;
  .shared .align 4 .b8 tile[1024];
  ${start.join("\n")}
  mov.u32 %a, %tid.x; shl.b32 %a, %a, 2; mov.u32 %s, tile; add.s32 %a, %a, %s; st.shared.b32 [%a], %r0;
  mov.b32 %i, 0;
$loop:
  ${body}
  add.s32 %i, %i, 1; setp.lt.s32 %p, %i, 200; @%p bra $loop;
  ret;
}`;
}

describe.each([false, true])("checks: %s", (checks) => {
  for (const [name, body] of Object.entries(bodies)) {
    const module = parsePtx(moduleText(body));
    const launch = {
      entry: "kernel",
      blocks: [4, 1, 1],
      threads: [256, 1, 1],
      sharedBytes: 0,
      parameters: [],
    } as const;
    bench(
      name,
      () => {
        emulate(module, launch, new EmulatedMemory(), { target: targets.sm_90a, checks });
      },
      { iterations: 5, time: 0, warmupIterations: 2, warmupTime: 0 },
    );
  }
});

/** Loads and stores of one array, whose addresses are followed back to it or are not. */
function accessText(followed: boolean): string {
  const access = unrolled(
    (at) => `ld.global.b32 %r${at(0)}, [%d1]; add.s32 %r${at(0)}, %r${at(0)}, %r${at(1)};
      st.global.b32 [%d1], %r${at(0)};`,
  );
  return `.version 8.0\n.target sm_90a\n.address_size 64
.visible .entry kernel(.param .u64 array) {
  .reg .pred %p; .reg .b32 %r<8>, %i, %lane, %low, %high; .reg .b64 %d<2>;
  ${Array.from({ length: 8 }, (_, at) => `mov.b32 %r${at}, ${at};`).join(" ")}
  ld.param.u64 %d0, [array]; mov.u32 %lane, %ctaid.x; mad.lo.u32 %lane, %lane, 256, %tid.x;
  ${followed ? "" : "mov.b64 {%low, %high}, %d0; mov.b64 %d0, {%low, %high};"}
  mad.wide.u32 %d1, %lane, 4, %d0; st.global.b32 [%d1], %lane; mov.b32 %i, 0;
$loop:
  ${access}
  add.s32 %i, %i, 1; setp.lt.s32 %p, %i, 200; @%p bra $loop;
  ret;
}`;
}

describe("one array, checked", () => {
  for (const followed of [false, true]) {
    const module = parsePtx(accessText(followed));
    bench(
      followed ? "addresses that are followed" : "addresses that are not",
      () => {
        const memory = new EmulatedMemory();
        const address = memory.allocate(4 * 4 * 256);
        const launch = {
          entry: "kernel",
          blocks: [4, 1, 1],
          threads: [256, 1, 1],
          sharedBytes: 0,
          parameters: [new Uint8Array(BigUint64Array.of(BigInt(address)).buffer)],
        } as const;
        emulate(module, launch, memory, { target: targets.sm_90a, checks: true });
      },
      { iterations: 15, time: 0, warmupIterations: 3, warmupTime: 0 },
    );
  }
});
