/** The planted fault of a seed: an access outside, or something that is missing or wrong where threads, blocks and copies wait for each other. */
import { Random } from "../../../src/support/random.ts";
import { bounds } from "./bounds.ts";
import { endings } from "./endings.ts";
import type { Faulty } from "./faulty.ts";
import { meetings } from "./meetings.ts";
import { pipelines } from "./pipelines.ts";
import { rings } from "./rings.ts";

const makers = [bounds, bounds, rings, meetings, pipelines, endings];

export function faultOf(seed: number): Faulty {
  const random = new Random(seed);
  for (;;) {
    const faulty = random.pick(makers)(random);
    if (faulty !== undefined) return faulty;
  }
}
