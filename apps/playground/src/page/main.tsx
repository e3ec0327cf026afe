/** Where the page begins. */
import { render } from "preact";
import { App, firstSession } from "./app.tsx";

const host = document.getElementById("app");
const frame = document.querySelector<HTMLIFrameElement>("#sandbox");
if (host !== null && frame !== null) {
  const first = await firstSession(location.hash);
  host.textContent = "";
  render(<App first={first} frame={frame} />, host);
}

// Once everything is there, the next visit needs no network.
if ("serviceWorker" in navigator)
  addEventListener("load", () => {
    setTimeout(
      () => void navigator.serviceWorker.register("offline.js").catch(() => undefined),
      3000,
    );
  });
