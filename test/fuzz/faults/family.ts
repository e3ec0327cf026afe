/** Families of kernels, each with faults of which one is planted. */
import type { KernelDefinition } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import type { Program } from "../parts.ts";
import type { Faulty } from "./faulty.ts";

/** A kernel as it is drawn, and what is told of each fault that it may have. */
export interface Family<F extends string> {
  readonly name: string;
  readonly make: (is: (fault: F) => boolean) => KernelDefinition;
  /** Those that the kernel can have as it is drawn. */
  readonly faults: { readonly [N in F]?: readonly string[] };
  /** What the emulator tells of those that it must find, too. */
  readonly trapped?: { readonly [N in F]?: readonly string[] };
  readonly targets?: readonly string[];
  readonly placedAsUsual?: boolean;
  /** What arrays hold, where that is not any number. */
  readonly data?: (is: (fault: F) => boolean) => Program["data"];
}

/** A family whose faults have names that only it knows. */
export interface AnyFamily extends Pick<
  Family<string>,
  "name" | "faults" | "trapped" | "targets" | "placedAsUsual"
> {
  readonly made: (fault: string | undefined) => KernelDefinition;
  readonly given: (fault: string | undefined) => Program["data"];
}

export function family<F extends string>({ make, data, ...others }: Family<F>): AnyFamily {
  return {
    ...others,
    made: (fault) => make((name) => name === fault),
    given: (fault) => data?.((name) => name === fault),
  };
}

/** A kernel of one of some families, with one of its faults. */
export function faultyOf(
  families: readonly ((random: Random) => AnyFamily)[],
): (random: Random) => Faulty {
  return (random) => {
    const drawn = random.pick(families)(random);
    const fault = random.pick(Object.keys(drawn.faults));
    const programOf = (planted: string | undefined): Program => {
      const data = drawn.given(planted);
      return {
        kernel: drawn.made(planted).kernel,
        dimensions: {},
        ...(data !== undefined && { data }),
        ...(drawn.targets !== undefined && { targets: drawn.targets }),
      };
    };
    const trapped = drawn.trapped?.[fault];
    return {
      name: `${fault}: ${drawn.name}`,
      right: programOf(undefined),
      wrong: () => programOf(fault),
      told: drawn.faults[fault] ?? [],
      ...(trapped !== undefined && { trapped }),
      placedAsUsual: drawn.placedAsUsual ?? false,
    };
  };
}
