/**
 * A profile as a drawing: a row for each program thread of each block, a box for each scope, nested ones below.
 *
 *   gemm on the emulator, 3 threads        0                      1200 instructions
 *   block (i = 0)   load     ████ copy  ██ copy        ██ copy
 *                   compute      ░░ wait  ████ product   ████ product
 */
import { barsPanel } from "../../layout/drawing/timeline-bars.ts";
import type { BarRow, TimeBar } from "../../layout/drawing/timeline-bars.ts";
import { legendPanel, stackPanels, svgDocument, textPanel } from "../../layout/drawing/svg.ts";
import type { Panel } from "../../layout/drawing/svg.ts";
import { formatPosition } from "../../support/location.ts";
import { requireProfiles } from "../argument-checks.ts";
import { trackOf } from "./kernel-profile.ts";
import type { KernelProfile, ProfileSpan } from "./kernel-profile.ts";

const colours = [
  "#4e79a7",
  "#f28e2b",
  "#59a14f",
  "#e15759",
  "#76b7b2",
  "#b07aa1",
  "#edc948",
  "#9c755f",
] as const;

/** Rows of a drawing that people still look at; traces have them all. */
const mostTracks = 64;

/** Profiles one below the other, as a page of SVG. */
export function drawProfiles(profiles: readonly KernelProfile[]): string {
  requireProfiles("drawProfiles", profiles);
  return svgDocument(stackPanels(profiles.map(profilePanel), 24));
}

interface Track {
  readonly name: string;
  readonly spans: ProfileSpan[];
}

function tracksOf(profile: KernelProfile): readonly Track[] {
  const tracks = new Map<string, Track>();
  for (const span of profile.spans) {
    const { block, track } = trackOf(profile, span);
    const name = `${block} ${track}`;
    const known = tracks.get(name) ?? { name, spans: [] };
    tracks.set(name, known);
    known.spans.push(span);
  }
  return [...tracks.values()];
}

function profilePanel(profile: KernelProfile): Panel {
  const { kernel, device, unit, spans, lost } = profile;
  const tracks = tracksOf(profile);
  const shown = tracks.slice(0, mostTracks);
  const names = [...new Set(spans.map(({ name }) => name))];
  const colourOf = (name: string): string =>
    colours[names.indexOf(name) % colours.length] ?? colours[0];
  const end = spans.reduce((latest, { to }) => Math.max(latest, to), 1);
  const facts = [
    `${kernel} on the ${device}: ${end} ${unit}`,
    ...(shown.length < tracks.length ? [`the first ${shown.length} of ${tracks.length} rows`] : []),
    ...(lost > 0 ? [`${lost} edges of scopes found no room`] : []),
  ];
  const rowOf = (track: Track): BarRow => ({
    name: track.name,
    bars: track.spans.map((span) => barOf(span, unit, colourOf(span.name))),
  });
  const legend = names.map((name) => ({ fill: colourOf(name), label: name }));
  return stackPanels([textPanel(facts), barsPanel(shown.map(rowOf), end), legendPanel(legend, "")]);
}

function barOf(
  { name, from, to, depth, position }: ProfileSpan,
  unit: string,
  fill: string,
): TimeBar {
  const line = position === undefined ? "" : `, ${formatPosition(position)}`;
  const hint = `${name}: ${to - from} ${unit}, from ${from} to ${to}${line}`;
  return { from, to, depth, fill, thin: false, label: name, hint };
}
