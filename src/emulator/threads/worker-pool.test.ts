import { describe, expect, test, vi } from "vitest";
import { poolOf, dividedLaunches, recordLaunch } from "../../../test/support/divided-launches.ts";
import type {
  DividedLaunch,
  EmulatorParts,
  LaunchRecord,
} from "../../../test/support/divided-launches.ts";
import { withStandingClock } from "../../../test/support/clocks.ts";
import * as emulator from "../index.ts";
import { targets } from "../../targets/target.ts";
import { globalBase } from "../addresses.ts";
import { byteStates } from "../memory.ts";
import { parsePtx } from "../../ptx/parser/index.ts";
import { WorkerPool } from "./worker-pool.ts";
import type { ThreadHost } from "./worker-pool.ts";
import { control } from "./job.ts";
import type { Answer, Job } from "./job.ts";
import { processors } from "./node.ts";
import { Worksite } from "./work.ts";

const { EmulatedMemory } = emulator;
const atOnce = { patience: 0, gain: 0 };
const alone = { EmulatedMemory, parsePtx, run: emulator.emulate };

/**
 * Threads that are none: each does its job in a turn of this one, on clones as if it were elsewhere. Each gets an
 * equal part of the clusters, and the last ones come first, so that whatever depends on the order shows.
 */
class Pretended implements ThreadHost {
  readonly answers: Answer[] = [];
  opened = 0;
  ended = 0;
  /** Called before a job is done; may say that the thread ends instead. */
  onJob: (job: Job) => "ends" | undefined = () => undefined;
  #waiting: (() => void)[] = [];

  processors(): number {
    return 2;
  }

  readonly openPort: ThreadHost["openPort"] = ({ answered, ended }) => {
    const site = new Worksite();
    const position = this.opened++;
    return {
      post: (job) => {
        const received = structuredClone(job);
        if (this.#waiting.length === 0) setTimeout(() => this.#work());
        this.#waiting.push(() => {
          if (this.onJob(received) === "ends") {
            ended();
            return;
          }
          const answer = site.do(this.#part(received, position));
          this.answers.push(answer);
          answered(answer);
        });
      },
      hold: () => undefined,
      end: () => {
        this.ended += 1;
      },
    };
  };

  #part(job: Job, position: number): Job {
    const first = new Int32Array(job.control)[control.next] ?? 0;
    const share = Math.ceil((job.end - first) / this.opened);
    const own = new Int32Array(new SharedArrayBuffer(4 * control.words));
    own[control.next] = first + position * share;
    return { ...job, control: own.buffer, end: Math.min(job.end, first + (position + 1) * share) };
  }

  #work(): void {
    const jobs = this.#waiting.reverse();
    this.#waiting = [];
    for (const job of jobs) job();
  }
}

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
      const host = new Pretended();
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
    const host = new Pretended();
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
      const host = new Pretended();
      await withStandingClock(() => record(easy, new WorkerPool({ ...options, host })));
      expect(host.opened).toBe(0);
    }
  });

  test("is given up where a thread ends; the launch is not", async () => {
    const host = new Pretended();
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
    const host = new Pretended();
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
    const host = new Pretended();
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
    const host = new Pretended();
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
    const host = new Pretended();
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
      lanes: [1, 1, 1],
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

  test("leaves memory that was allocated in the meantime alone, taken back or not", async () => {
    for (const launch of [easy, named("all blocks write")]) {
      const host = new Pretended();
      const pool = new WorkerPool({ threads: 2, handover: atOnce, host });
      let last = 0;
      const run: EmulatorParts["run"] = async (module, shape, memory, options) => {
        let late: number | undefined;
        host.onJob = () => {
          late ??= memory.allocate(3 << 20, "late");
          return undefined;
        };
        try {
          return await emulator.emulateWith(pool, module, shape, memory, options);
        } finally {
          last = memory.views.states[(late ?? 0) - globalBase + (3 << 20) - 1] ?? 0;
        }
      };
      const expected = await recordLaunch(alone, launch, { seed: 3, checks: true });
      expect(await recordLaunch({ ...alone, run }, launch, { seed: 3, checks: true })).toEqual(
        expected,
      );
      expect(last).toBe(byteStates.unwritten);
    }
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
