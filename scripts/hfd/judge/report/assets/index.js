// The first page: coverage, rule matrix, charts, and the table of all samples.
"use strict";
const data = HFD.data;
const column = Object.fromEntries(data.columns.map((name, at) => [name, at]));
const rows = data.rows.map((row, key) => {
  const made = { key, model: data.models[row[0]] };
  data.columns.forEach((name, at) => { if (at) made[name] = row[at]; });
  return made;
});
const hesitation = new Set(data.hesitation);
const OUTCOME_RATES = ["h1_gap_takeover", "h2_prefix_barge_in", "h3_correction_barge_in", "h5_hold_failure", "h11_responded"];
const LATENCIES = { h9: "H9 response (speech)", settled: "H9 settled start", h12: "H12 first text", h13: "H13 first audio packet" };
const sampleUrl = (id, model) => `sample.html#id=${encodeURIComponent(id)}${model ? `&model=${encodeURIComponent(model)}` : ""}`;
const open = (row) => { location.href = sampleUrl(row.id, row.model); };
const pick = (rule) => data.rule_names.find(([code]) => code === rule);
let table = null;

const ruleName = (code, title) => `${code} ${isChinese() ? CHINESE[code] : title}`;

function drawAbout() {
  const about = data.about;
  const versions = Object.entries(about.code_versions).map(([name, n]) => `${name} (${n})`).join(", ");
  $("about").textContent = `${about.samples} samples · ${about.made} · manifest ${about.manifest_sha256.slice(0, 12)} · ${versions}`;
}

function drawCoverage() {
  const keys = Object.keys(Object.values(data.coverage)[0] ?? {});
  $("coverage").replaceChildren(
    element("tr", {}, element("th"), ...keys.map((key) => element("th", {}, named(key)))),
    ...data.models.map((model) => element("tr", {}, element("th", {}, model),
      ...keys.map((key) => element("td", { class: "n" }, String(data.coverage[model][key]))))));
}

function drawMatrix() {
  const mark = { pass: "✓", fail: "✗", not_evidenced: "?" };
  const cell = (model, code) => {
    const verdict = data.rules[model][code];
    const name = `${model} ${code} ${verdict.status.replace("_", " ")}`;
    return element("td", { class: "mark" }, element("button", {
      type: "button", class: verdict.status, title: verdict.reason, "aria-label": name,
      onclick: () => showRule(model, code, verdict),
    }, mark[verdict.status]));
  };
  $("matrix").classList.toggle("one", data.models.length === 1);
  $("matrix").replaceChildren(
    element("tr", {}, element("th"), ...data.models.map((model) => element("th", {}, model))),
    ...data.rule_names.map(([code, title, question]) => element("tr", {},
      element("th", { title: question }, ruleName(code, title)), ...data.models.map((model) => cell(model, code)),
      // With one model there is room for the reasons.
      ...(data.models.length === 1 ? [element("td", { class: "why" }, data.rules[data.models[0]][code].reason)] : []))));
}

function showRule(model, code, verdict) {
  $("reason").replaceChildren(element("b", {}, `${model}, ${ruleName(code, pick(code)[1])}: ${named(verdict.status)}. `), verdict.reason);
  if (verdict.status === "fail") setFilters({ model, rule: code });
}

function drawRates() {
  const denominator = $("strict").checked ? "strict" : "scored";
  const traces = data.models.map((model, at) => {
    const found = OUTCOME_RATES.map((key) => data.metrics.find((row) =>
      row.model === model && row.metric === key && row.statistic === "rate" && row.denominator === denominator));
    return {
      type: "bar", name: model, marker: { color: MODEL_COLOURS[at % MODEL_COLOURS.length] },
      x: ["H1 gap", "H2 prefix", "H3 correction", "H5 any", "H11 responds"], y: found.map((row) => row ? 100 * row.value : null),
      text: found.map((row) => row ? `${(100 * row.value).toFixed(0)} % of ${row.n}` : ""), hoverinfo: "name+text", textposition: "none",
      error_y: { type: "data", symmetric: false, color: css("--soft"),
        array: found.map((row) => row ? 100 * (row.high - row.value) : 0), arrayminus: found.map((row) => row ? 100 * (row.value - row.low) : 0) },
    };
  });
  Plotly.react("rates", traces, plotLayout({ barmode: "group", yaxis: { range: [0, 100], ticksuffix: " %" } }), PLOT);
}

