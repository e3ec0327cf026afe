/** Programs with a planted fault beside the same without it, and what is to be said of both. */
import type { Program } from "../parts.ts";

export interface Faulty {
  /** What it does, for who reads of a miss. */
  readonly name: string;
  readonly right: Program;
  /** The program with its fault; a function, since a fault may be refused while it is traced. */
  readonly wrong: () => Program;
  /** Codes of which the compiler or the simulator is to name one. */
  readonly told: readonly string[];
  /** Codes of which the emulator is to name one; anything where compiled code need not find it. */
  readonly trapped?: readonly string[];
  /** Whether it is compiled as kernels are: placed at random, lanes may make copies themselves, which are over at once. */
  readonly placedAsUsual?: boolean;
}
