// One sample: timeline strip with a cursor, players, text at its times, all models side by side.
"use strict";
const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const ROW = { user: 0, gap: 1.15 };
let page = null, ids = null, playing = null, frame = 0;

HFD.onSample = (value) => { page = value; draw(); };

function load() {
  const id = state().id;
  const script = element("script", { src: fileUrl("samples", `${id}.js`), onerror: () => { $("id").textContent = `${id}: ?`; } });
  document.head.append(script);
}

function loadIds() {
  // The first page's data is needed only for "next" and "previous".
  const script = element("script", { src: "index.js" });
  script.addEventListener("load", () => {
    ids = [...new Set(HFD.data.rows.map((row) => row[1]))];
    const at = ids.indexOf(state().id);
    for (const [node, target] of [["previous", ids[at - 1]], ["next", ids[at + 1]]]) {
      if (target !== undefined) $(node).href = `sample.html#id=${encodeURIComponent(target)}`;
      else $(node).removeAttribute("href");
    }
  });
  document.head.append(script);
}

function draw() {
  document.title = page.id;
  $("id").textContent = page.id;
  $("about").replaceChildren(`${named(page.task)} · ${number(page.media_s)} s · ${t("channels")} `, ...(page.video ? [element("a", { href: fileUrl(page.video) }, t("video"))] : []));
  $("events").replaceChildren(...page.events.map((event) => element("p", {},
    element("b", {}, `${named(event.role ?? "")} ${number(event.start)}–${number(event.end)} s`), event.text)));
  drawModels();
  drawStrip();
  drawStairs();
  drawContext();
  const wanted = page.models.findIndex((part) => part.model === state().model);
  choose(wanted >= 0 ? wanted : page.models.findIndex((part) => part.player));
  if (state().t) seek(Number(state().t), false);
  document.body.dataset.ready = page.id;
}

// The strip ------------------------------------------------------------------------------------
function band(x0, x1, colour, name) {
  const width = (x1 - x0) / page.shown_s * $("strip").clientWidth;
  const label = width > 8 * name.length ? name : "";  // the legend names the bands anyway
  return { type: "rect", layer: "below", xref: "x", yref: "paper", x0, x1, y0: 0, y1: 1, fillcolor: css(colour), opacity: 0.45, line: { width: 0 }, label: { text: label, textposition: "top center", font: { size: 11, color: css("--ink") } } };
}

function bands() {
  const q = page.question, end = page.media_s, found = [];
  if (q && q.p0 !== undefined) found.push(band(q.p0, q.p1, "--prefix", named("prefix")), band(q.p1, q.q0, "--gap", named("gap")), band(q.q0, q.q1, "--correction", named("correction")));
  else for (const event of page.events) found.push(band(event.start, event.end, "--correction", ""));
  found.push(band(end - 3, end, "--tail", named("tail")));
  return found;
}

function wave(peaks, seconds, base, colour, name) {
  const x = [], y = [];
  peaks.forEach((peak, at) => { x.push((at + 0.5) * seconds / peaks.length); y.push(base + peak / 230); });
  for (let at = peaks.length - 1; at >= 0; at--) { x.push((at + 0.5) * seconds / peaks.length); y.push(base - peaks[at] / 230); }
  return { type: "scatter", mode: "lines", x, y, fill: "toself", line: { width: 0 }, fillcolor: colour, opacity: 0.55, hoverinfo: "skip", name };
}

function ticks(times, base, symbol, colour, texts) {
  return { type: "scatter", mode: "markers", x: times, y: times.map(() => base), marker: { symbol, size: 9, color: colour, line: { width: 1.6, color: colour } }, text: texts, hovertemplate: "%{x:.3f} s %{text}<extra></extra>" };
}

