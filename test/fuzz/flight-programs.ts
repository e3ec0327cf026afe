/**
 * Random programs of products in flight: accumulators that are started, left running, carried through loops in any order,
 * or made tiles of, with left factors in shared memory and in registers, sparse ones among them, between branches
 * on numbers of the launch and loops of any kind. Tiles are of small whole numbers, so that sums are exact.
 *
 *   a = wgmma(zero, tile, b0)
 *   loop: c = wgmma(carry, b1) … t = min(t + x, 8) … waitPending(1) … yields carries in another order
 *   when(flag): p = wgmma(zero, t) … p.wait()
 *   out = a.wait()
 */
import {
  accumulator,
  tensor,
  bf16,
  commitShared,
  concatenate,
  dot,
  f32,
  full,
  i32,
  kernel,
  loop,
  roll,
  scalar,
  slice,
  smem,
  u16,
  wgmma,
  when,
  whileLoop,
} from "../../src/index.ts";
import type { Accumulator, Ref, Scalar, Tile } from "../../src/index.ts";
import type { Random } from "../../src/support/random.ts";
import { mostlySmall, polish, tame } from "./parts.ts";
import type { Program } from "./parts.ts";

/** An accumulator, and how many products were started behind its last one on every way here. */
interface Flight {
  sum: Accumulator<"f32">;
  behind: number;
}

/** What a program may use at a place. */
interface Surroundings {
  readonly flights: Flight[];
  /** Sums that have landed, [rows, columns]. */
  readonly sums: Tile<"f32">[];
  /** Left factors, [rows, depth]. */
  readonly factors: Tile<"bf16">[];
  readonly depth: number;
}

interface Sizes {
  readonly rows: number;
  readonly columns: number;
  readonly depth: number;
}

interface Memory {
  readonly left: Ref<"bf16">;
  readonly right: readonly Ref<"bf16">[];
  readonly wide: Ref<"bf16">;
  readonly aside: Ref<"f32">;
  readonly metadata: Tile<"u16">;
  readonly numbers: readonly Scalar<"i32">[];
}

/** Keeps sums exact through any number of products. */
function small(tile: Tile<"f32">): Tile<"f32"> {
  return tile.minimum(8).maximum(-8);
}

class FlightProgram {
  readonly #random: Random;
  readonly #sizes: Sizes;
  readonly #memory: Memory;
  #left: number;

  constructor(random: Random, sizes: Sizes, memory: Memory, statements: number) {
    this.#random = random;
    this.#sizes = sizes;
    this.#memory = memory;
    this.#left = statements;
  }

