/**
 * Rings of slots between a thread that fills them, by copies or by stores, and threads that use them, by loads or by copies, with barriers whose phases
 * are followed or told by parity. Any one of the things that hold it together can be missing or wrong.
 */
import {
  array,
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
  /** Filled by the copy engine, or by stores. */
  readonly copiesIn: boolean;
  /** Taken away by the copy engine, or by loads. */
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

function ringKernel(ring: Ring, fault: Fault | undefined): Program {
  const { slots, tiles, users, length, copiesIn, copiesOut, tellsParity, blocks, meets } = ring;
  const is = (name: Fault): boolean => fault === name;
  const names = Array.from({ length: users }, (_, user) => `user${user}`);
  const total = blocks * tiles;
  const more = is("a tile too many is filled") ? 1 : is("a tile too few is filled") ? -1 : 0;
  const released =
    users +
    (is("an arrival too many is expected of users") ? 1 : 0) -
    (is("an arrival too few is expected of users") ? 1 : 0);
  const count = is("a barrier is missing") ? slots - 1 : slots;
  const { kernel: traced } = kernel(
    {
      name: "ring",
      grid: { i: blocks },
      threads: ["filler", ...names],
      inputs: { x: array(f32, [(total + 1) * length]) },
      outputs: {
        ...Object.fromEntries(names.map((name) => [`${name}_out`, array(f32, [total * length])])),
        last: array(f32, [blocks, 1]),
      },
      scratch: {
        ring: smem(f32, [slots, length]),
        full: barrier({
          count,
          arrivals: is("an arrival too many is expected of the filler") ? 2 : 1,
        }),
        empty: barrier({ count, arrivals: released }),
        note: smem(f32, [1]),
      },
    } as never,
    (given: { readonly [name: string]: unknown }) => {
      const [i, x, buffer] = [
        given["i"] as Whole,
        given["x"] as Ref<"f32">,
        given["ring"] as Ref<"f32">,
      ];
      const [full, empty] = [given["full"] as Barrier, given["empty"] as Barrier];
      const [note, last] = [given["note"] as Ref<"f32">, given["last"] as Ref<"f32">];
      const on = (name: string, body: () => void): void =>
        (given[name] as (body: () => void) => void)(body);
      const at = (k: Whole): ReturnType<typeof slice> =>
        slice(i.mul(tiles).add(k).mul(length), length);
      const wait = (met: Barrier, slot: Whole, parity: Whole): void => {
        if (tellsParity) met.at(slot).wait({ parity });
        else met.at(slot).wait();
      };
      on("filler", () => {
        loop(tiles + more, (k) => {
          const slot = k.rem(slots);
          const turn = k.div(slots);
          if (!is("no empty slot is waited for")) {
            const parity = turn
              .add(is("an empty slot is waited for with the other parity") ? 0 : 1)
              .rem(2);
            if (tellsParity) wait(empty, slot, parity);
            else when(k.ge(slots), () => wait(empty, slot, parity));
          }
          if (copiesIn) copyAsync(x.at(at(k)), buffer.at(slot), { barrier: full.at(slot) });
          else {
            buffer.at(slot).store(x.at(at(k)).load());
            if (copiesOut && !is("filled without a commit")) commitShared();
            full.at(slot).arrive();
          }
        });
        if (meets) note.store(5);
      });
      names.forEach((name, user) => {
        on(name, () => {
          const own = is("users store to one place") ? "user0_out" : `${name}_out`;
          loop(tiles, (k) => {
            const slot = k.rem(slots);
            const parity = k
              .div(slots)
              .add(is("a full slot is waited for with the other parity") ? 1 : 0)
              .rem(2);
            if (is("released before it is used")) empty.at(slot).arrive();
            if (!is("no full slot is waited for")) wait(full, slot, parity);
            const read = is("the slot after is used") ? slot.add(1).rem(slots) : slot;
            const to = is("blocks store to one place") ? slice(k.mul(length), length) : at(k);
            const target = (given[own] as Ref<"f32">).at(to);
            const isLeftOut = is("an output is left out") && user === users - 1;
            if (copiesOut) {
              if (isLeftOut) when(k.ne(tiles - 1), () => copyAsync(buffer.at(read), target));
              else copyAsync(buffer.at(read), target);
              commitGroup();
              if (!is("a copy out is not waited for")) waitGroup();
            } else {
              const tile = buffer.at(read).load().add(user);
              if (isLeftOut) when(k.ne(tiles - 1), () => target.store(tile));
              else target.store(tile);
            }
            if (copiesIn && !copiesOut && !is("released without a commit")) commitShared();
            const releases = (): void => {
              if (!is("never released") && !is("released before it is used"))
                empty.at(slot).arrive();
            };
            if (tellsParity) releases();
            else when(k.lt(tiles - slots), releases);
          });
        });
      });
      if (!meets) {
        on("filler", () => last.at(i).store(1));
        return;
      }
      if (is("the filler does not meet the others")) when(threadIndex().ge(1), () => blockSync());
      else if (!is("threads do not meet")) blockSync();
      on("user0", () => last.at(i).store(note.load()));
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