function drawStrip() {
  const traces = [], names = [], places = [], shapes = bands();
  traces.push(wave(page.user_peaks, page.shown_s, 0, css("--user"), t("user")));
  names.push(t("user")); places.push(0);
  page.models.forEach((part, at) => {
    const base = -(at + 1) * 1.3, colour = MODEL_COLOURS[at % MODEL_COLOURS.length], drawing = part.drawing;
    names.push(part.model); places.push(base);
    if (!drawing.segments) return;
    traces.push(wave(part.peaks, page.shown_s, base, colour, part.model));
    for (const [start, end] of drawing.segments) shapes.push({ type: "rect", x0: start, x1: end, y0: base - 0.47, y1: base + 0.47, line: { color: colour, width: 1 }, fillcolor: colour, opacity: 0.22 });
    traces.push(ticks(drawing.texts.map((pair) => pair[0]), base + 0.55, "line-ns", css("--ink"), drawing.texts.map((pair) => pair[1].replace(/</g, "&lt;"))));
    traces.push(ticks(drawing.audio.map((one) => one[0]), base - 0.55, "triangle-up", colour, drawing.audio.map((one) => `→ ${number(one[1], 3)} (${number(one[2])} s)`)));
    if (drawing.controls.length) traces.push(ticks(drawing.controls.map((one) => one[0]), base, "diamond-open", css("--soft"), drawing.controls.map((one) => one[1])));
  });
  const layout = plotLayout({
    height: 110 + 92 * places.length, showlegend: false, dragmode: "zoom", shapes, hovermode: "closest",
    xaxis: { range: [0, page.shown_s], title: { text: "s" } },
    yaxis: { range: [places.at(-1) - 0.75, 0.75], tickvals: places, ticktext: names, fixedrange: true, showgrid: false, zeroline: false },
  });
  layout.margin = { l: 20, r: 10, t: 16, b: 40 };
  Plotly.react("strip", traces, layout, { ...PLOT, scrollZoom: false });
  const plot = $("strip");
  plot.removeAllListeners?.("plotly_relayout");
  plot.on("plotly_relayout", moveCursor);
  const swatch = (colour, text) => element("li", {}, element("i", { style: `background:${colour}` }), text);
  $("legend").replaceChildren(swatch(css("--prefix"), named("prefix")), swatch(css("--gap"), named("gap")), swatch(css("--correction"), named("correction")), swatch(css("--tail"), named("tail")),
    element("li", {}, `| ${t("text")}`), element("li", {}, `▲ ${t("audio")}`), element("li", {}, `◇ ${named("control")}`));
}

function axis() {
  const full = $("strip")._fullLayout;
  return full && { left: full.xaxis._offset, width: full.xaxis._length, range: full.xaxis.range };
}

function moveCursor() {
  const place = axis(), audio = current();
  if (!place || !audio) { $("cursor").hidden = true; return; }
  const share = (audio.currentTime - place.range[0]) / (place.range[1] - place.range[0]);
  $("cursor").hidden = share < 0 || share > 1;
  $("cursor").style.left = `${place.left + share * place.width}px`;
  $("cursor").dataset.time = audio.currentTime.toFixed(3);
  const part = page.models[playing];
  document.querySelectorAll(`#models .card:nth-child(${playing + 1}) .deltas button`).forEach((node, at) =>
    node.classList.toggle("said", part.drawing.texts[at][0] <= audio.currentTime));
}

function animate() {
  moveCursor();
  const audio = current();
  frame = audio && !audio.paused ? requestAnimationFrame(animate) : 0;
}

// Players --------------------------------------------------------------------------------------
const players = () => [...document.querySelectorAll("#models .card")].map((card) => card.querySelector("audio"));
const current = () => playing === null ? null : players()[playing];

function choose(at) {
  if (at < 0 || at >= page.models.length || !players()[at]) return;
  const time = current()?.currentTime;
  if (playing !== null && playing !== at) current()?.pause();
  playing = at;
  document.querySelectorAll("#models .card").forEach((card, n) => card.classList.toggle("playing", n === at));
  if (time !== undefined && current().paused) current().currentTime = time;
  moveCursor();
}

function seek(time, play) {
  const audio = current();
  if (!audio) return;
  audio.currentTime = Math.max(0, time);
  if (play) audio.play();
  moveCursor();
}

function drawModels() {
  $("models").replaceChildren(...page.models.map((part, at) => card(part, at)));
}

