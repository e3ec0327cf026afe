/** Keeps the playground's files, so that it opens without a network. A new version takes the place of the old one. */
const name = "tilewright-playground-" + "VERSION";
const files = ["FILES"];

addEventListener("install", (event) => {
  event.waitUntil(caches.open(name).then((cache) => cache.addAll(files)));
  skipWaiting();
});

addEventListener("activate", (event) => {
  const isOld = (key) => key.startsWith("tilewright-playground-") && key !== name;
  event.waitUntil(
    caches.keys().then((keys) => Promise.all(keys.filter(isOld).map((key) => caches.delete(key)))),
  );
});

// What lies on the server is newer; what is kept is for when it cannot be reached.
addEventListener("fetch", (event) => {
  const { method, url } = event.request;
  if (method !== "GET") return;
  event.respondWith(url.endsWith("/sandbox.html?kept") ? keptFrame() : answer(event.request));
});

// The frame that programs run in, without an origin: see src/page/runner.ts.
async function keptFrame() {
  const kept = await caches.match("sandbox.html");
  const headers = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "sandbox allow-scripts",
  };
  return new Response(await kept?.text(), { headers });
}

async function answer(request) {
  try {
    const response = await fetch(request);
    if (response.ok) await (await caches.open(name)).put(request, response.clone());
    return response;
  } catch {
    return (await caches.match(request, { ignoreSearch: true })) ?? Response.error();
  }
}
