/** Colours of drawings. */

type Colour = readonly [red: number, green: number, blue: number];

/** Dark blue over teal to yellow: even in lightness, so that it also reads in grey. */
const heatStops: readonly Colour[] = [
  [48, 32, 97],
  [44, 93, 142],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];

/** The colour of a share between 0 and 1. */
export function heatColour(share: number): Colour {
  if (Number.isNaN(share)) return [214, 64, 69];
  const place = Math.min(1, Math.max(0, share)) * (heatStops.length - 1);
  const below = Math.min(heatStops.length - 2, Math.floor(place));
  const [from = [0, 0, 0], to = [0, 0, 0]] = [heatStops[below], heatStops[below + 1]];
  const mix = (channel: 0 | 1 | 2): number =>
    Math.round(from[channel] + (to[channel] - from[channel]) * (place - below));
  return [mix(0), mix(1), mix(2)];
}

/** A colour for each of up to 32 things that stand beside each other, such as banks or lanes. */
export function wheelColour(index: number, count: number, lightness = 68): string {
  return `hsl(${Math.round((360 * index) / count)} 62% ${lightness}%)`;
}

/** A colour that an op keeps everywhere, from its name. */
export function opColour(op: string): string {
  let hash = 7;
  for (const character of op) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 997;
  return `hsl(${hash % 360} 48% 58%)`;
}
