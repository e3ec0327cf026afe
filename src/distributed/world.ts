/**
 * The ranks that meshes run on: those of this process, threads of it that are started by the first program of a mesh, or, once `initialize`
 * has found others, one rank a process.
 */
import { registerMesh } from "../arrays/ranks-place.ts";
import { meshText } from "../graph/ops/sharding.ts";
import type { ProcessMesh } from "../graph/ops/sharding.ts";
import { RankTeam } from "../graph/ranks/team.ts";
import { MeshRunner } from "./runner.ts";

/** Teams of this process by their sizes, opened when they are first needed. */
const teams = new Map<number, Promise<RankTeam>>();

/** The one of several processes. */
let joined: RankTeam | undefined;

export function joinedTeam(): RankTeam | undefined {
  return joined;
}

export function setJoined(team: RankTeam | undefined): void {
  joined = team;
}

function teamOf(size: number): Promise<RankTeam> {
  if (joined !== undefined) return Promise.resolve(joined);
  const known = teams.get(size);
  if (known !== undefined) return known;
  const opened = RankTeam.open({ size, device: "cpu" });
  teams.set(size, opened);
  opened.catch(() => teams.delete(size));
  return opened;
}

/** Has programs over a mesh run on ranks. */
export function runOnRanks(mesh: ProcessMesh): void {
  registerMesh(meshText(mesh), new MeshRunner(() => teamOf(mesh.ids.length)));
}

async function openTeams(): Promise<readonly RankTeam[]> {
  const all = await Promise.allSettled([
    ...teams.values(),
    ...(joined === undefined ? [] : [Promise.resolve(joined)]),
  ]);
  return all.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
}

/** Ends the ranks of this process. Arrays that they hold are gone; meshes start ranks again when they are used. */
export async function shutdown(): Promise<void> {
  const open = await openTeams();
  teams.clear();
  joined = undefined;
  for (const team of open) await team.close();
}

/**
 * The last calls of each rank of this process, a line each, oldest first: which collective of which group, on which line, and how long it took
 * or that it waits.
 */
export async function flightRecord(): Promise<readonly (readonly string[])[]> {
  const answers = await Promise.all(
    (await openTeams()).map((team) => team.all({ kind: "record" })),
  );
  return answers.flat().map((answer) => (answer.kind === "record" ? answer.lines : []));
}
