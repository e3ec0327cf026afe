/**
 * Rings of slots between a thread that fills them, by copies or by stores, and threads that use them, by loads or by copies, with barriers whose phases
 * are followed or told by parity. Any one of the things that hold it together can be missing or wrong.
 */
import {
  tensor,
  barrier,
  blockSync,
  commitGroup,
  commitShared,
  copyAsync,
  f32,
  fromNumbers,
  kernel,
  loop,
  slice,
  smem,
  threadIndex,
  waitGroup,
  when,
} from "../../../src/index.ts";
import type { Barrier, Ref, Scalar } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import type { Program } from "../parts.ts";
import type { Faulty } from "./faulty.ts";

type Whole = Scalar<"i32">;

/** How a ring is drawn. */
interface Ring {
  readonly slots: number;
  readonly tiles: number;
  readonly users: number;
  readonly length: number;
  /** Filled by TMA, or by stores. */
  readonly copiesIn: boolean;
  /** Taken away by TMA, or by loads. */
  readonly copiesOut: boolean;
  readonly tellsParity: boolean;
  /** A block for each part of the array. */
  readonly blocks: number;
  readonly meets: boolean;
}

const raced = ["TW3001"];
// Who waits for a parity and comes too late waits for ever.
const late = ["TW3001", "TW3002", "TW3007", "TW3011"];
const stuck = ["TW3011"];

/** The faults of rings, which of them can have each, and what is told of it. */
const faults: {
  readonly [name: string]: {
    readonly told: readonly string[];
    readonly when?: (ring: Ring) => boolean;
    readonly trapped?: readonly string[];
  };
} = {
  "no full slot is waited for": { told: [...late, "TW3008", "TW3009"] },
  "no empty slot is waited for": { told: late, when: ({ slots, tiles }) => tiles > slots },
  "never released": { told: stuck, when: ({ slots, tiles }) => tiles > slots, trapped: ["TW8020"] },
  "released before it is used": {
    told: late,
    when: ({ slots, tiles }) => tiles > slots,
  },
  "released without a commit": {
    told: raced,
    when: ({ slots, tiles, copiesIn, copiesOut }) => tiles > slots && copiesIn && !copiesOut,
  },
  "filled without a commit": {
    told: raced,
    when: ({ copiesIn, copiesOut }) => !copiesIn && copiesOut,
  },
  "an arrival too many is expected of the filler": { told: stuck, trapped: ["TW8020"] },
  "an arrival too many is expected of users": {
    told: stuck,
    when: ({ slots, tiles }) => tiles > slots,
    trapped: ["TW8020"],
  },
  "an arrival too few is expected of users": {
    told: [...late, "TW3008"],
    when: ({ slots, tiles, users }) => tiles > slots && users > 1,
  },
  "a full slot is waited for with the other parity": {
    told: [...late, "TW3008", "TW3009"],
    when: ({ tellsParity }) => tellsParity,
  },
  "an empty slot is waited for with the other parity": {
    told: [...late, "TW3008"],
    when: ({ tellsParity }) => tellsParity,
  },
  "the slot after is used": { told: late, when: ({ slots }) => slots > 1 },
  "a barrier is missing": {
    told: ["TW3006"],
    trapped: ["TW8016"],
    when: ({ slots, tiles }) => slots > 1 && tiles >= slots,
  },
  "a tile too few is filled": { told: stuck, trapped: ["TW8020"] },
  "a tile too many is filled": {
    told: ["TW3008", "TW3009", ...stuck],
    // One phase that stores have completed may be left over.
    when: ({ slots, tiles, copiesIn, tellsParity }) => copiesIn || (!tellsParity && tiles >= slots),
  },
  "users store to one place": { told: raced, when: ({ users }) => users > 1 },
  "blocks store to one place": { told: raced, when: ({ blocks }) => blocks > 1 },
  "an output is left out": { told: ["TW3020"] },
  "a copy out is not waited for": {
    told: ["TW3009", ...raced],
    when: ({ copiesOut }) => copiesOut,
  },
  // On hardware, and on the emulator, threads that have ended are not waited for.
  "the filler does not meet the others": { told: stuck, when: ({ meets }) => meets },
  "threads do not meet": { told: [...raced, "TW3002"], when: ({ meets }) => meets },
};

type Fault = keyof typeof faults;

/** A ring as it is traced, with a fault or without. */
class TracedRing {
  readonly #ring: Ring;
  readonly #fault: Fault | undefined;
  readonly #given: { readonly [name: string]: unknown };

  constructor(ring: Ring, fault: Fault | undefined, given: { readonly [name: string]: unknown }) {
    this.#ring = ring;
    this.#fault = fault;
    this.#given = given;
  }

