/**
 * A profile as a drawing: a row for each program thread of each block, a box for each scope, nested ones below.
 *
 *   gemm on the emulator, 3 threads        0                      1200 instructions
 *   block (i = 0)   load     ████ copy  ██ copy        ██ copy
 *                   compute      ░░ wait  ████ product   ████ product
 */
import {
  escapeText,
  legendPanel,
  stackPanels,
  svgDocument,
  textPanel,
} from "../../layout/drawing/svg.ts";
import type { Panel } from "../../layout/drawing/svg.ts";
import { formatPosition } from "../../support/location.ts";
import { requireProfiles } from "../kinds.ts";
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

const [rowHeight, rowGap, letterWidth, timeWidth] = [16, 6, 7.3, 1000];
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
  const legend = names.map((name) => ({ fill: colourOf(name), label: name }));
  return stackPanels([
    textPanel(facts),
    timeline(shown, end, unit, colourOf),
    legendPanel(legend, ""),
  ]);
}

function timeline(
  tracks: readonly Track[],
  end: number,
  unit: string,
  colourOf: (name: string) => string,
): Panel {
  const left = letterWidth * Math.max(0, ...tracks.map(({ name }) => name.length)) + 8;
  const shapes: string[] = [];
  let height = 0;
  for (const { name, spans } of tracks) {
    const depth = spans.reduce((deepest, span) => Math.max(deepest, span.depth), 0) + 1;
    shapes.push(`<text x="0" y="${height + 12}">${escapeText(name)}</text>`);
    for (const span of spans) {
      const x = left + (span.from / end) * timeWidth;
      const y = height + span.depth * rowHeight;
      shapes.push(spanShape(span, { x, y, end, unit, fill: colourOf(span.name) }));
    }
    height += depth * rowHeight + rowGap;
  }
  return { width: left + timeWidth, height, shapes };
}

function spanShape(
  { name, from, to, position }: ProfileSpan,
  at: {
    readonly x: number;
    readonly y: number;
    readonly end: number;
    readonly unit: string;
    readonly fill: string;
  },
): string {
  const width = Math.max(0.5, ((to - from) / at.end) * timeWidth);
  const line = position === undefined ? "" : `, ${formatPosition(position)}`;
  const hint = `${name}: ${to - from} ${at.unit}, from ${from} to ${to}${line}`;
  return [
    `<rect x="${at.x.toFixed(2)}" y="${at.y}" width="${width.toFixed(2)}" height="${rowHeight - 1}" fill="${at.fill}">`,
    `<title>${escapeText(hint)}</title></rect>`,
  ].join("");
}
