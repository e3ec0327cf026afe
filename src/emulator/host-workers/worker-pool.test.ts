import { describe, expect, test, vi } from "vitest";
import { poolOf, dividedLaunches, recordLaunch } from "../../../test/support/divided-launches.ts";
import type {
  DividedLaunch,
  EmulatorParts,
  LaunchRecord,
} from "../../../test/support/divided-launches.ts";
import { withStandingClock } from "../../../test/support/clocks.ts";
import { PretendedThreads } from "../../../test/support/pretended-threads.ts";
import * as emulator from "../index.ts";
import { targets } from "../../targets/target.ts";
import { globalBase } from "../addresses.ts";
import { byteStates } from "../memory.ts";
import { parsePtx } from "../../ptx/parser/index.ts";
import { WorkerPool } from "./worker-pool.ts";
import { processors } from "../../workers/node.ts";

const { EmulatedMemory } = emulator;
const atOnce = { patience: 0, gain: 0 };
const alone = { EmulatedMemory, parsePtx, run: emulator.emulate };

function record(
  launch: DividedLaunch,
  pool: WorkerPool,
  checks = true,
  seed = 3,
): Promise<LaunchRecord> {
  return recordLaunch({ ...alone, run: poolOf(emulator, pool) }, launch, { seed, checks });
}

function named(start: string): DividedLaunch {
  const found = dividedLaunches.find(({ name }) => name.startsWith(start));
  if (found === undefined) throw new Error(`no launch is called ${start}`);
  return found;
}

describe.each([true, false])("launches on threads, checks: %s", (checks) => {
  test.each(dividedLaunches.map((launch) => [launch.name, launch] as const))(
    "%s",
    async (_, launch) => {
      const expected = await recordLaunch(alone, launch, { seed: 3, checks });
      const host = new PretendedThreads();
      const pool = new WorkerPool({ threads: 3, handover: atOnce, host });
      expect(await record(launch, pool, checks)).toEqual(expected);
      const end = checks ? launch.end : (launch.unchecked ?? launch.end);
      const answers = end === "kept" ? 0 : 3;
      expect(host.answers.length).toBe(answers);
      if (end === "shared") expect(host.answers).not.toContain(undefined);
    },
  );
});