  #is(name: Fault): boolean {
    return this.#fault === name;
  }

  #ref(name: string): Ref<"f32"> {
    return this.#given[name] as Ref<"f32">;
  }

  #barrier(name: "full" | "empty", slot: Whole): Barrier {
    return (this.#given[name] as Barrier).at(slot);
  }

  /** The elements of a tile in an array. */
  #tile(k: Whole): Whole {
    return (this.#given["i"] as Whole).mul(this.#ring.tiles).add(k);
  }

  #wait(name: "full" | "empty", slot: Whole, parity: Whole): void {
    this.#barrier(name, slot).wait(this.#ring.tellsParity ? { parity } : {});
  }

  fill(): void {
    const { slots, tiles, tellsParity, copiesIn, copiesOut, length, meets } = this.#ring;
    const more = this.#is("a tile too many is filled")
      ? 1
      : this.#is("a tile too few is filled")
        ? -1
        : 0;
    loop(tiles + more, (k) => {
      const slot = k.rem(slots);
      const turn = this.#is("an empty slot is waited for with the other parity") ? 0 : 1;
      const waits = (): void => {
        this.#wait("empty", slot, k.div(slots).add(turn).rem(2));
      };
      if (!this.#is("no empty slot is waited for"))
        if (tellsParity) waits();
        else when(k.ge(slots), waits);
      const from = this.#ref("x").at(slice(this.#tile(k).mul(length), length));
      const buffer = this.#ref("ring").at(slot);
      if (copiesIn) copyAsync(from, buffer, { barrier: this.#barrier("full", slot) });
      else {
        buffer.store(from.load());
        if (copiesOut && !this.#is("filled without a commit")) commitShared();
        this.#barrier("full", slot).arrive();
      }
    });
    if (meets) this.#ref("note").store(5);
  }

  use(user: number): void {
    const { slots, tiles, users, tellsParity, copiesIn, copiesOut } = this.#ring;
    const early = this.#is("released before it is used");
    loop(tiles, (k) => {
      const slot = k.rem(slots);
      const turn = this.#is("a full slot is waited for with the other parity") ? 1 : 0;
      if (early) this.#barrier("empty", slot).arrive();
      if (!this.#is("no full slot is waited for"))
        this.#wait("full", slot, k.div(slots).add(turn).rem(2));
      const read = this.#is("the slot after is used") ? slot.add(1).rem(slots) : slot;
      const takes = (): void => {
        this.#take(k, read, user);
      };
      if (this.#is("an output is left out") && user === users - 1) when(k.ne(tiles - 1), takes);
      else takes();
      if (copiesOut) {
        commitGroup();
        if (!this.#is("a copy out is not waited for")) waitGroup();
      }
      if (copiesIn && !copiesOut && !this.#is("released without a commit")) commitShared();
      const releases = (): void => {
        if (!this.#is("never released") && !early) this.#barrier("empty", slot).arrive();
      };
      if (tellsParity) releases();
      else when(k.lt(tiles - slots), releases);
    });
  }

  /** Brings what is in a slot to the user's output. */
  #take(k: Whole, slot: Whole, user: number): void {
    const { copiesOut, length } = this.#ring;
    const own = this.#is("users store to one place") ? 0 : user;
    const tile = this.#is("blocks store to one place") ? k : this.#tile(k);
    const target = this.#ref(`user${own}_out`).at(slice(tile.mul(length), length));
    const buffer = this.#ref("ring").at(slot);
    if (copiesOut) copyAsync(buffer, target);
    else target.store(buffer.load().add(user));
  }

  meet(): void {
    if (this.#is("the filler does not meet the others"))
      when(threadIndex().ge(1), () => blockSync());
    else if (!this.#is("threads do not meet")) blockSync();
  }

  end(): void {
    const last = this.#ref("last").at(this.#given["i"] as Whole);
    last.store(this.#ring.meets ? this.#ref("note").load() : 1);
  }
}

function ringKernel(ring: Ring, fault: Fault | undefined): Program {
  const { slots, tiles, users, length, blocks, meets } = ring;
  const is = (name: Fault): boolean => fault === name;
  const names = Array.from({ length: users }, (_, user) => `user${user}`);
  const total = blocks * tiles;
  const released =
    users +
    (is("an arrival too many is expected of users") ? 1 : 0) -
    (is("an arrival too few is expected of users") ? 1 : 0);
  const filled = is("an arrival too many is expected of the filler") ? 2 : 1;
  const count = is("a barrier is missing") ? slots - 1 : slots;
  const outputs = names.map((name) => [`${name}_out`, tensor(f32, [total * length])] as const);
  const { kernel: traced } = kernel(
    {
      name: "ring",
      grid: { i: blocks },
      threads: ["filler", ...names],
      inputs: { x: tensor(f32, [(total + 1) * length]) },
      outputs: { ...Object.fromEntries(outputs), last: tensor(f32, [blocks, 1]) },
      scratch: {
        ring: smem(f32, [slots, length]),
        full: barrier({ count, arrivals: filled }),
        empty: barrier({ count, arrivals: released }),
        note: smem(f32, [1]),
      },
    } as never,
    (given: { readonly [name: string]: unknown }) => {
      const on = (name: string, body: () => void): void => {
        (given[name] as (body: () => void) => void)(body);
      };
      const made = new TracedRing(ring, fault, given);
      on("filler", () => {
        made.fill();
      });
      names.forEach((name, user) => {
        on(name, () => {
          made.use(user);
        });
      });
      if (meets) made.meet();
      on("user0", () => {
        made.end();
      });
    },
  );
  const numbers = Array.from({ length: (total + 1) * length }, (_, each) => each % 251);
  return {
    kernel: traced,
    dimensions: {},
    data: { x: fromNumbers(f32, [(total + 1) * length], numbers) },
  };
}

export function rings(random: Random): Faulty {
  const ring: Ring = {
    slots: 1 + random.below(4),
    tiles: 2 + random.below(6),
    users: 1 + random.below(3),
    length: random.pick([4, 16, 32, 64]),
    copiesIn: random.below(2) === 0,
    copiesOut: random.below(3) === 0,
    tellsParity: random.below(2) === 0,
    blocks: 1 + random.below(2),
    meets: random.below(2) === 0,
  };
  const possible = Object.entries(faults).filter(([, { when: fits }]) => fits?.(ring) !== false);
  const [fault, { told, trapped }] = random.pick(possible);
  return {
    name: `${fault}: ${JSON.stringify(ring)}`,
    right: ringKernel(ring, undefined),
    wrong: () => ringKernel(ring, fault),
    told,
    ...(trapped !== undefined && { trapped }),
  };
}
