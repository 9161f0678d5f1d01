#pragma once

#include <string>
#include <utility>
#include <vector>

namespace torpor::plot {

// What tools/dev/plot.py draws from a file NAME.plot.json.

struct CdfSeries {
  std::string name;
  std::vector<double> samples;
};

// The share of samples up to x, for each series.
struct CdfPlot {
  std::string title;
  std::string x_label;
  bool log_x = false;
  std::vector<CdfSeries> series;
};

struct BarSeries {
  std::string name;
  std::vector<double> values;  // one a group
};

// Bars side by side in groups.
struct BarPlot {
  std::string title;
  std::string y_label;
  bool log_y = false;
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

struct LineSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // (x, y), in order of x
  std::string panel{};
};

// Lines from point to point, those of each panel together; the y axis begins at 0 unless it is
// logarithmic.
struct LinePlot {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool log_y = false;
  std::vector<LineSeries> series;
};

// The contents of the file, a line.
std::string PlotJson(const CdfPlot& plot);
std::string PlotJson(const BarPlot& plot);
std::string PlotJson(const LinePlot& plot);

// The value that the share `rank` (0 to 1) of the samples does not exceed; 0 without samples.
double Quantile(std::vector<double> samples, double rank);

}  // namespace torpor::plot
