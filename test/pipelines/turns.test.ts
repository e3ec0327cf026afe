/** Consumers that take turns write one after the other, the first one first. */
import { expect, test } from "vitest";
import { tensor, barrier, i32, kernel, loop, pingPong, when } from "tilewright";
import { requireClean, requireEmulated } from "./run.ts";

const [consumers, rounds] = [3, 4];

/** Each consumer appends its number to what the one before has written. */
const taking = kernel(
  {
    name: "taking",
    threads: ["first", "second", "third"],
    inouts: { log: tensor(i32, [consumers * rounds + 1]) },
    scratch: { own: barrier({ count: consumers }) },
  },
  ({ log, own, first, second, third }) => {
    [first, second, third].forEach((consumer, part) => {
      consumer(() => {
        const turn = pingPong({ barriers: own, part, count: consumers });
        loop({ to: rounds, carry: turn.start() }, (round, state) => {
          turn.wait(state);
          const place = round.mul(consumers).add(part);
          const before = log.at(place).loadScalar();
          when(before.ge(0), () => {
            log.at(place.add(1)).store(before.add(1 + part));
          });
          return turn.arrive(state);
        });
      });
    });
  },
);

const sums = [0];
for (let turn = 0; turn < consumers * rounds; turn += 1)
  sums.push((sums.at(-1) ?? 0) + 1 + (turn % consumers));

const expected = {
  inputs: {
    log: {
      dtype: i32,
      shape: [sums.length],
      data: Int32Array.of(0, ...sums.slice(1).map(() => -1)),
    },
  },
  results: { log: sums },
};

test("every turn sees what the one before has done, under twenty schedules", async () => {
  await requireClean(taking, expected, 20);
  expect(sums).toHaveLength(consumers * rounds + 1);
});

test("also on the emulator", async () => {
  await requireEmulated(taking, expected);
});
