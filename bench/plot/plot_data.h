#pragma once

#include <string>
#include <utility>
#include <vector>

namespace torpor::bench {

// What tools/dev/plot.py draws. A benchmark writes it beside its figures if `make bench` says where
// (TORPOR_BENCH_PLOT_DIR); otherwise nothing is written.

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

// Write NAME.plot.json. A file that cannot be written ends the process.
void WritePlot(const std::string& name, const CdfPlot& plot);
void WritePlot(const std::string& name, const BarPlot& plot);

// The value that the share `rank` (0 to 1) of the samples does not exceed; 0 without samples.
double Quantile(std::vector<double> samples, double rank);

}  // namespace torpor::bench
