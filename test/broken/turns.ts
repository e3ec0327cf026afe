/** Two consumers that take turns, as `turns` of the language makes it: what one writes in its turn the other reads in its own. */
import { tensor, barrier, f32, fromNumbers, kernel, loop, smem, pingPong } from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";
import type { Expectation } from "./family.ts";

const [rounds, length] = [4, 16];

type Mistake =
  | "a turn is not taken"
  | "a turn is not given"
  | "a turn is given twice"
  | "given before the work"
  | "both begin"
  | "nobody begins"
  | "one round more";

const make = (mistake?: Mistake): KernelDefinition =>
  kernel(
    {
      name: "turns",
      threads: ["first", "second"],
      inputs: { x: tensor(f32, [length]) },
      outputs: { y: tensor(f32, [2, length]) },
      scratch: { shared: smem(f32, [length]), own: barrier({ count: 2 }) }, // <- unheard
    },
    ({ x, y, shared, own, first, second }) => {
      [first, second].forEach((consumer, part) => {
        consumer(() => {
          const wrong = (name: Mistake): boolean => mistake === name && part === 1;
          const said = mistake === "both begin" ? 0 : mistake === "nobody begins" ? 1 : part;
          const turn = pingPong({ barriers: own, part: said, count: 2 });
          const again = mistake === "one round more" && part === 1 ? rounds + 1 : rounds;
          loop({ to: again, carry: turn.start() }, (_, state) => {
            if (!wrong("a turn is not taken")) turn.wait(state); // <- takes and gives; takes and gives twice
            const given = wrong("given before the work") ? turn.arrive(state) : undefined;
            shared.store(x.load().add(part)); // <- works
            y.at(part).store(shared.load());
            if (given !== undefined) return given;
            if (wrong("a turn is not given")) return state;
            if (wrong("a turn is given twice")) turn.arrive(state); // <- takes and gives twice
            return turn.arrive(state); // <- takes and gives; takes and gives twice; unheard
          });
        });
      });
    },
  );

/** What both write in what should be their own turn. */
const race: Expectation = { code: "TW3001", at: "works" };
const stuck: Expectation = { code: "TW3011", at: "takes and gives" };

export const takingTurns = family<Mistake>({
  name: "consumers that take turns",
  url: import.meta.url,
  make,
  inputs: { x: fromNumbers(f32, [length], new Float64Array(length).fill(1)) },
  mistakes: {
    "a turn is not taken": race,
    "a turn is not given": stuck,
    "a turn is given twice": {
      ...race,
      or: [
        { code: "TW3011", at: "takes and gives twice" },
        { code: "TW3007", at: "takes and gives" },
        { code: "TW3008", at: "unheard" },
      ],
    },
    "given before the work": race,
    "both begin": race,
    "nobody begins": stuck,
    "one round more": stuck,
  },
});
