/** The checks of a launch: undefined registers and memory, races. */
import type { DiagnosticDetails } from "../../support/diagnostics.ts";
import type { RecordedAccess } from "../collective.ts";
import type { Site } from "../program/program.ts";
import type { WarpState } from "../machine/warp.ts";

/** What the checks ask of the launch. */
export interface CheckedLaunch {
  site(number: number): Site;
  report(details: DiagnosticDetails): void;
}

export class Checker {
  readonly #launch: CheckedLaunch;
  readonly #reported = new Set<string>();

  constructor(launch: CheckedLaunch) {
    this.#launch = launch;
  }

  fence(_warp: WarpState): void {
    return;
  }

  accesses(_warp: WarpState, _site: number, _slot: number, _mask: number): void {
    return;
  }

  record(_access: RecordedAccess): void {
    return;
  }

  undefinedRegister(warp: WarpState, site: number, register: number, mask: number): void {
    const key = `undefined ${site} ${register}`;
    if (this.#reported.has(key)) return;
    this.#reported.add(key);
    const { instruction, location } = this.#launch.site(site);
    const { layout } = warp.groups.current.frame.function;
    const place = [...layout.places.values()].find(({ number }) => number === register);
    const lane = 31 - Math.clz32(mask & -mask);
    this.#launch.report({
      code: "TW8012",
      message: `${instruction.opcode} reads ${place?.register.name ?? "a register"}, which lane ${lane} of warp ${warp.index} of block ${warp.block.index} has not written`,
      location,
    });
  }
}
