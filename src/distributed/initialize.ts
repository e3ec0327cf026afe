/**
 * Several processes as ranks of one program: each says who it is, by its launcher's variables or by options, and they meet at rank 0.
 *
 *   await initialize();                        // in a file that tilewright launch -n 4 or torchrun starts
 *   const mesh = makeMesh({ d: processCount() });
 */
import { RankTeam } from "../graph/ranks/team.ts";
import { peerLinks } from "../graph/ranks/frames.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { launchedRank } from "./environment.ts";
import type { LaunchedRank } from "./environment.ts";
import { joinedTeam, setJoined } from "./world.ts";

/** Options of `initialize`; what is not given, the launcher says. */
export interface InitializeOptions {
  /** Where rank 0 listens: `host:port`. */
  readonly coordinatorAddress?: string | undefined;
  /** How many processes there are. */
  readonly numProcesses?: number | undefined;
  /** Which of them this one is, from 0. */
  readonly processId?: number | undefined;
  /** Milliseconds until all processes have to be there; 300,000 unless given. */
  readonly initializationTimeout?: number | undefined;
  /** Milliseconds that a collective waits for the others; 120,000 unless given. */
  readonly timeout?: number | undefined;
}

let beginning: Promise<void> | undefined;

type Refuse = (details: Pick<DiagnosticDetails, "message" | "expected" | "found">) => never;

/** Who this process is, by options before the launcher. */
function placeOf(options: InitializeOptions, told: LaunchedRank | undefined, refuse: Refuse) {
  const size = options.numProcesses ?? told?.size;
  const rank = options.processId ?? told?.rank;
  const address = options.coordinatorAddress ?? told?.coordinator;
  const found =
    told === undefined ? "no launcher's variables" : `the variables of ${told.launcher}`;
  const [, name, port] = /^\[?(.*?)\]?:(\d+)$/.exec(address ?? "") ?? [];
  if (size === undefined)
    return refuse({
      message: "nobody says how many processes there are",
      expected: "numProcesses, or a launcher",
      found,
    });
  if (rank === undefined || rank < 0 || rank >= size)
    return refuse({
      message: "nobody says which process this is",
      expected: `processId, 0 … ${size - 1}, or a launcher`,
      found: `${rank ?? found}`,
    });
  if (name === undefined || port === undefined)
    return refuse({
      message: "nobody says where rank 0 is",
      expected: "coordinatorAddress, host:port, or JAX_COORDINATOR_ADDRESS",
      found: address ?? found,
    });
  return { rank, size, name, port };
}

/** Finds the other processes; resolves when all are there. Call it once, before the first mesh is made. */
export async function initialize(options: InitializeOptions = {}): Promise<void> {
  const location = captureLocation();
  const refuse: Refuse = (details) => {
    throw new TilewrightError({ code: "TW9711", location, ...details });
  };
  if (beginning !== undefined || joinedTeam() !== undefined)
    refuse({
      message: "initialize was called before",
      expected: "one call",
      found: "a second one",
    });
  const host = await import("../workers/node.ts");
  const told = launchedRank(host.environment(), host.readText);
  const { rank, size, name, port } = placeOf(options, told, refuse);
  const { initializationTimeout: patience = 300_000, timeout } = options;
  const meet = async (): Promise<void> => {
    const place = { rank, size, host: name, port: Number(port), timeout: patience };
    const peers = await host.meetPeers(place).catch((error: unknown) =>
      refuse({
        message: `rank ${rank} did not meet the others at ${name}:${port}`,
        expected: `${size} processes within ${patience / 1000} s`,
        found: error instanceof Error ? error.message : String(error),
      }),
    );
    setJoined(await RankTeam.join(rank, peerLinks(peers), { size, device: "cpu", timeout }));
  };
  beginning = meet();
  try {
    await beginning;
  } finally {
    beginning = undefined;
  }
}

/** The number of this process among those of the program; 0 where it is alone. */
export function processIndex(): number {
  return joinedTeam()?.ranks[0] ?? 0;
}

/** How many processes run the program. */
export function processCount(): number {
  return joinedTeam()?.size ?? 1;
}