function drawEcdf() {
  const key = $("latency").value || "h9";
  const traces = data.models.map((model, at) => {
    const mine = rows.filter((row) => row.model === model && row.q1 !== null || row.model === model && row.q1 === undefined);
    const total = rows.filter((row) => row.model === model).length;
    const values = mine.map((row) => row[key]).filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
    const n = Math.max(total, 1);
    const x = [], y = [];
    values.forEach((value, k) => { x.push(value); y.push((k + 1) / n); });
    if (!values.length) { x.push(0, 5); y.push(0, 0); }
    else { x.unshift(Math.min(0, values[0] - 0.5)); y.unshift(0); x.push(Math.max(5, values.at(-1) + 1)); y.push(values.length / n); }
    return { type: "scatter", mode: "lines", line: { shape: "hv", color: MODEL_COLOURS[at % MODEL_COLOURS.length] }, x, y,
      name: `${model} · ${t("no_answer")} ${(100 * (1 - values.length / n)).toFixed(0)} %` };
  });
  Plotly.react("ecdf", traces, plotLayout({ showlegend: true, xaxis: { title: { text: t("seconds") } }, yaxis: { range: [0, 1.02], title: { text: t("cumulative") } } }), PLOT);
}

function drawHeatmap() {
  const order = data.outcome_order;
  const byModel = data.models.map((model) => new Map(rows.filter((row) => row.model === model).map((row) => [row.id, order.indexOf(row.outcome)])));
  const ids = [...hesitation].sort((a, b) => byModel.reduce((sum, map) => sum + (map.get(a) ?? 9) - (map.get(b) ?? 9), 0));
  const step = 1 / order.length;
  const scale = order.flatMap((name, at) => [[at * step, OUTCOME_COLOURS[name]], [(at + 1) * step, OUTCOME_COLOURS[name]]]);
  Plotly.react("heatmap", [{
    type: "heatmap", x: ids.map((_, at) => at), y: data.models, z: byModel.map((map) => ids.map((id) => map.get(id) ?? null)), customdata: byModel.map(() => ids),
    text: byModel.map((map) => ids.map((id) => `${id}: ${named(order[map.get(id)] ?? "")}`)), hovertemplate: "%{y}<br>%{text}<extra></extra>",
    colorscale: scale, zmin: -0.5, zmax: order.length - 0.5, xgap: ids.length < 200 ? 1 : 0, ygap: 2,
    colorbar: { tickvals: order.map((_, at) => at), ticktext: order.map(named), thickness: 10, outlinewidth: 0 },
  }], plotLayout({ xaxis: { showticklabels: false, showgrid: false }, yaxis: { showgrid: false, fixedrange: true } }), PLOT);
  const plot = $("heatmap");
  plot.removeAllListeners?.("plotly_click");
  plot.on("plotly_click", (event) => { const point = event.points[0]; location.href = sampleUrl(point.customdata, point.y); });
}

function drawScatter() {
  const traces = data.models.map((model, at) => {
    const mine = rows.filter((row) => row.model === model && typeof row.settled === "number");
    return { type: "scattergl" in Plotly ? "scattergl" : "scatter", mode: "markers", name: model,
      marker: { size: 6, opacity: 0.75, color: MODEL_COLOURS[at % MODEL_COLOURS.length] },
      x: mine.map((row) => row.q1), y: mine.map((row) => row.q1 + row.settled), customdata: mine.map((row) => row.id),
      hovertemplate: "%{customdata}<br>%{x:.2f} → %{y:.2f} s<extra></extra>" };
  });
  const end = rows.reduce((most, row) => Math.max(most, row.q1 ?? 0), 1);
  traces.push({ type: "scatter", mode: "lines", x: [0, end], y: [0, end], line: { color: css("--soft"), dash: "dot", width: 1 }, hoverinfo: "skip", showlegend: false });
  Plotly.react("scatter", traces, plotLayout({ xaxis: { title: { text: t("q1") } }, yaxis: { title: { text: t("onset") } } }), PLOT);
  const plot = $("scatter");
  plot.removeAllListeners?.("plotly_click");
  plot.on("plotly_click", (event) => { const id = event.points[0].customdata; if (id) location.href = sampleUrl(id, data.models[event.points[0].curveNumber]); });
}

