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
  if (event.request.method === "GET") event.respondWith(answer(event.request));
});

async function answer(request) {
  try {
    const response = await fetch(request);
    if (response.ok) await (await caches.open(name)).put(request, response.clone());
    return response;
  } catch {
    return (await caches.match(request, { ignoreSearch: true })) ?? Response.error();
  }
}
