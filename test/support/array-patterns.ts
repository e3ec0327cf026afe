/**
 * Random lives of arrays: made, computed from each other, read at once or never, donated, disposed of, forgotten, and used when they are
 * gone, by compiled functions that come and go, with runs that fail between. A model beside them says what each read gives or
 * by which code it is refused, so that whatever is freed too early is found; what is freed too late is found by the device's account.
 */
import { deepEqual, equal } from "node:assert/strict";
import * as T from "../../src/arrays/index.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import type { Random } from "../../src/support/random.ts";

type F32 = T.NDArray<"f32">;

/** What is known of an array. */
interface Life {
  readonly array: F32;
  readonly values: readonly number[];
  /** What it is computed from as long as it is pending. */
  readonly from: readonly Life[];
  isMade: boolean;
  isUnusable: boolean;
}

const length = 4;
const mostAlive = 12;
/** Whole numbers that stay exact. */
const bound = 1000;

const kept = (x: number): number => Math.min(bound, Math.max(-bound, x)) + 0;
/** What was read, with one zero. */
const read = async (x: F32): Promise<readonly number[]> =>
  ((await x.values()) as readonly number[]).map((each) => each + 0);
const clipped = (x: F32): F32 => T.clip(x, -bound, bound);

/** The code that an action is refused by; "" where it is not. */
async function codeOf(action: () => unknown): Promise<string> {
  try {
    await action();
    return "";
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
}

/** Whether everything that a pending array is computed from is there: what is made by its memory, what is not by its own parts. */
function isComputable({ isMade, isUnusable, from }: Life): boolean {
  return isMade ? !isUnusable : from.every(isComputable);
}

export class ArrayPatterns {
  readonly #random: Random;
  #alive: Life[] = [];
  readonly #add = T.jit((x: F32, y: F32) => clipped(T.add(x, y)));
  readonly #shift = T.jit((x: F32, by: number) => clipped(T.add(x, by)), { cacheSize: 3 });
  readonly #take = T.jit((x: F32, y: F32) => [clipped(T.sub(x, y)), T.neg(x)] as const, {
    donate: [0],
  });

  constructor(random: Random) {
    this.#random = random;
  }

  /** One random action, with whatever it gives checked. */
  async step(): Promise<void> {
    const actions = [
      () => this.#make(),
      () => this.#pend(),
      () => this.#pend(),
      () => this.#read(this.#pick()),
      () => this.#read(this.#pick()),
      () => this.#call(),
      () => this.#shiftBy(),
      () => this.#donate(),
      () => this.#slope(),
      () => this.#dispose(),
      () => this.#dispose(),
      () => this.#forget(),
      () => this.#fail(),
      () => this.#overtake(),
    ];
    await actions[this.#random.below(actions.length)]?.();
    if (this.#alive.length > mostAlive) await this.#dispose();
  }

  /** Disposes of what is left. */
  end(): void {
    for (const { array } of this.#alive) array.dispose();
    this.#alive = [];
  }

  #keep(array: F32, values: readonly number[], from: readonly Life[] = []): Life {
    const life = {
      array,
      values: values.map(kept),
      from,
      isMade: from.length === 0,
      isUnusable: false,
    };
    this.#alive.push(life);
    return life;
  }

  #pick(): Life {
    const found = this.#alive[this.#random.below(Math.max(1, this.#alive.length))];
    return found ?? this.#make();
  }

  #make(): Life {
    const values = Array.from({ length }, () => this.#random.below(7) - 3);
    return this.#keep(T.array(values), values);
  }

  #number(): number {
    return this.#random.below(9) - 4;
  }

  /** Records, and computes nothing; what was gone before cannot be recorded from. */
  async #pend(): Promise<void> {
    const [x, y, by] = [this.#pick(), this.#pick(), this.#number()];
    const isRefused = x.isUnusable || y.isUnusable;
    const record = (): void => {
      const array = clipped(T.add(T.mul(x.array, by), y.array));
      this.#keep(
        array,
        x.values.map((each, i) => each * by + (y.values[i] ?? NaN)),
        [x, y],
      );
    };
    equal(await codeOf(record), isRefused ? "TW9314" : "");
  }

  async #read(life: Life): Promise<void> {
    const isThere = !life.isUnusable && isComputable(life);
    let found: unknown;
    const code = await codeOf(async () => {
      found = await read(life.array);
    });
    equal(code, isThere ? "" : "TW9314");
    if (!isThere) return;
    deepEqual(found, life.values);
    life.isMade = true;
  }

  /** Runs what gives results of arrays, all of which it needs. */
  async #run(inputs: readonly Life[], run: () => void): Promise<boolean> {
    const isThere = inputs.every((each) => !each.isUnusable && isComputable(each));
    equal(await codeOf(run), isThere ? "" : "TW9314");
    if (isThere) for (const each of inputs) each.isMade = true;
    return isThere;
  }

  async #call(): Promise<void> {
    const [x, y] = [this.#pick(), this.#pick()];
    await this.#run([x, y], () => {
      this.#keep(
        this.#add(x.array, y.array),
        x.values.map((each, i) => each + (y.values[i] ?? NaN)),
      );
    });
  }

  /** By a number that is static, in a function that is kept or one that nobody reaches afterwards. */
  async #shiftBy(): Promise<void> {
    const [x, by] = [this.#pick(), this.#number()];
    const f = this.#random.below(3) === 0 ? T.jit((y: F32) => clipped(T.add(y, by))) : undefined;
    await this.#run([x], () => {
      this.#keep(
        f === undefined ? this.#shift(x.array, by) : f(x.array),
        x.values.map((each) => each + by),
      );
    });
  }

  async #donate(): Promise<void> {
    const [x, y] = [this.#pick(), this.#pick()];
    if (x === y) {
      equal(await codeOf(() => this.#take(x.array, y.array)), x.isUnusable ? "TW9314" : "TW9317");
      return;
    }
    const isDone = await this.#run([x, y], () => {
      const [difference, negative] = this.#take(x.array, y.array);
      this.#keep(
        difference,
        x.values.map((each, i) => each - (y.values[i] ?? NaN)),
      );
      this.#keep(
        negative,
        x.values.map((each) => -each),
      );
    });
    x.isUnusable ||= isDone;
  }

  /** A gradient outside of compiled functions. */
  async #slope(): Promise<void> {
    const x = this.#pick();
    const isThere = !x.isUnusable && isComputable(x);
    let found: unknown;
    const code = await codeOf(async () => {
      const slope = T.grad((y: F32) => T.sum(T.mul(y, y)))(x.array);
      found = await read(slope);
      if (this.#random.below(2) === 0) slope.dispose();
    });
    equal(code, isThere ? "" : "TW9314");
    if (isThere)
      deepEqual(
        found,
        x.values.map((each) => 2 * each + 0),
      );
  }

  async #dispose(): Promise<void> {
    const life = this.#pick();
    life.array.dispose();
    life.isUnusable = true;
    // It may be met again, as what is gone.
    if (this.#random.below(3) > 0) await this.#forget(life);
  }

  #forget(life = this.#pick()): Promise<void> {
    this.#alive = this.#alive.filter((each) => each !== life);
    return Promise.resolve();
  }

  /** Runs that fail: while they are recorded, before they begin, and by a limit. */
  async #fail(): Promise<void> {
    const x = this.#make();
    const wrong = T.jit((y: F32) => T.add(y, T.array([1, 2])), { donate: [0] });
    equal(await codeOf(() => wrong(x.array)), "TW9304");
    equal(await codeOf(() => T.add(x.array, 1).read({ signal: AbortSignal.abort() })), "TW3022");
    const limited = T.jit(
      (y: F32) => T.cumsum(T.exp(T.matmul(T.reshape(y, [2, 2]), T.reshape(y, [2, 2])))),
      {
        stepLimit: 1,
        donate: [0],
      },
    );
    // Its only step may be all there is; either way the argument is gone.
    const given = this.#make();
    await codeOf(() => limited(given.array).read());
    given.isUnusable = true;
    await this.#read(x);
  }

  /** Disposes of arrays while reads of them are under way. */
  async #overtake(): Promise<void> {
    const life = this.#pick();
    if (life.isUnusable || !isComputable(life)) return;
    const later = this.#add(life.array, life.array);
    const reads = [read(life.array), read(later)];
    life.array.dispose();
    later.dispose();
    life.isUnusable = true;
    life.isMade = true;
    deepEqual(await Promise.all(reads), [life.values, life.values.map((each) => kept(2 * each))]);
  }
}
