/**
 * Threads that are none: each does its job in a turn of the calling one, on a clone of the job as if it were elsewhere, and
 * gets an equal part of the clusters. What is shared is shared, so that all that can go wrong with memory can; and the order
 * is the test's:
 *
 *   last thread first, all in one turn       by default: whatever depends on the order shows
 *   in random order, some turns apart        by a generator: the host does something in between
 */
import { control } from "../../src/emulator/host-workers/job.ts";
import type { Answer, Job } from "../../src/emulator/host-workers/job.ts";
import { Worksite } from "../../src/emulator/host-workers/work.ts";
import type { ThreadHost } from "../../src/emulator/host-workers/worker-pool.ts";
import type { Random } from "../../src/support/random.ts";

/** Of the host, between two jobs in random order. */
const mostTurns = 3;

export class PretendedThreads implements ThreadHost {
  readonly answers: Answer[] = [];
  opened = 0;
  ended = 0;
  /** Called when a thread is hired, before memory is copied for it. */
  onOpen: () => void = () => undefined;
  /** Called before a job is done; may say that the thread ends instead. */
  onJob: (job: Job) => "ends" | undefined = () => undefined;
  readonly #random: Random | undefined;
  #waiting: (() => void)[] = [];

  constructor(random?: Random) {
    this.#random = random;
  }

  processors(): number {
    return 2;
  }

  readonly openPort: ThreadHost["openPort"] = ({ answered, ended }) => {
    this.onOpen();
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
        ended();
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
    if (this.#random === undefined) for (const job of jobs) job();
    else this.#workApart(jobs, this.#random);
  }

  #workApart(jobs: readonly (() => void)[], random: Random): void {
    const position = random.below(jobs.length);
    const job = jobs[position];
    if (job === undefined) return;
    let turns = random.below(mostTurns);
    const take = (): void => {
      if (turns-- > 0) {
        setImmediate(take);
        return;
      }
      job();
      this.#workApart(jobs.toSpliced(position, 1), random);
    };
    setImmediate(take);
  }
}