function drawLags() {
  const edges = data.lag_edges_ms;
  const labels = [`< ${edges[0]}`, ...edges.slice(1).map((edge, at) => `${edges[at]}–${edge}`), `≥ ${edges.at(-1)}`];
  const traces = data.models.map((model, at) => {
    const counts = data.lags[model], total = counts.reduce((sum, n) => sum + n, 0);
    return { type: "bar", name: model, marker: { color: MODEL_COLOURS[at % MODEL_COLOURS.length] }, x: labels, y: counts.map((n) => 100 * n / total),
      text: counts.map((n) => `${n} of ${total}`), hoverinfo: "name+x+text", textposition: "none" };
  });
  Plotly.react("lag", traces, plotLayout({ barmode: "group", xaxis: { type: "category", title: { text: t("lag_axis") } },
    yaxis: { type: "log", range: [-2, 2], dtick: 1, ticksuffix: " %", title: { text: t("units") } } }), PLOT);
}

function drawContext() {
  const told = data.models.filter((model) => data.context[model].median.length);
  $("context-hint").textContent = told.length ? `${t("context_hint")} ${t("context_band")}` : t("no_context");
  $("context").hidden = !told.length;
  if (!told.length) return;
  const traces = told.flatMap((model) => {
    const { least, median, most } = data.context[model], colour = MODEL_COLOURS[data.models.indexOf(model) % MODEL_COLOURS.length];
    const seconds = median.map((_, at) => at);
    const edge = { type: "scatter", mode: "lines", x: seconds, line: { shape: "hv", width: 0 }, hoverinfo: "skip", showlegend: false };
    return [
      { ...edge, y: least }, { ...edge, y: most, fill: "tonexty", fillcolor: `${colour}33` },
      { type: "scatter", mode: "lines", name: model, x: seconds, y: median, line: { shape: "hv", color: colour } },
    ];
  });
  Plotly.react("context", traces, plotLayout({ xaxis: { title: { text: t("media") } }, yaxis: { rangemode: "tozero", title: { text: t("tokens") } }, showlegend: true }), PLOT);
}

function drawMetrics() {
  const keys = ["model", "label", "statistic", "denominator", "value", "low", "high", "n"];
  const line = (row, names) => element("tr", {}, ...names.map((name) =>
    element("td", { class: typeof row[name] === "number" ? "n" : null }, name === "n" ? String(row[name]) : number(row[name], 3))));
  $("metrics").replaceChildren(element("tr", {}, ...keys.map((key) => element("th", {}, key))), ...data.metrics.map((row) => line(row, keys)));
  const paired = ["first", "second", "metric", "test", "n", "p"];
  $("paired").replaceChildren(...(data.paired.length ? [element("tr", {}, ...paired.map((key) => element("th", {}, key)))] : []), ...data.paired.map((row) => line(row, paired)));
}

// Filter, sort and the address ------------------------------------------------------------------
const state = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function setFilters(values) {
  const next = new URLSearchParams(Object.entries({ ...values }).filter(([, value]) => value));
  location.hash = next.toString();
  $("samples").scrollIntoView();
}

function changeState(change) {
  const next = new URLSearchParams(Object.entries({ ...state(), ...change }).filter(([, value]) => value));
  history.replaceState(null, "", `#${next}`);
}

function fillSelect(select, first, values, chosen) {
  select.replaceChildren(element("option", { value: "" }, first), ...values.map(([value, label]) => element("option", { value }, label)));
  select.value = chosen ?? "";
}

function drawFilters() {
  const now = state();
  fillSelect($("f-model"), t("any_model"), data.models.map((name) => [name, name]), now.model);
  fillSelect($("f-outcome"), t("any_outcome"), data.outcome_order.map((name) => [name, named(name)]), now.outcome);
  fillSelect($("f-rule"), t("any_rule"), data.rule_names.map(([code, title]) => [code, `✗ ${ruleName(code, title)}`]), now.rule);
  $("q").value = now.q ?? "";
  const chosen = $("latency").value;
  fillSelect($("latency"), LATENCIES.h9, Object.entries(LATENCIES).slice(1), chosen);
}

