/**
 * Waiting costs nothing: chains of blocks, many blocks at one semaphore, blocks without work. The bounds are in
 * instructions and turns rather than time, so that a busy machine does not fail them.
 */
import { describe, expect, test } from "vitest";
import {
  tensor,
  dim,
  f32,
  full,
  kernel,
  open,
  semaphore,
  slice,
  targets,
  TilewrightError,
  u32,
  when,
  whileLoop,
  zeros,
} from "tilewright";
import { Emulator } from "tilewright/emulator";

const n = dim("n");

function chain(backwards: boolean) {
  return kernel(
    {
      name: backwards ? "backwards" : "forwards",
      grid: { i: n },
      outputs: { out: tensor(f32, [n]) },
      scratch: { s: semaphore([n]) },
    },
    ({ i, out, s }) => {
      if (backwards) when(i.add(1).lt(n), () => s.at(i.add(1)).wait(1));
      else when(i.gt(0), () => s.at(i.sub(1)).wait(1));
      out.at(i).store(1);
      s.at(i).signal(1);
    },
  );
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test.each([false, true])("a chain of 600 blocks, backwards: %s", async (backwards) => {
    const device = await open(name, { checks: false });
    const { out } = await device.run(chain(backwards), {}, { dimensions: { n: 600 } });
    expect([...out.data].every((value) => value === 1)).toBe(true);
    device.dispose();
  });

  test("600 blocks at one semaphore, which the last one signals", async () => {
    const device = await open(name, { checks: false });
    const crowd = kernel(
      {
        name: "crowd",
        grid: { i: 600 },
        outputs: { out: tensor(f32, [600]) },
        scratch: { s: semaphore() },
      },
      ({ i, out, s }) => {
        when(i.eq(599), () => {
          s.signal();
        });
        s.wait(1);
        out.at(slice(i, 1)).store(full(f32, [1], 1));
      },
    );
    const { out } = await device.run(crowd, {});
    expect([...out.data].every((value) => value === 1)).toBe(true);
    device.dispose();
  });

  test("32 blocks that poll words which each of them tells", async () => {
    const device = await open(name, { checks: false, onNotes: () => undefined });
    const words = tensor(u32, [32]);
    const meeting = kernel(
      {
        name: "meeting",
        grid: { i: 32 },
        warps: 1,
        outputs: { out: words },
        inouts: { told: words },
      },
      ({ i, out, told }) => {
        told.at(slice(i, 1)).atomicAdd(full(u32, [1], 1));
        const { found } = whileLoop(
          { found: zeros(u32, [32]) },
          ({ found: known }) => known.eq(0).reduce("or"),
          () => ({ found: told.atomicAdd(zeros(u32, [32])) }),
        );
        out.at(slice(i, 1)).store(found.sum({ axis: 0, keepDims: true }));
      },
    );
    const told = { dtype: u32, shape: [32], data: new Uint32Array(32) };
    const { out } = await device.run(meeting, { told }, { stepLimit: 100_000 });
    expect([...out.data].every((value) => value === 32)).toBe(true);
    device.dispose();
  });

  test("1,000 blocks that take turns at one semaphore, all checks on", async () => {
    const device = await open(name);
    const turns = kernel(
      {
        name: "turns",
        grid: { i: n },
        outputs: { out: tensor(f32, [n]) },
        scratch: { s: semaphore() },
      },
      ({ i, out, s }) => {
        s.wait(i);
        out.at(i).store(1);
        s.signal(1);
      },
    );
    const limits = { dimensions: { n: 1000 }, timeLimit: 600_000 };
    const { out } = await device.run(turns, {}, limits);
    expect([...out.data].every((value) => value === 1)).toBe(true);
    device.dispose();
  });

  test("blocks that wait for one that does not fit are a deadlock, in the words of the program", async () => {
    const device = await open(name, { target: { ...targets.sm_90a, processors: 1 } });
    const failure = await device
      .run(chain(true), {}, { dimensions: { n: 200 } })
      .catch((error: unknown) => error);
    device.dispose();
    if (!(failure instanceof TilewrightError)) throw new Error("no deadlock was found");
    expect(failure.code).toBe(name === "simulator" ? "TW3011" : "TW8020");
    expect(failure.found).toContain("184 blocks have not started");
    const text = [failure.summary, ...failure.notes.map(({ message }) => message)].join("\n");
    expect(text).toMatch(
      name === "simulator"
        ? /thread main of block \(i = 0\) waits for semaphore s\[1\] to reach 1/
        : /thread main \(warp 0\) of block \(i = 0\).* polling element \[1\] of semaphore s/,
    );
  });
});

describe("a foreign kernel in which all but two blocks poll", () => {
  // Block 0 adds 1 to the flag 20 times; block 1 waits for 20 and sets `done`; the others wait for that.
  const text = `.version 8.0
.target sm_80
.address_size 64
.visible .entry idle(.param .u64 flag, .param .u64 done) {
.reg .pred %p<3>; .reg .b32 %r<6>; .reg .b64 %d<2>;
ld.param.u64 %d0, [flag]; ld.param.u64 %d1, [done];
mov.u32 %r0, %ctaid.x; mov.u32 %r1, %tid.x; mov.u32 %r2, 0;
setp.ne.u32 %p0, %r0, 0; @%p0 bra $others;
$add: setp.eq.u32 %p0, %r1, 0; @%p0 red.relaxed.gpu.global.add.u32 [%d0], 1;
add.u32 %r2, %r2, 1; setp.lt.u32 %p0, %r2, 20; @%p0 bra $add;
bra $end;
$others: setp.ne.u32 %p0, %r0, 1; @%p0 bra $rest;
$count: ld.acquire.gpu.global.u32 %r3, [%d0]; setp.lt.u32 %p0, %r3, 20; @%p0 bra $count;
mov.u32 %r4, 1; setp.eq.u32 %p0, %r1, 0; @%p0 st.release.gpu.global.u32 [%d1], %r4;
bra $end;
$rest: ld.acquire.gpu.global.u32 %r5, [%d1]; nanosleep.u32 40; setp.eq.u32 %p1, %r5, 0; @%p1 bra $rest;
$end: ret;
}`;

  test.each([1, 2, 3])("takes work in proportion to its blocks, seed %i", (seed) => {
    const cost = (blocks: number): number => {
      const emulator = new Emulator();
      const module = emulator.load(text);
      const zero = { dtype: f32, shape: [1], data: new Float32Array(1) };
      const parameters = [emulator.upload(zero), emulator.upload(zero)];
      const { counters } = emulator.launch(module, { blocks, threads: 128, parameters, seed });
      return counters.warpInstructions;
    };
    expect(cost(512)).toBeLessThan(6 * cost(128));
  });
});
