#include "tools/sim/figures/figure_plot.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "tools/plot/plot_data.h"

namespace torpor::sim {

extern const char kPlotScript[];

namespace {

constexpr std::string_view kPicture = ".svg";

double Number(const Json& row, const std::string& key) {
  const Json::json_pointer pointer(absl::StrCat("/", key));
  return row.contains(pointer) ? row.at(pointer).get<double>() : 0;
}

// What tells this series from others: its labels but that of the x axis and what all have alike.
std::string SeriesName(const Figure& figure, std::size_t row) {
  const Json& labels = figure.cases[row].labels;
  std::string name;
  for (const auto& [key, value] : labels.items()) {
    if (key == figure.plot->x_key) continue;
    bool is_alike = true;
    for (const Case& other : figure.cases) is_alike = is_alike && other.labels[key] == value;
    if (is_alike && key != "system") continue;
    absl::StrAppend(&name, name.empty() ? "" : " ",
                    value.is_string() ? value.get<std::string>() : value.dump());
    if (key == "deadline_ms") name += " ms";
    if (key == "rate_factor") name += " x";
  }
  return name;
}

plot::LinePlot Lines(const Figure& figure, const std::vector<Json>& rows) {
  plot::LinePlot plot{
      figure.title, figure.plot->x_label, figure.plot->y_label, figure.plot->log_y, {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string name = SeriesName(figure, i);
    auto series = plot.series.begin();
    while (series != plot.series.end() && series->name != name) ++series;
    if (series == plot.series.end()) series = plot.series.insert(series, {name, {}});
    series->points.emplace_back(Number(rows[i], figure.plot->x_key),
                                Number(rows[i], figure.plot->y_key));
  }
  for (plot::LineSeries& series : plot.series) {
    std::sort(series.points.begin(), series.points.end());
  }
  return plot;
}

plot::BarPlot Bars(const Figure& figure, const std::vector<Json>& rows) {
  plot::BarPlot plot{figure.title, figure.plot->y_label, figure.plot->log_y, {}, {}};
  for (const FigurePlot::Bar& bar : figure.plot->bars) plot.groups.push_back(bar.name);  // NOLINT
  for (std::size_t i = 0; i < rows.size(); ++i) {
    plot::BarSeries series{SeriesName(figure, i), {}};
    for (const FigurePlot::Bar& bar : figure.plot->bars) {
      series.values.push_back(Number(rows[i], bar.key));  // NOLINT: a handful of them
    }
    plot.series.push_back(std::move(series));  // NOLINT: a handful of them
  }
  return plot;
}

absl::Status Draw(const std::string& data_file) {
  const std::string quoted =
      absl::StrCat("'", absl::StrReplaceAll(data_file, {{"'", "'\\''"}}), "'");
  FILE* const python = popen(absl::StrCat("python3 - ", quoted).c_str(), "w");
  if (python == nullptr) return absl::UnavailableError("cannot start python3");
  std::fputs(kPlotScript, python);
  if (pclose(python) == 0) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot draw ", data_file, "; this needs python3 and gnuplot"));
}

}  // namespace

std::string FigurePlotJson(const Figure& figure, const std::vector<Json>& rows) {
  return figure.plot->bars.empty() ? plot::PlotJson(Lines(figure, rows))
                                   : plot::PlotJson(Bars(figure, rows));
}

absl::Status DrawFigure(const Figure& figure, const std::vector<Json>& rows,
                        const std::string& svg_file) {
  if (!figure.plot) {
    return absl::InvalidArgumentError(absl::StrCat(figure.name, " has no plot"));
  }
  if (!svg_file.ends_with(kPicture)) {
    return absl::InvalidArgumentError(absl::StrCat("--plot ", svg_file, ": must end in .svg"));
  }
  const std::string data_file =
      absl::StrCat(svg_file.substr(0, svg_file.size() - kPicture.size()), ".plot.json");
  std::ofstream file(data_file);
  file << FigurePlotJson(figure, rows);
  if (!file.flush()) return absl::UnavailableError(absl::StrCat("cannot write ", data_file));
  file.close();
  return Draw(data_file);
}

}  // namespace torpor::sim
