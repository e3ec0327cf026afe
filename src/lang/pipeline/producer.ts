/** The copying thread of `warpSpecialized`: it fills slot after slot, tile after tile, as far as there are free ones. */
import { loop } from "../control.ts";
import type { Dealer } from "./dynamic-tile-counter.ts";
import type { Feed } from "./input-ring.ts";
import { byPace, zeroAxes } from "./warp-specialized-plan.ts";
import type { SpecializedPlan } from "./warp-specialized-plan.ts";
import type { Axes } from "./step-grid.ts";
import type { Tiles, TileTurn } from "./tiles.ts";

/** What the copying thread does. */
export function copyTiles(
  feeds: readonly Feed[],
  { names, stepsOf, outside }: SpecializedPlan,
  tiles: Tiles,
  dealer: Dealer,
): void {
  const { once, perTile, moving } = byPace(feeds);
  const zeros = zeroAxes([...tiles.names, ...names]);
  for (const feed of once) feed.copy(feed.start(), zeros);
  const start = {
    perTile: perTile.map((feed) => feed.start()),
    moving: moving.map((feed) => feed.start()),
  };
  const work = (tile: Axes, state: typeof start, { part, nearlyDone }: TileTurn): typeof start => {
    const steps = stepsOf(tile, part);
    const around = { ...zeros, ...tile };
    const copied = perTile.map((feed, position) =>
      feed.copy(state.perTile[position] ?? feed.start(), around),
    );
    const initial = { moving: state.moving, odometer: steps.start() };
    // A step that the body of the tile runs itself is always there.
    const to = outside === 0 ? steps.total : steps.total.maximum(outside);
    const end = loop({ to, carry: initial }, (step, carried) => {
      const axes = { ...tile, ...steps.axes(step, carried.odometer) };
      const next = moving.map((feed, position) =>
        feed.copy(carried.moving[position] ?? feed.start(), axes),
      );
      return { moving: next, odometer: steps.next(carried.odometer) };
    });
    nearlyDone();
    return { perTile: copied, moving: end.moving };
  };
  tiles.deal(dealer, start, work, () => stepsOf({}).total);
}
