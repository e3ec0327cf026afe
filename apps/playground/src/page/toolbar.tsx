/** The bar above everything: run and stop, how to run, the gallery, and links to share. */
import { useState } from "preact/hooks";
import { targets } from "../../../../src/targets/target.ts";
import type { TargetName } from "../../../../src/targets/target.ts";
import { generators } from "../protocol.ts";
import type { Settings } from "../protocol.ts";
import { Choice } from "./parts.tsx";
import type { RunState, Session } from "./state.ts";

interface ToolbarProps {
  readonly session: Session;
  readonly run: RunState;
  readonly theme: Theme;
  readonly auto: boolean;
  readonly runNow: () => void;
  readonly stop: () => void;
  readonly change: (settings: Settings) => void;
  readonly changeSeconds: (seconds: number) => void;
  readonly changeAuto: (auto: boolean) => void;
  readonly changeTheme: (theme: Theme) => void;
  readonly share: () => Promise<void>;
  readonly openGallery: () => void;
}

export type Theme = "system" | "light" | "dark";

export function Toolbar(props: ToolbarProps) {
  const { session, run, runNow, stop, change, share, openGallery } = props;
  const { settings } = session;
  const [shared, setShared] = useState(false);
  const isRunning = run.kind === "running";
  const set = (changed: Partial<Settings>): void => {
    change({ ...settings, ...changed });
  };
  return (
    <header class="toolbar">
      <h1>
        <img src="icon.svg" alt="" width={24} height={24} /> tilewright <small>playground</small>
      </h1>
      <div class="actions" role="group" aria-label="Run">
        <button
          type="button"
          class="primary"
          onClick={runNow}
          disabled={isRunning}
          title="Ctrl+Enter"
        >
          ▶ Run
        </button>
        <button type="button" class="stop" onClick={stop} disabled={!isRunning}>
          ■ Stop
        </button>
      </div>
      <div class="settings" role="group" aria-label="How to run">
        <Choice
          label="on"
          value={settings.device}
          options={[
            ["simulator", "simulator"],
            ["emulator", "emulator (PTX)"],
            ["cpu", "CPU (fast, unchecked)"],
          ]}
          choose={(device) => {
            set({ device });
          }}
        />
        <Choice
          label="schedule"
          value={settings.schedule}
          options={[
            ["fixed", "fixed"],
            ["random", "random"],
            ["adversarial", "adversarial"],
            ["timed", "timed"],
          ]}
          choose={(schedule) => {
            set({ schedule });
          }}
        />
        <NumberField
          label="seed"
          value={settings.seed}
          change={(seed) => {
            set({ seed });
          }}
        />
        <Choice
          label="target"
          value={settings.target}
          options={(Object.keys(targets) as TargetName[]).map((name) => [name, name])}
          choose={(target) => {
            set({ target });
          }}
        />
        <MoreSettings {...props} set={set} />
      </div>
      <div class="actions" role="group" aria-label="Programs">
        <button type="button" onClick={openGallery}>
          Gallery
        </button>
        <button
          type="button"
          onClick={() => {
            void share().then(() => {
              setShared(true);
              setTimeout(() => {
                setShared(false);
              }, 2000);
            });
          }}
        >
          {shared ? "Link copied" : "Share"}
        </button>
      </div>
    </header>
  );
}

function MoreSettings({
  session,
  auto,
  theme,
  changeAuto,
  changeSeconds,
  changeTheme,
  set,
}: ToolbarProps & { readonly set: (changed: Partial<Settings>) => void }) {
  const { settings, seconds } = session;
  return (
    <details class="more">
      <summary>More</summary>
      <div class="more-panel">
        <label>
          <input
            type="checkbox"
            checked={settings.checks}
            onChange={({ currentTarget }) => {
              set({ checks: currentTarget.checked });
            }}
          />{" "}
          look for races and the rest
        </label>
        <label>
          <input
            type="checkbox"
            checked={settings.compare}
            onChange={({ currentTarget }) => {
              set({ compare: currentTarget.checked });
            }}
          />{" "}
          compare with the {settings.device === "simulator" ? "emulator" : "simulator"}
        </label>
        <label>
          <input
            type="checkbox"
            checked={auto}
            onChange={({ currentTarget }) => {
              changeAuto(currentTarget.checked);
            }}
          />{" "}
          run after each edit
        </label>
        <Choice
          label="stop after"
          value={seconds}
          options={[5, 10, 30, 120].map((each) => [each, `${each} s`])}
          choose={changeSeconds}
        />
        <p>Inputs of kernels in programs without main:</p>
        <Choice
          label="filled with"
          value={settings.generator}
          options={generators.map((name) => [name, name])}
          choose={(generator) => {
            set({ generator });
          }}
        />
        <NumberField
          label="named dimensions"
          value={settings.extent}
          change={(extent) => {
            set({ extent: Math.max(1, extent) });
          }}
        />
        <Choice
          label="colours"
          value={theme}
          options={[
            ["system", "as the system"],
            ["light", "light"],
            ["dark", "dark"],
          ]}
          choose={changeTheme}
        />
      </div>
    </details>
  );
}

function NumberField({
  label,
  value,
  change,
}: {
  readonly label: string;
  readonly value: number;
  readonly change: (value: number) => void;
}) {
  return (
    <label class="choice">
      <span>{label}</span>
      <input
        type="number"
        min={0}
        value={value}
        onChange={({ currentTarget }) => {
          const given = Math.floor(Number(currentTarget.value));
          if (Number.isSafeInteger(given) && given >= 0) change(given);
        }}
      />
    </label>
  );
}