describe("a pool", () => {
  const easy = named("words");

  test("is hired once, and gets a module once", async () => {
    const host = new PretendedThreads();
    const sent: boolean[] = [];
    host.onJob = ({ module }) => {
      sent.push(module.content !== undefined);
      return undefined;
    };
    const pool = new WorkerPool({ handover: atOnce, host });
    const parsed = new Map<string, ReturnType<typeof parsePtx>>();
    const parts = {
      ...alone,
      parsePtx: (text: string) => {
        const module = parsed.get(text) ?? parsePtx(text);
        parsed.set(text, module);
        return module;
      },
      run: poolOf(emulator, pool),
    };
    const first = await recordLaunch(parts, easy, { seed: 0, checks: true });
    expect(await recordLaunch(parts, easy, { seed: 0, checks: true })).toEqual(first);
    expect(sent).toEqual([true, true, false, false]);
    expect(host.opened).toBe(2);
    pool.dispose();
    expect(host.ended).toBe(2);
  });

  test("is not asked for one thread, nor for a launch that is soon over", async () => {
    for (const options of [{ threads: 1, handover: atOnce }, { threads: 4 }]) {
      const host = new PretendedThreads();
      await withStandingClock(() => record(easy, new WorkerPool({ ...options, host })));
      expect(host.opened).toBe(0);
    }
  });

  test("is given up where a thread ends; the launch is not", async () => {
    const host = new PretendedThreads();
    let jobs = 0;
    host.onJob = () => (++jobs === 2 ? "ends" : undefined);
    const pool = new WorkerPool({ threads: 3, handover: atOnce, host });
    const expected = await recordLaunch(alone, easy, { seed: 3, checks: true });
    expect(await record(easy, pool)).toEqual(expected);
    expect([host.opened, host.ended]).toEqual([3, 3]);
    expect(await record(easy, pool)).toEqual(expected);
    expect(host.opened).toBe(3);
  });

  test("is given up where threads cannot be started", async () => {
    const host = new PretendedThreads();
    const openPort = (): never => {
      throw new Error("no threads here");
    };
    const pool = new WorkerPool({
      threads: 2,
      handover: atOnce,
      host: { ...host, processors: () => 2, openPort },
    });
    expect(await record(easy, pool)).toEqual(
      await recordLaunch(alone, easy, { seed: 3, checks: true }),
    );
  });

  test("is given up where threads find no file to load, as in the sources", async () => {
    expect(processors()).toBe(1);
    const pool = new WorkerPool({ threads: 2, handover: atOnce });
    expect(await record(easy, pool)).toEqual(
      await recordLaunch(alone, easy, { seed: 3, checks: true }),
    );
  });

  test("does without where there is no room for a copy of memory", async () => {
    const host = new PretendedThreads();
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
    const full = function (): never {
      throw new RangeError("Array buffer allocation failed");
    };
    vi.stubGlobal("SharedArrayBuffer", full);
    const shared = await record(easy, pool).finally(() => vi.unstubAllGlobals());
    expect(shared).toEqual(await recordLaunch(alone, easy, { seed: 3, checks: true }));
    expect(host.answers).toEqual([]);
  });

  test("does without what cannot travel", async () => {
    const host = new PretendedThreads();
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
    const run: EmulatorParts["run"] = (module, launch, memory, options) =>
      emulator.emulateWith(pool, module, launch, memory, {
        ...options,
        target: { ...options.target, note: () => "mine" } as typeof options.target,
      });
    expect(await recordLaunch({ ...alone, run }, easy, { seed: 3, checks: true })).toEqual(
      await recordLaunch(alone, easy, { seed: 3, checks: true }),
    );
    expect(host.answers).toEqual([]);
  });

  test("tries a program whose blocks got in each other's way no second time", async () => {
    const host = new PretendedThreads();
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
    const module = parsePtx(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u64 p)\n{ .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; mov.u32 %r, %ctaid.x; st.global.b32 [%d], %r; ret; }",
    );
    const memory = new EmulatedMemory();
    const address = memory.allocate(4);
    const parameters = [new Uint8Array(BigUint64Array.of(BigInt(address)).buffer)];
    const launch = {
      entry: "kernel",
      blocks: [8, 1, 1],
      threads: [1, 1, 1],
      sharedBytes: 0,
      parameters,
    } as const;
    for (let turn = 0; turn < 2; turn++) {
      await emulator.emulateWith(pool, module, launch, memory, {
        target: targets.sm_90a,
        checks: false,
      });
      expect(memory.read(address, 4)[0]).toBe(7);
      expect(host.answers.length).toBe(2);
    }
  });

  describe.each([easy, named("all blocks write")])(
    "leaves memory alone that was allocated in the meantime, $name",
    (launch) => {
      const size = 3 << 20;

      async function recordWithLate(
        host: PretendedThreads,
        allocateBy: (allocate: () => void) => void,
      ): Promise<void> {
        const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
        let late: number | undefined;
        let state: number | undefined;
        const run: EmulatorParts["run"] = async (module, shape, memory, options) => {
          allocateBy(() => (late ??= memory.allocate(size, "late")));
          try {
            return await emulator.emulateWith(pool, module, shape, memory, options);
          } finally {
            state = memory.views.states[(late ?? 0) - globalBase + size - 1];
          }
        };
        const expected = await recordLaunch(alone, launch, { seed: 3, checks: true });
        expect(await recordLaunch({ ...alone, run }, launch, { seed: 3, checks: true })).toEqual(
          expected,
        );
        expect(state).toBe(byteStates.unwritten);
      }

      test("before it was copied for threads", async () => {
        const host = new PretendedThreads();
        await recordWithLate(host, (allocate) => (host.onOpen = allocate));
        expect(host.answers.length).toBe(2);
      });

      test("while threads run", async () => {
        const host = new PretendedThreads();
        await recordWithLate(host, (allocate) => {
          host.onJob = () => {
            allocate();
            return undefined;
          };
        });
        expect(host.answers.length).toBe(2);
      });
    },
  );

  test("does not hide an access outside of memory by what is allocated in the meantime", async () => {
    const launch = named("an address outside of memory");
    /** Its buffers are large already. */
    class Roomy extends EmulatedMemory {
      constructor() {
        super();
        this.free(this.allocate(1 << 20));
      }
    }
    const roomy = { ...alone, EmulatedMemory: Roomy };
    const host = new PretendedThreads();
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
    const run: EmulatorParts["run"] = async (module, shape, memory, options) => {
      // The address lies 64 KiB behind an array, where these will lie.
      host.onOpen = () => {
        for (let each = 0; each < 4; each++) memory.allocate(64 << 10, "late");
      };
      return emulator.emulateWith(pool, module, shape, memory, options);
    };
    const expected = await recordLaunch(roomy, launch, { seed: 3, checks: true });
    expect(expected.thrown).toContain("TW8010");
    expect(await recordLaunch({ ...roomy, run }, launch, { seed: 3, checks: true })).toEqual(
      expected,
    );
  });

  test("may be disposed of while threads run, which leaves the launch to the calling one", async () => {
    const host = new PretendedThreads();
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
    host.onJob = () => {
      pool.dispose();
      return undefined;
    };
    expect(await record(easy, pool)).toEqual(
      await recordLaunch(alone, easy, { seed: 3, checks: true }),
    );
  });

  test("hires nobody once it was disposed of", async () => {
    const host = new PretendedThreads();
    const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
    const expected = await recordLaunch(alone, easy, { seed: 3, checks: true });
    expect(await record(easy, pool)).toEqual(expected);
    pool.dispose();
    expect(await record(easy, pool)).toEqual(expected);
    expect([host.opened, host.ended]).toEqual([2, 2]);
  });
});

describe("a launch of clusters that run by themselves", () => {
  test("depends on the seed", async () => {
    const seen = new Set<string>();
    for (let seed = 0; seed < 8; seed++) {
      const { findings } = await recordLaunch(alone, named("a race within"), {
        seed,
        checks: true,
      });
      seen.add(findings.join());
    }
    expect(seen.size).toBeGreaterThan(1);
  });
});
