// The first page: rule matrix, and the table of all samples.
"use strict";
const column = Object.fromEntries(data.columns.map((name, at) => [name, at]));
const rows = data.rows.map((row, key) => {
  const made = { key, model: data.models[row[0]] };
  data.columns.forEach((name, at) => { if (at) made[name] = row[at]; });
  return made;
});
const hesitation = new Set(data.hesitation);
const LATENCIES = { h9: "h9_response_s", settled: "h9_settled_s", h12: "h12_first_text_s", h13: "h13_first_audio_s" };
const sampleUrl = (id, model) => `sample.html#id=${encodeURIComponent(id)}${model ? `&model=${encodeURIComponent(model)}` : ""}`;
const open = (row) => { location.href = sampleUrl(row.id, row.model); };
const pick = (rule) => data.rule_names.find(([code]) => code === rule);
let table = null;

const ruleName = (code, title) => `${code} ${isChinese() ? CHINESE[code] : title}`;

function drawAbout() {
  const about = data.about;
  const versions = Object.entries(about.code_versions).map(([name, n]) => `${name} (${n})`).join(", ");
  // Two runs side by side (snakemake compare): which folders they are, and what changed between them.
  const compared = Object.entries(about.compared ?? {}).map(([name, folder]) => ` · ${name}: ${folder}`).join("");
  const changed = Object.entries(about.changes ?? {}).map(([name, [old, now]]) => ` · ${name}: ${JSON.stringify(old)} → ${JSON.stringify(now)}`).join("");
  $("about").textContent = `${about.samples} ${t("samples_word")} · ${about.made} · ${t("manifest")} ${about.manifest_sha256.slice(0, 12)} · ${versions ? `${t("code")} ${versions}` : ""}${compared}${changed}`;
}

function drawMatrix() {
  const mark = { pass: "✓", fail: "✗", not_evidenced: "?" };
  const cell = (model, code) => {
    const verdict = data.rules[model][code];
    const name = `${model} ${code} ${verdict.status.replace("_", " ")}`;
    return element("td", { class: "mark" }, element("button", {
      type: "button", class: verdict.status, title: reasonText(verdict.reason), "aria-label": name,
      onclick: () => showRule(model, code, verdict),
    }, mark[verdict.status]));
  };
  const one = shownModels.length === 1;
  $("matrix").classList.toggle("one", one);
  $("matrix").replaceChildren(
    element("tr", {}, element("th"), ...shownModels.map((model) => element("th", {}, model)), element("th", {}, one ? t("why") : t("question"))),
    ...data.rule_names.map(([code, title, question]) => {
      const asked = isChinese() ? RULES_ZH[code] ?? question : question;
      return element("tr", {}, element("th", {}, ruleName(code, title)), ...shownModels.map((model) => cell(model, code)),
        // With one model there is room for the reasons, too.
        element("td", { class: "why" }, element("span", {}, asked), ...(one ? [element("small", {}, reasonText(data.rules[shownModels[0]][code].reason))] : [])));
    }));
}

function showRule(model, code, verdict) {
  $("reason").replaceChildren(element("b", {}, `${model}, ${ruleName(code, pick(code)[1])}: ${named(verdict.status)}. `), reasonText(verdict.reason));
  if (verdict.status === "fail") setFilters({ model, rule: code });
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
  fillSelect($("f-task"), t("any_task"), [...new Set(rows.map((row) => row.task))].map((name) => [name, named(name)]), now.task);
  fillSelect($("f-outcome"), t("any_outcome"), data.outcome_order.map((name) => [name, named(name)]), now.outcome);
  fillSelect($("f-rule"), t("any_rule"), data.rule_names.map(([code, title]) => [code, `✗ ${ruleName(code, title)}`]), now.rule);
  $("q").value = now.q ?? "";
  const chosen = $("latency").value;
  fillSelect($("latency"), metricName(LATENCIES.h9), Object.entries(LATENCIES).slice(1).map(([key, metric]) => [key, metricName(metric)]), chosen);
}

function applyFilters() {
  const now = state();
  const words = (now.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const guilty = now.rule && now.model ? new Set(data.rules[now.model]?.[now.rule]?.evidence.samples ?? []) : null;
  table.setFilter((row) =>
    (!now.model || row.model === now.model) && (!now.task || row.task === now.task) && (!now.outcome || row.outcome === now.outcome) &&
    (!now.rule || row.rules.split(" ").includes(now.rule) || guilty?.has(row.id)) &&
    words.every((word) => `${row.id} ${row.task} ${row.reason} ${row.status}`.toLowerCase().includes(word)));
  const shown = table.getDataCount("active");
  $("count").textContent = `${shown} ${t("of")} ${rows.length}`;
}

function makeTable() {
  table?.destroy();
  const seconds = (title, field) => ({ title, field, hozAlign: "right", sorter: "number", width: 92, sorterParams: { alignEmptyValues: "bottom" }, formatter: (cell) => number(cell.getValue()) });
  const now = state();
  table = new Tabulator("#table", {
    data: rows, index: "key", maxHeight: "560px", layout: "fitDataStretch", placeholder: t("no_match"),
    initialSort: now.sort ? [{ column: now.sort, dir: now.dir ?? "asc" }] : [],
    columns: [
      { title: t("sample"), field: "id", minWidth: 150, frozen: innerWidth > 700 }, { title: t("model"), field: "model" }, { title: t("task"), field: "task", formatter: (cell) => named(cell.getValue()) },
      { title: t("outcome"), field: "outcome", formatter: (cell) => element("span", { style: `border-left: .6em solid ${OUTCOME_COLOURS[cell.getValue()]}; padding-left: .4em` }, named(cell.getValue())),
        sorter: (a, b) => data.outcome_order.indexOf(a) - data.outcome_order.indexOf(b) },
      { title: t("fails"), field: "rules" },
      seconds("H9 s", "h9"), seconds(t("settled_s"), "settled"), seconds(t("text_s"), "h12"), seconds(t("audio_s"), "h13"), seconds(t("overlap_s"), "overlap"), seconds("RTF", "rtf"), seconds("WER", "wer"),
      { title: t("why"), field: "reason", formatter: (cell) => reasonText(cell.getValue()) },
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
  for (const [id, key] of [["f-model", "model"], ["f-task", "task"], ["f-outcome", "outcome"], ["f-rule", "rule"], ["q", "q"]]) {
    $(id).addEventListener(id === "q" ? "input" : "change", () => { changeState({ [key]: $(id).value }); here = -1; applyFilters(); });
  }
  $("clear").addEventListener("click", () => { changeState({ model: "", task: "", outcome: "", rule: "", q: "" }); drawFilters(); applyFilters(); });
  for (const id of ["strict", "stratum"]) $(id).addEventListener("change", drawMetrics);
  $("pair").addEventListener("change", drawPaired);
  $("sensitivity-metric").addEventListener("change", drawSensitivity);
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

function drawCharts() { drawEcdf(); drawHeatmap(); drawScatter(); drawLags(); drawContext(); }

function drawTables() { drawAbout(); drawCards(); drawMatrix(); fillStrata(); drawMetrics(); drawPaired(); drawSensitivity(); drawAgreement(); drawMeasurements(); drawFilters(); }

setUp(() => { drawTables(); drawCharts(); makeTable(); });
drawTables();
addEventListener("DOMContentLoaded", () => {
  makeTable();
  listen();
  // Charts come after the first paint, so that the page can be used at once.
  requestAnimationFrame(() => setTimeout(drawCharts));
});
