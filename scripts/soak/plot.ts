/** Draws memory over time as an SVG: a line a measure, in MiB from 0. */
import { measures } from "./memory.ts";
import type { Measure, Sample } from "./memory.ts";

const width = 720;
const height = 300;
const margin = { left: 70, right: 110, top: 40, bottom: 40 };
const colours: { readonly [M in Measure]: string } = {
  heap: "#1f77b4",
  external: "#2ca02c",
  resident: "#7f7f7f",
  device: "#d62728",
};

const inMebibytes = (bytes: number): number => bytes / 2 ** 20;

export function plotMemory(samples: readonly Sample[], title: string): string {
  const seconds = Math.max(1, ...samples.map((sample) => sample.seconds));
  const highest = Math.max(
    1,
    ...samples.flatMap((sample) => measures.map((measure) => inMebibytes(sample[measure] ?? 0))),
  );
  const x = (value: number): number =>
    margin.left + (value / seconds) * (width - margin.left - margin.right);
  const y = (value: number): number =>
    height - margin.bottom - (value / highest) * (height - margin.top - margin.bottom);
  const lines = measures.flatMap((measure) => {
    const points = samples.flatMap((sample) => {
      const bytes = sample[measure];
      return bytes === undefined ? [] : [[sample.seconds, inMebibytes(bytes)] as const];
    });
    const last = points.at(-1);
    if (last === undefined) return [];
    const path = points
      .map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
      .join(" ");
    const label = `${measure} ${last[1].toFixed(0)} MiB`;
    return [
      `<polyline points="${path}" fill="none" stroke="${colours[measure]}" stroke-width="1.5"/>`,
      `<text x="${x(last[0]) + 6}" y="${y(last[1]) + 4}" fill="${colours[measure]}">${label}</text>`,
    ];
  });
  const axes = [
    `<path d="M${margin.left},${margin.top}V${y(0)}H${width - margin.right}" fill="none" stroke="#444"/>`,
    `<text x="${margin.left - 8}" y="${y(highest) + 4}" text-anchor="end">${highest.toFixed(0)} MiB</text>`,
    `<text x="${margin.left - 8}" y="${y(0)}" text-anchor="end">0</text>`,
    `<text x="${width - margin.right}" y="${y(0) + 18}" text-anchor="end">${seconds.toFixed(0)} s</text>`,
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    `<text x="${margin.left}" y="22" font-size="13">${title}</text>`,
    ...axes,
    ...lines,
    "</svg>\n",
  ].join("\n");
}
