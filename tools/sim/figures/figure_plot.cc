#include "tools/sim/figures/figure_plot.h"

#include <algorithm>
#include <cstdio>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status_macros.h"
#include "base/write_file.h"
#include "tools/plot/plot_data.h"
#include "tools/sim/figures/labels.h"

namespace torpor::sim {

extern const char kPlotScript[];

namespace {

constexpr std::string_view kPicture = ".svg";

// Whether some rows with the same x have another of these labels.
bool TellsApart(const Figure& figure, const std::string& key) {
  std::vector<std::pair<Json, Json>> seen;  // of each x
  for (const Case& one : figure.cases) {
    const Json x = one.labels.value(figure.plot->x_key, Json());
    const Json& value = one.labels.at(key);
    const auto same_x =
        std::find_if(seen.begin(), seen.end(), [&](const auto& other) { return other.first == x; });
    if (same_x == seen.end()) {
      seen.emplace_back(x, value);  // NOLINT: a handful of them
    } else if (same_x->second != value) {
      return true;
    }
  }
  return false;
}

// What need not be said to tell rows from each other.
std::vector<std::string> NeedlessLabels(const Figure& figure) {
  std::vector<std::string> needless;
  for (const auto& [key, value] : figure.cases.front().labels.items()) {
    const bool is_needed = key == "system" || TellsApart(figure, key);
    if (!is_needed) needless.push_back(key);  // NOLINT: a handful of them
  }
  return needless;
}

// A line for each system, in a panel for what else tells rows from each other.
plot::LinePlot Lines(const Figure& figure, const std::vector<Json>& rows) {
  plot::LinePlot plot{
      figure.title, figure.plot->x_label, figure.plot->y_label, figure.plot->log_y, {}};
  std::vector<std::string> named_elsewhere = NeedlessLabels(figure);
  named_elsewhere.emplace_back("system");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& labels = figure.cases[i].labels;
    const auto name = labels.at("system").get<std::string>();
    const std::string panel = NameOf(labels, named_elsewhere);
    auto series = plot.series.begin();
    while (series != plot.series.end() && (series->name != name || series->panel != panel)) {
      ++series;
    }
    if (series == plot.series.end()) series = plot.series.insert(series, {name, {}, panel});
    series->points.emplace_back(MeasureIn(rows[i], figure.plot->x_key).value_or(0),
                                MeasureIn(rows[i], figure.plot->y_key).value_or(0));
  }
  for (plot::LineSeries& series : plot.series) {
    std::sort(series.points.begin(), series.points.end());
  }
  return plot;
}

// A group of bars for each row, named by the labels that tell rows apart.
plot::BarPlot Bars(const Figure& figure, const std::vector<Json>& rows) {
  plot::BarPlot plot{figure.title, figure.plot->y_label, figure.plot->log_y, {}, {}};
  for (const FigurePlot::Bar& bar : figure.plot->bars) plot.groups.push_back(bar.name);  // NOLINT
  const std::vector<std::string> needless = NeedlessLabels(figure);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    plot::BarSeries series{NameOf(figure.cases[i].labels, needless), {}};
    for (const FigurePlot::Bar& bar : figure.plot->bars) {
      series.values.push_back(MeasureIn(rows[i], bar.key).value_or(0));  // NOLINT
    }
    plot.series.push_back(std::move(series));  // NOLINT: a handful of them
  }
  return plot;
}

// Runs the embedded plot script. Returns Unavailable if python3 or gnuplot is missing or fails.
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
  TORPOR_RETURN_IF_ERROR(WriteFile(data_file, FigurePlotJson(figure, rows)));
  return Draw(data_file);
}

}  // namespace torpor::sim