function card(part, at) {
  const title = element("h3", {}, element("span", { style: `color:${MODEL_COLOURS[at % MODEL_COLOURS.length]}` }, `${at + 1} ${part.model}`), element("span", {}, named(part.outcome)));
  const made = element("div", { class: "card", "data-model": part.model }, title);
  if (part.reason) made.append(element("p", { class: "bad" }, reasonText(part.reason)));
  if (part.player) {
    const audio = element("audio", { controls: "", preload: "metadata", src: fileUrl(part.player), "aria-label": part.model });
    audio.addEventListener("play", () => { choose(at); cancelAnimationFrame(frame); animate(); });
    audio.addEventListener("seeked", moveCursor);
    audio.addEventListener("timeupdate", moveCursor);
    made.append(audio);
  }
  if (part.drawing.texts) {
    made.append(element("p", { class: "deltas" }, ...part.drawing.texts.map(([time, delta]) =>
      element("button", { type: "button", title: `${number(time, 3)} s`, onclick: () => { choose(at); seek(time, true); } }, delta))));
  }
  const codes = Object.entries(part.rules).sort((a, b) => Number(a[0].slice(1)) - Number(b[0].slice(1)));
  made.append(element("p", { class: "chips" }, ...codes.map(([code, [status, reason]]) => element("span", { class: status, title: reasonText(reason), tabindex: "0" }, code))));
  for (const [code, [status, reason]] of codes) if (status === "fail") made.append(element("p", { class: "bad" }, `${code}: ${reasonText(reason)}`));
  const facts = Object.entries(part.metrics).filter(([, value]) => value !== null);
  made.append(element("details", {}, element("summary", {}, "H1–H22"), element("div", { class: "facts" }, ...facts.flatMap(([name, value]) => [element("span", { title: metricHelp(name) }, METRICS[name] ? metricName(name) : name), element("span", {}, number(value, 3))]))));
  if (part.files) made.append(element("p", {}, element("a", { href: `${fileUrl(part.files)}/assistant_audio.wav` }, t("wav")), " · ", element("a", { href: `${fileUrl(part.files)}/result.json` }, t("files")), " · ", element("a", { href: `${fileUrl(part.files)}/trace.jsonl.gz` }, t("trace")), " · ", element("a", { href: `${fileUrl(part.files)}/provenance.json` }, t("provenance"))));
  return made;
}

function drawStairs() {
  const traces = [{ type: "scatter", mode: "lines", x: [0, page.shown_s], y: [0, page.shown_s], line: { color: css("--soft"), dash: "dot", width: 1 }, showlegend: false, hoverinfo: "skip" }];
  page.models.forEach((part, at) => {
    if (!part.drawing.inputs) return;
    const colour = MODEL_COLOURS[at % MODEL_COLOURS.length];
    traces.push({ type: "scatter", mode: "lines", line: { shape: "hv", color: colour }, name: `${part.model}: ${t("sent")}`, x: part.drawing.inputs.map((one) => one[1]), y: part.drawing.inputs.map((one) => one[0]) });
    traces.push({ type: "scatter", mode: "markers", marker: { symbol: "x-thin", size: 7, line: { width: 1.5, color: colour } }, name: `${part.model}: ${t("outputs")}`, x: part.drawing.outputs.map((one) => one[0]), y: part.drawing.outputs.map((one) => one[1]) });
  });
  Plotly.react("stairs", traces, plotLayout({ xaxis: { title: { text: t("clock") } }, yaxis: { title: { text: t("due") } } }), PLOT);
}

function drawContext() {
  const told = page.models.map((part, at) => [part, MODEL_COLOURS[at % MODEL_COLOURS.length]]).filter(([part]) => part.drawing.context?.length);
  $("context-box").hidden = !told.length;
  if (!told.length) return;
  const traces = told.map(([part, colour]) => ({ type: "scatter", mode: "lines", name: part.model, line: { shape: "hv", color: colour },
    x: part.drawing.context.map((one) => one[0]), y: part.drawing.context.map((one) => one[1]) }));
  Plotly.react("context", traces, plotLayout({ showlegend: true, xaxis: { range: [0, page.shown_s], title: { text: t("clock") } }, yaxis: { rangemode: "tozero", title: { text: t("tokens") } } }), PLOT);
}

function listen() {
  $("strip-box").addEventListener("click", (event) => {
    const place = axis();
    const x = event.clientX - $("strip-box").getBoundingClientRect().left - place.left;
    if (x < 0 || x > place.width || dragged) return;
    seek(place.range[0] + x / place.width * (place.range[1] - place.range[0]), true);
  });
  let from = 0, dragged = false;
  $("strip-box").addEventListener("mousedown", (event) => { from = event.clientX; dragged = false; }, true);
  addEventListener("mouseup", (event) => { dragged = Math.abs(event.clientX - from) > 4; }, true);
  addEventListener("hashchange", () => { playing = null; load(); loadIds(); });
  addEventListener("resize", moveCursor);
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const audio = current();
    const go = (link) => { if (link.href) location.href = link.href; };
    const keys = {
      " ": () => audio && (audio.paused ? audio.play() : audio.pause()),
      ArrowLeft: () => audio && seek(audio.currentTime - 2, false), ArrowRight: () => audio && seek(audio.currentTime + 2, false),
      p: () => go($("previous")), n: () => go($("next")), Escape: () => { location.href = "index.html"; },
      z: () => Plotly.relayout("strip", { "xaxis.range": [0, page.shown_s] }),
    };
    if (/^[1-9]$/.test(event.key)) choose(Number(event.key) - 1);
    else if (keys[event.key] && !(event.key === " " && event.target.closest("button, audio, summary"))) { event.preventDefault(); keys[event.key](); }
  });
}

setUp(() => page && draw());
listen();
load();
loadIds();
