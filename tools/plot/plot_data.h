#pragma once

#include <string>
#include <utility>
#include <vector>

namespace torpor::plot {

// The plots that tools/dev/plot.py draws from files NAME.plot.json.

// The samples of a curve.
struct CdfSeries {
  std::string name;
  std::vector<double> samples;
};

// Cumulative distributions: the share of samples up to x, for each series.
struct CdfPlot {
  std::string title;
  std::string x_label;
  bool log_x = false;
  std::vector<CdfSeries> series;
};

// Bars of a colour, a bar in each group.
struct BarSeries {
  std::string name;
  std::vector<double> values;  // a value for each group
};

// Groups of bars, side by side.
struct BarPlot {
  std::string title;
  std::string y_label;
  bool log_y = false;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

// The points of a line, and the line's panel.
struct LineSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), in order of x
  std::string panel{};
};

// Lines from point to point, in panels. The y axis begins at 0 unless `log_y`.
struct LinePlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_y = false;
  std::vector<LineSeries> series;
};

// Returns the contents of a NAME.plot.json, a single line.
std::string PlotJson(const CdfPlot& plot);
std::string PlotJson(const BarPlot& plot);
std::string PlotJson(const LinePlot& plot);

// Returns the quantile of `samples` at `rank` (0 to 1): the smallest sample not below that share of
// samples; 0 without samples.
double Quantile(std::vector<double> samples, double rank);

}  // namespace torpor::plot