function applyFilters() {
  const now = state();
  const words = (now.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const guilty = now.rule && now.model ? new Set(data.rules[now.model]?.[now.rule]?.evidence.samples ?? []) : null;
  table.setFilter((row) =>
    (!now.model || row.model === now.model) && (!now.outcome || row.outcome === now.outcome) &&
    (!now.rule || row.rules.split(" ").includes(now.rule) || guilty?.has(row.id)) &&
    words.every((word) => `${row.id} ${row.task} ${row.reason} ${row.status}`.toLowerCase().includes(word)));
  const shown = table.getDataCount("active");
  $("count").textContent = `${shown} ${t("of")} ${rows.length}`;
}

function makeTable() {
  const seconds = (title, field) => ({ title, field, hozAlign: "right", sorter: "number", width: 92, sorterParams: { alignEmptyValues: "bottom" }, formatter: (cell) => number(cell.getValue()) });
  const now = state();
  table = new Tabulator("#table", {
    data: rows, index: "key", maxHeight: "560px", layout: "fitDataStretch", placeholder: "0",
    initialSort: now.sort ? [{ column: now.sort, dir: now.dir ?? "asc" }] : [],
    columns: [
      { title: "sample", field: "id", minWidth: 150, frozen: innerWidth > 700 }, { title: "model", field: "model" }, { title: "task", field: "task" },
      { title: "outcome", field: "outcome", formatter: (cell) => element("span", { style: `border-left: .6em solid ${OUTCOME_COLOURS[cell.getValue()]}; padding-left: .4em` }, named(cell.getValue())),
        sorter: (a, b) => data.outcome_order.indexOf(a) - data.outcome_order.indexOf(b) },
      { title: "fails", field: "rules" },
      seconds("H9 s", "h9"), seconds("settled s", "settled"), seconds("text s", "h12"), seconds("audio s", "h13"), seconds("overlap s", "overlap"), seconds("RTF", "rtf"), seconds("WER", "wer"),
      { title: "reason", field: "reason" },
    ],
  });
  table.on("rowClick", (_, row) => open(row.getData()));
  table.on("tableBuilt", () => { applyFilters(); document.body.dataset.ready = "table"; });
  table.on("dataSorted", (sorters) => { if (document.body.dataset.ready && sorters.length) changeState({ sort: sorters[0].field, dir: sorters[0].dir }); });
}

let here = -1;
function move(step) {
  const active = table.getRows("active");
  if (!active.length) return;
  document.querySelector(".tabulator-row.here")?.classList.remove("here");
  here = Math.max(0, Math.min(active.length - 1, here + step));
  const row = active[here];
  row.scrollTo("nearest").then(() => row.getElement().classList.add("here"));
}

function listen() {
  for (const [id, key] of [["f-model", "model"], ["f-outcome", "outcome"], ["f-rule", "rule"], ["q", "q"]]) {
    $(id).addEventListener(id === "q" ? "input" : "change", () => { changeState({ [key]: $(id).value }); here = -1; applyFilters(); });
  }
  $("clear").addEventListener("click", () => { changeState({ model: "", outcome: "", rule: "", q: "" }); drawFilters(); applyFilters(); });
  $("strict").addEventListener("change", drawRates);
  $("latency").addEventListener("change", drawEcdf);
  addEventListener("hashchange", () => { drawFilters(); applyFilters(); });
  addEventListener("keydown", (event) => {
    if (event.target.closest("input, select, textarea")) { if (event.key === "Escape") event.target.blur(); return; }
    if (event.key === "/") { event.preventDefault(); $("q").focus(); }
    if (event.key === "j" || event.key === "ArrowDown") { event.preventDefault(); move(1); }
    if (event.key === "k" || event.key === "ArrowUp") { event.preventDefault(); move(-1); }
    if (event.key === "Enter" && here >= 0) open(table.getRows("active")[here].getData());
  });
}

function drawCharts() { drawRates(); drawEcdf(); drawHeatmap(); drawScatter(); drawLags(); drawContext(); }

setUp(() => { drawCoverage(); drawMatrix(); drawFilters(); drawCharts(); applyFilters(); table.redraw(true); });
drawAbout(); drawCoverage(); drawMatrix(); drawMetrics(); drawFilters();
addEventListener("DOMContentLoaded", () => {
  makeTable();
  listen();
  // Charts come after the first paint, so that the page can be used at once.
  requestAnimationFrame(() => setTimeout(drawCharts));
});
