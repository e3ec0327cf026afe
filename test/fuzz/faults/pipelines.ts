/**
 * Pipelines and specialized threads whose helpers say all that can be said for the body, and what is left to it: windows that come back, blocks that are
 * written in every step, results that are waited for, blocks that are released once they are read, places of threads and tiles that are their own.
 */
import {
  tensor,
  block,
  commitGlobal,
  f32,
  fromNumbers,
  gmem,
  i32,
  kernel,
  pipeline,
  semaphore,
  smem,
  storeThrough,
  tiles,
  waitGroup,
  warpSpecialized,
  when,
  zeros,
} from "../../../src/index.ts";
import type { KernelDefinition, Ref, Scalar, Semaphore, TileOptions } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { family, faultyOf } from "./family.ts";
import type { AnyFamily } from "./family.ts";

type Whole = Scalar<"i32">;

/** Steps of one thread that read a window, or a row by number, and write windows that may come back. */
function steps(random: Random): AnyFamily {
  const [count, size] = [4 + random.below(3), random.pick([16, 32])];
  const depth = 1 + random.below(3);
  const comesBack = random.below(2) === 0;
  const outputs = { depth: 1 + random.below(3) };
  return family({
    name: `${count} steps of ${size} elements, ${depth} ahead`,
    make: (is) =>
      kernel(
        {
          name: "steps",
          outputs: { back: tensor(f32, [size]) },
          inouts: { x: tensor(f32, [count, size]), out: tensor(f32, [count * size]) },
        },
        ({ x, out, back }) => {
          out.store(3);
          if (!is("memory is not committed")) commitGlobal();
          const row = (k: Whole): Whole => (is("a row too far is read") ? k.add(1) : k);
          pipeline(
            {
              grid: { k: count },
              inputs: { tile: ({ k }) => x.at(row(k)) },
              outputs: {
                result: {
                  at: ({ k }) => out.at(block(comesBack ? k.rem(2) : k, size)),
                  revisited: comesBack && !is("a window comes back without a word"),
                  ...outputs,
                },
              },
              depth,
            },
            ({ k, tile, result }) => {
              const store = (): void => result.store(tile.load().add(1));
              if (is("a step writes nothing")) when(k.ne(1), store);
              else store();
              if (is("what is copied is written")) x.at(k.add(1).rem(count)).store(1);
            },
          );
          if (!is("results are read at once")) waitGroup(0);
          back.store(out.at(block(comesBack ? (count - 1) % 2 : count - 1, size)).load());
        },
      ) as unknown as KernelDefinition,
    faults: {
      "memory is not committed": ["TW3001"],
      "a row too far is read": ["TW3005"],
      ...(comesBack && { "a window comes back without a word": ["TW3001"] }),
      ...(outputs.depth > 1 && { "a step writes nothing": ["TW3002"] }),
      "what is copied is written": ["TW3001"],
      "results are read at once": ["TW3001", "TW3009"],
    },
  });
}

/** How tiles are shared out. */
interface Sharing {
  readonly way: "dealt" | "counted" | "split";
  readonly count: number;
  readonly workers: number;
  readonly computing: number;
  /** Steps of a tile, and how many there is room for. */
  readonly length: number;
  readonly depth: number;
  /** Whether the body waits for blocks itself. */
  readonly manual: boolean;
}

const size = 16;

type Is = (fault: string) => boolean;

/** The sum of a tile's rows. */
function specializedBody(
  { way, count, length, depth, manual }: Sharing,
  is: Is,
  given: { readonly [name: string]: unknown },
): void {
  const [x, out, result] = ["x", "out", "result"].map((name) => given[name] as Ref<"f32">) as [
    Ref<"f32">,
    Ref<"f32">,
    Ref<"f32">,
  ];
  const split = { sums: given["sums"] as Ref, flags: given["told"] as Semaphore };
  const shared: TileOptions = {
    ...(way === "counted" && { counter: given["counter"] as Ref<"i32"> }),
    ...(way === "split" && { streamK: split }),
  };
  const early = is("released before it is read");
  warpSpecialized(
    {
      tiles: tiles({ t: count }, shared),
      grid: { k: length },
      inputs: { tile: { at: ({ t, k }) => x.at(t.mul(length).add(k)), manual } },
      depth,
    },
    ({ t, part, steps: run }) => {
      const own = is("threads store to one place") ? part.mul(0) : part;
      const whose = is("tiles store to one place") ? t.mul(0) : t;
      const buffer = is("threads share a buffer") ? part.mul(0) : part;
      const again = is("the steps are run twice") ? 2 : 1;
      for (let time = 0; time < again; time += 1)
        run(
          zeros(f32, [size]),
          ({ tile, k, wait, release }, sum) => {
            const gives = (): void => {
              release("tile");
            };
            if (manual && !is("never waited for")) wait("tile");
            if (manual && early) gives();
            const more = tile.load();
            if (manual && is("released in a branch")) when(k.ge(0), gives);
            else if (manual && !early) gives();
            return sum.add(more);
          },
          (total) => {
            storeThrough(result.at(buffer), total, out.at(whose, own), [0]);
          },
        );
    },
  );
}

/** Tiles of specialized threads, dealt, counted or split. */
function specialized(random: Random): AnyFamily {
  const [computing, workers] = [1 + random.below(2), 2 + random.below(2)];
  const way = random.pick(["dealt", "counted", "split"] as const);
  const count = way === "split" ? 1 : workers + 1 + random.below(3);
  const [length, depth] = [4 + random.below(3), 1 + random.below(3)];
  const manual = random.below(2) === 0;
  const sharing = { way, count, workers, computing, length, depth, manual };
  const parts = Math.ceil(length / Math.ceil(length / workers));
  const names = Array.from({ length: computing }, (_, part) => `compute${part}`);
  return family<string>({
    name: `${count} tiles ${way} over ${workers} blocks of ${computing} threads, ${depth} ahead`,
    make: (is) => {
      const handing = is("sums have room for one block too few") ? workers - 1 : workers;
      return kernel(
        {
          name: "warp_specialized",
          grid: { worker: workers },
          threads: ["copier", ...names],
          inputs: { x: tensor(f32, [count * length, size]) },
          outputs: { out: tensor(f32, [count, computing, size]) },
          inouts: { counter: tensor(i32, [1]) },
          scratch: {
            sums: gmem(f32, [handing, computing, size]),
            told: semaphore([workers, computing]),
            result: smem(f32, [computing, 1, size]),
          },
        } as never,
        (given: { readonly [name: string]: unknown }) => {
          specializedBody(sharing, is, given);
        },
      ) as unknown as KernelDefinition;
    },
    data: (is) => ({
      counter: fromNumbers(i32, [1], [is("the counter does not begin at 0") ? 1 : 0]),
    }),
    faults: {
      "the steps are run twice": ["TW1108"],
      ...(computing > 1 && {
        "threads store to one place": ["TW3001", "TW3020"],
        "threads share a buffer": ["TW3001"],
      }),
      ...(count > 1 && { "tiles store to one place": ["TW3001", "TW3020"] }),
      ...(manual && { "never waited for": ["TW1108"], "released in a branch": ["TW1108"] }),
      // Parts of split tiles may have no more steps than there is room for.
      ...(manual &&
        way !== "split" && { "released before it is read": ["TW3001", "TW3002", "TW3007"] }),
      ...(way === "counted" && { "the counter does not begin at 0": ["TW3020"] }),
      ...(parts === workers &&
        way === "split" && { "sums have room for one block too few": ["TW3005"] }),
    },
  });
}

export const pipelines = faultyOf([steps, specialized]);
