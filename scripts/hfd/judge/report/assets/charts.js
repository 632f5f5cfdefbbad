// Charts of the first page.
"use strict";

function drawEcdf() {
  const key = $("latency").value || "h9";
  const traces = shownModels.filter(hasOwnTimes).map((model) => {
    // Samples without a question have nothing to answer.
    const mine = rows.filter((row) => row.model === model && row.asked), total = mine.length;
    const values = mine.map((row) => row[key]).filter((value) => value !== null && value !== undefined).sort((a, b) => a - b);
    const n = Math.max(total, 1);
    const x = [], y = [];
    values.forEach((value, k) => { x.push(value); y.push((k + 1) / n); });
    if (!values.length) { x.push(0, 5); y.push(0, 0); }
    else { x.unshift(Math.min(0, values[0] - 0.5)); y.unshift(0); x.push(Math.max(5, values.at(-1) + 1)); y.push(values.length / n); }
    return { type: "scatter", mode: "lines", line: { shape: "hv", color: colourOf(model) }, x, y,
      name: `${model} · ${t("no_answer")} ${(100 * (1 - values.length / n)).toFixed(0)} %` };
  });
  Plotly.react("ecdf", traces, plotLayout({ showlegend: true, xaxis: { title: { text: t("seconds") } }, yaxis: { range: [0, 1.02], title: { text: t("cumulative") } } }), PLOT);
}

function drawHeatmap() {
  const order = data.outcome_order;
  const byModel = shownModels.map((model) => new Map(rows.filter((row) => row.model === model).map((row) => [row.id, order.indexOf(row.outcome)])));
  const ids = [...hesitation].sort((a, b) => byModel.reduce((sum, map) => sum + (map.get(a) ?? 9) - (map.get(b) ?? 9), 0));
  const step = 1 / order.length;
  const scale = order.flatMap((name, at) => [[at * step, OUTCOME_COLOURS[name]], [(at + 1) * step, OUTCOME_COLOURS[name]]]);
  Plotly.react("heatmap", [{
    type: "heatmap", x: ids.map((_, at) => at), y: shownModels, z: byModel.map((map) => ids.map((id) => map.get(id) ?? null)), customdata: byModel.map(() => ids),
    text: byModel.map((map) => ids.map((id) => `${id}: ${named(order[map.get(id)] ?? "")}`)), hovertemplate: "%{y}<br>%{text}<extra></extra>",
    colorscale: scale, zmin: -0.5, zmax: order.length - 0.5, xgap: ids.length < 200 ? 1 : 0, ygap: 2,
    colorbar: { tickvals: order.map((_, at) => at), ticktext: order.map(named), thickness: 10, outlinewidth: 0 },
  }], plotLayout({ xaxis: { showticklabels: false, showgrid: false }, yaxis: { showgrid: false, fixedrange: true } }), PLOT);
  const plot = $("heatmap");
  plot.removeAllListeners?.("plotly_click");
  plot.on("plotly_click", (event) => { const point = event.points[0]; location.href = sampleUrl(point.customdata, point.y); });
}

function drawScatter() {
  const traces = shownModels.map((model) => {
    const mine = rows.filter((row) => row.model === model && typeof row.settled === "number");
    return { type: "scattergl" in Plotly ? "scattergl" : "scatter", mode: "markers", name: model,
      marker: { size: 6, opacity: 0.75, color: colourOf(model) },
      x: mine.map((row) => row.q1), y: mine.map((row) => row.q1 + row.settled), customdata: mine.map((row) => row.id),
      hovertemplate: "%{customdata}<br>%{x:.2f} → %{y:.2f} s<extra></extra>" };
  });
  const end = rows.reduce((most, row) => Math.max(most, row.q1 ?? 0), 1);
  traces.push({ type: "scatter", mode: "lines", x: [0, end], y: [0, end], line: { color: css("--soft"), dash: "dot", width: 1 }, hoverinfo: "skip", showlegend: false });
  Plotly.react("scatter", traces, plotLayout({ xaxis: { title: { text: t("q1") } }, yaxis: { title: { text: t("onset") } } }), PLOT);
  const plot = $("scatter");
  plot.removeAllListeners?.("plotly_click");
  plot.on("plotly_click", (event) => { const id = event.points[0].customdata; if (id) location.href = sampleUrl(id, shownModels[event.points[0].curveNumber]); });
}

function drawLags() {
  const edges = data.lag_edges_ms;
  const labels = [`< ${edges[0]}`, ...edges.slice(1).map((edge, at) => `${edges[at]}–${edge}`), `≥ ${edges.at(-1)}`];
  const traces = shownModels.filter(hasOwnTimes).map((model) => {
    const counts = data.lags[model], total = counts.reduce((sum, n) => sum + n, 0);
    return { type: "bar", name: model, marker: { color: colourOf(model) }, x: labels, y: counts.map((n) => 100 * n / total),
      text: counts.map((n) => `${n} ${t("of")} ${total}`), hoverinfo: "name+x+text", textposition: "none" };
  });
  Plotly.react("lag", traces, plotLayout({ barmode: "group", xaxis: { type: "category", title: { text: t("lag_axis") } },
    yaxis: { type: "log", range: [-2, 2], dtick: 1, ticksuffix: " %", title: { text: t("units") } } }), PLOT);
}

function drawContext() {
  const known = shownModels.filter((model) => data.context[model].median.length);
  $("context-hint").textContent = known.length ? `${t("context_hint")} ${t("context_band")}` : t("no_context");
  $("context").hidden = !known.length;
  if (!known.length) return;
  const traces = known.flatMap((model) => {
    const { least, median, most } = data.context[model], colour = colourOf(model);
    const seconds = median.map((_, at) => at);
    const edge = { type: "scatter", mode: "lines", x: seconds, line: { shape: "hv", width: 0 }, hoverinfo: "skip", showlegend: false };
    return [
      { ...edge, y: least }, { ...edge, y: most, fill: "tonexty", fillcolor: `${colour}33` },
      { type: "scatter", mode: "lines", name: model, x: seconds, y: median, line: { shape: "hv", color: colour } },
    ];
  });
  Plotly.react("context", traces, plotLayout({ xaxis: { title: { text: t("media") } }, yaxis: { rangemode: "tozero", title: { text: t("tokens") } }, showlegend: true }), PLOT);
}

