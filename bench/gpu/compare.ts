/**
 * One case, ours and every peer's, in interleaved rounds; and what came of it as plain data. Ratios are told one way
 * around: how many times as fast as each peer we are, as the median of the ratios of single rounds.
 */
import { bench } from "tilewright/bench";
import type { BenchEntry, BenchProgress } from "tilewright/bench";
import type { Device } from "tilewright";
import { costOf, setsOf } from "./case.ts";
import type { BenchCase, Figure } from "./case.ts";
import type { Peer, PeerLane } from "./peers/peer.ts";

export interface CompareSettings {
  readonly rounds: number;
  readonly launches: number;
  /** Milliseconds before each sample in which the GPU does nothing. */
  readonly rest: number;
  readonly onProgress?: ((progress: BenchProgress) => void) | undefined;
}

export interface ComparedEntry {
  readonly name: string;
  /** How its launches were issued and timed. */
  readonly how: string;
  readonly milliseconds: number;
  readonly spread: number;
}

export interface ComparedPeer extends ComparedEntry {
  /** How many times as fast as this peer ours is, and where that lies at 95%. */
  readonly ratio: number;
  readonly low: number;
  readonly high: number;
}

export interface Comparison {
  readonly name: string;
  readonly date: string;
  readonly device: string;
  readonly unit: Figure;
  readonly work: number;
  readonly rounds: number;
  readonly launches: number;
  /** Milliseconds before each sample in which the GPU does nothing; figures from before there was one have none. */
  readonly rest?: number;
  readonly sets: number;
  readonly ours: ComparedEntry;
  /** The fastest first. */
  readonly peers: readonly ComparedPeer[];
  /** Ours as a part of other work, where a case has some. */
  readonly measures?: readonly ComparedPeer[];
  /** TB/s of the bytes that operations have to move, and the part of the roofline that ours comes to, where a case tells of these bytes. */
  readonly memory?: { readonly terabytes: number; readonly ofRoofline: number };
  /** What peers could not do. */
  readonly refused: readonly string[];
}

const ourName = "ours";

export async function compare(
  device: Device,
  one: BenchCase,
  peers: readonly Peer[],
  { rounds, launches, rest, onProgress }: CompareSettings,
): Promise<Comparison> {
  const sets = setsOf(one, launches);
  const prepared = await one.prepare(device, sets);
  try {
    await prepared.check();
    const { lanes, refused } = await preparedPeers(peers, one, sets, launches);
    const { ours, beside = {}, measures = {} } = prepared;
    const entries: { [name: string]: BenchEntry } = { [ourName]: ours, ...beside, ...measures };
    for (const { name, timed } of lanes) entries[name] = () => timed;
    const result = await bench(device, entries, {
      rounds,
      launches,
      rest,
      sets,
      cost: costOf(one),
      against: ourName,
      onProgress,
    });
    const how = new Map(lanes.map((lane) => [lane.name, lane.how]));
    for (const name of [ourName, ...Object.keys(beside), ...Object.keys(measures)])
      how.set(name, `CUDA graph of ${launches} launches`);
    const entryOf = (name: string): ComparedEntry => {
      const { milliseconds, spread } = result.of(name);
      return { name, how: how.get(name) ?? "", milliseconds, spread };
    };
    const others = [...Object.keys(beside), ...lanes.map(({ name }) => name)];
    const comparedTo = (name: string): ComparedPeer => {
      const { ratio, interval } = result.against(name).of(ourName);
      return { ...entryOf(name), ratio, low: interval.low, high: interval.high };
    };
    const compared = others.map(comparedTo);
    const { terabytes = 0, ofRoofline = 0 } = result.of(ourName);
    return {
      name: one.name,
      date: new Date().toISOString().slice(0, 10),
      device: device.gpu?.name ?? device.name,
      unit: one.unit,
      work: one.work,
      rounds,
      launches,
      rest,
      sets,
      ours: entryOf(ourName),
      peers: compared.toSorted((left, right) => left.milliseconds - right.milliseconds),
      ...(prepared.measures && { measures: Object.keys(measures).map(comparedTo) }),
      ...(one.moved !== undefined && { memory: { terabytes, ofRoofline } }),
      refused,
    };
  } finally {
    prepared.dispose();
    await Promise.allSettled(peers.map((peer) => peer.forget()));
  }
}

/** Peers prepare one after the other, since some of them measure while they do. */
async function preparedPeers(
  peers: readonly Peer[],
  { task }: BenchCase,
  sets: number,
  launches: number,
): Promise<{ readonly lanes: readonly PeerLane[]; readonly refused: readonly string[] }> {
  const lanes: PeerLane[] = [];
  const refused: string[] = [];
  for (const peer of peers) {
    try {
      const prepared = await peer.prepare(task, sets, launches);
      lanes.push(...prepared.lanes);
      refused.push(...prepared.refused);
    } catch (error) {
      refused.push(error instanceof Error ? error.message : String(error));
    }
  }
  return { lanes, refused };
}