  statements(here: Surroundings): void {
    const some = 1 + this.#random.below(5);
    for (let each = 0; each < some && this.#left > 0; each += 1) this.#statement(here);
  }

  #statement(here: Surroundings): void {
    this.#left -= 1;
    const nested = here.depth < 2 ? [() => this.#loop(here), () => this.#branch(here)] : [];
    this.#random.pick([
      () => this.#start(here),
      () => this.#start(here),
      () => this.#land(here),
      () => this.#waitSome(here),
      () => this.#change(here),
      () => this.#exchange(here),
      () => this.#multiply(here),
      ...nested,
      ...nested,
    ])();
  }

  #flight(here: Surroundings): Flight {
    const { flights } = here;
    const isOld = flights.length >= 3 || (flights.length > 0 && this.#random.below(3) > 0);
    return isOld ? this.#random.pick(flights) : this.#begin(here);
  }

  #begin(here: Surroundings): Flight {
    const [random, { rows, columns }] = [this.#random, this.#sizes];
    const initial = random.below(2) === 0 ? undefined : random.pick(here.sums);
    const made = { sum: accumulator(f32, [rows, columns], initial), behind: Infinity };
    here.flights.push(made);
    return made;
  }

  #start(here: Surroundings): void {
    const [random, { left, right, wide, metadata }] = [this.#random, this.#memory];
    const flight = this.#flight(here);
    const factor = random.below(3) > 0 ? random.pick(here.factors) : left;
    const isSparse = random.below(4) === 0;
    flight.sum = isSparse
      ? wgmma(flight.sum, factor, wide, { sparse: metadata })
      : wgmma(flight.sum, factor, random.pick(right));
    for (const each of here.flights) each.behind += 1;
    flight.behind = 0;
  }

  #land(here: Surroundings): void {
    const at = this.#random.below(Math.max(1, here.flights.length));
    const [flight] = here.flights.splice(at, 1);
    if (flight === undefined) return;
    const pending = Math.min(flight.behind, this.#random.below(3));
    const landed = small(flight.sum.wait({ pending }));
    // Some sums are of no use to anybody.
    if (this.#random.below(6) > 0) here.sums.push(landed);
    settle(here, pending);
  }

  /** Waits for all accumulators but the first ones. */
  #landAllBut(kept: number, here: Surroundings): void {
    while (here.flights.length > kept) {
      const [last] = here.flights.splice(-1);
      if (last !== undefined) here.sums.push(small(last.sum.wait()));
      settle(here, 0);
    }
  }

  #waitSome(here: Surroundings): void {
    if (here.flights.length === 0) return;
    const flight = this.#random.pick(here.flights);
    const pending = 1 + this.#random.below(2);
    flight.sum = flight.sum.waitPending(pending);
    settle(here, pending);
  }

  #change(here: Surroundings): void {
    const random = this.#random;
    if (random.below(2) === 0) {
      here.sums.push(small(polish(random.pick(here.sums).add(random.pick(here.sums)), random)));
      return;
    }
    const factor = random.pick(here.factors);
    const steps: readonly (() => Tile<"bf16">)[] = [
      () => factor.add(random.pick(here.sums).max({ axis: 1, keepDims: true }).cast(bf16)),
      () => factor.gt(0).select(factor, random.pick(here.factors)),
      () => roll(factor, 1 + random.below(3), { axis: random.below(2) }),
      () => factor.sort({ axis: 1 }),
      () =>
        concatenate([factor, factor], { axis: 1 }).slice(
          [0, 1],
          [this.#sizes.rows, this.#sizes.depth],
        ),
    ];
    here.factors.push(random.pick(steps)().minimum(8).maximum(-8));
  }

  /** Through shared memory, with barriers of the lanes. */
  #exchange(here: Surroundings): void {
    const { aside } = this.#memory;
    aside.store(this.#random.pick(here.sums).transpose());
    here.sums.push(aside.load().transpose());
  }

  /** A product that is over at once. */
  #multiply(here: Surroundings): void {
    const { right } = this.#memory;
    here.sums.push(small(dot(this.#random.pick(here.factors), this.#random.pick(right).load())));
  }

  #loop(here: Surroundings): void {
    const random = this.#random;
    const carried = here.flights.splice(0, random.below(here.flights.length + 1));
    const tiles = [random.pick(here.sums), random.pick(here.sums)] as const;
    const factor = random.pick(here.factors);
    const turn = random.below(2);
    const carry = { sums: carried.map(({ sum }) => sum), tiles, factor, count: this.#count(0) };
    const body = (given: typeof carry): typeof carry => {
      const inside: Surroundings = {
        flights: given.sums.map((sum) => ({ sum, behind: 0 })),
        sums: [...given.tiles, ...here.sums.slice(-1)],
        factors: [given.factor, ...here.factors.slice(-1)],
        depth: here.depth + 1,
      };
      this.statements(inside);
      this.#landAllBut(carried.length, inside);
      while (inside.flights.length < carried.length) this.#begin(inside);
      const sums = inside.flights.map(({ sum }) => sum);
      if (turn === 1) sums.reverse();
      const [first, second] = [random.pick(inside.sums), random.pick(inside.sums)];
      return {
        sums,
        tiles: [first, second],
        factor: random.pick(inside.factors),
        count: given.count.add(1),
      };
    };
    const rounds = this.#count(random.below(4));
    const result =
      random.below(4) === 0
        ? whileLoop(carry, ({ count }) => count.lt(rounds), body)
        : loop({ to: rounds, carry }, (_, given) => body(given));
    // Others may have been started in as many rounds as there were, or in none.
    here.flights.push(...result.sums.map((sum) => ({ sum, behind: 0 })));
    here.sums.push(...result.tiles);
    here.factors.push(result.factor);
  }

  /** A number that the compiler knows, or one of the launch. */
  #count(number: number): Scalar<"i32"> {
    const [random, { numbers }] = [this.#random, this.#memory];
    const [zero] = numbers;
    if (zero === undefined) throw new Error("a kernel of numbers");
    return random.below(2) === 0 && number > 0 ? random.pick(numbers) : zero.mul(0).add(number);
  }

  #branch(here: Surroundings): void {
    const random = this.#random;
    const condition = random.pick(this.#memory.numbers).gt(random.below(3));
    const way = (): { sum: Tile<"f32">; factor: Tile<"bf16"> } => {
      const inside = { ...here, flights: [], depth: here.depth + 1 };
      const copied = { ...inside, sums: [...here.sums], factors: [...here.factors] };
      this.statements(copied);
      this.#landAllBut(0, copied);
      return { sum: random.pick(copied.sums), factor: random.pick(copied.factors) };
    };
    const { sum, factor } = when(condition, way, way);
    here.sums.push(sum);
    here.factors.push(factor);
  }
}

function settle({ flights }: Surroundings, pending: number): void {
  for (const each of flights) if (each.behind >= pending) each.behind = Infinity;
}

/** Products in flight, by one thread. */
function flights(random: Random): Program {
  const rows = mostlySmall([64, 128], random);
  const columns = mostlySmall([8, 16, 24, 64], random);
  const depth = mostlySmall([32, 64], random);
  const statements = 4 + random.below(16);
  const shape = [rows, columns];
  const { kernel: traced } = kernel(
    {
      name: "flights",
      inputs: {
        x: tensor(bf16, [rows, depth]),
        y: tensor(bf16, [3, depth, columns]),
        z: tensor(f32, shape),
        first: scalar(i32),
        second: scalar(i32),
      },
      outputs: { out: tensor(f32, [3, ...shape]), factor: tensor(f32, [rows, depth]) },
      scratch: {
        left: smem(bf16, [rows, depth]),
        right: smem(bf16, [depth, columns]),
        wide: smem(bf16, [2 * depth, columns]),
        aside: smem(f32, [columns, rows]),
      },
    },
    ({ x, y, z, first, second, out, factor, left, right, wide, aside }) => {
      const loaded = tame(x.load(), random).cast(bf16);
      left.store(loaded);
      right.store(tame(y.at(0).load(), random).cast(bf16));
      wide.store(
        tame(
          y
            .at(slice(1, 2))
            .load()
            .reshape([2 * depth, columns]),
          random,
        ).cast(bf16),
      );
      commitShared();
      const metadata = full(u16, [rows, depth / 8], random.pick([0x4444, 0xeeee, 0x4e94]));
      const numbers = [first, second] as const;
      const memory = { left, right: [right], wide, aside, metadata, numbers };
      const program = new FlightProgram(random, { rows, columns, depth }, memory, statements);
      const here: Surroundings = {
        flights: [],
        sums: [tame(z.load(), random)],
        factors: [loaded],
        depth: 0,
      };
      for (let more = 0; more < 3; more += 1) program.statements(here);
      const landed = here.flights.map(({ sum }) => small(sum.wait()));
      const results = [...landed, ...here.sums.toReversed()].slice(0, 3);
      results.forEach((tile, at) => out.at(at).store(tile));
      for (let at = results.length; at < 3; at += 1) out.at(at).store(full(f32, shape, 0));
      const [last = loaded] = here.factors.toReversed();
      factor.store(last.cast(f32));
    },
  );
  return { kernel: traced, dimensions: {}, targets: ["sm_90a"] };
}

export const flightPrograms = { flights };
