#include "tools/plot/plot_data.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/nearest_rank.h"

namespace torpor::plot {
namespace {

using nlohmann::json;

// Points of a curve: as many as a plot has pixels, and additional points for the tail.
constexpr int kBodyPoints = 200;
constexpr int kTailPoints = 100;

std::vector<double> Ranks() {
  std::vector<double> ranks;
  ranks.reserve(kBodyPoints + kTailPoints + 1);
  for (int i = 0; i < kBodyPoints; ++i) ranks.push_back(0.99 * i / kBodyPoints);
  for (int i = 0; i <= kTailPoints; ++i) ranks.push_back(0.99 + 0.01 * i / kTailPoints);
  return ranks;
}

// Returns the quantile of ascending samples.
double At(const std::vector<double>& samples, double rank) {
  if (samples.empty()) return 0;
  return samples[NearestRank(samples.size(), rank)];
}

}  // namespace

std::string PlotJson(const CdfPlot& plot) {
  json series = json::array();
  for (const CdfSeries& one : plot.series) {
    std::vector<double> samples = one.samples;
    std::sort(samples.begin(), samples.end());
    json points = json::array();
    for (const double rank : Ranks()) points.push_back({At(samples, rank), rank});
    series.push_back({{"name", one.name}, {"points", points}});
  }
  const json whole = {{"kind", "cdf"},
                      {"title", plot.title},
                      {"x_label", plot.x_label},
                      {"log_x", plot.log_x},
                      {"series", series}};
  return whole.dump() + "\n";
}

std::string PlotJson(const BarPlot& plot) {
  json series = json::array();
  for (const BarSeries& one : plot.series) {
    series.push_back({{"name", one.name}, {"values", one.values}});
  }
  const json whole = {{"kind", "bars"},      {"title", plot.title},   {"y_label", plot.y_label},
                      {"log_y", plot.log_y}, {"groups", plot.groups}, {"series", series}};
  return whole.dump() + "\n";
}

std::string PlotJson(const LinePlot& plot) {
  json series = json::array();
  for (const LineSeries& one : plot.series) {
    json entry = {{"name", one.name}, {"points", one.points}};
    if (!one.panel.empty()) entry["panel"] = one.panel;
    series.push_back(std::move(entry));
  }
  const json whole = {{"kind", "lines"},         {"title", plot.title}, {"x_label", plot.x_label},
                      {"y_label", plot.y_label}, {"log_y", plot.log_y}, {"series", series}};
  return whole.dump() + "\n";
}

double Quantile(std::vector<double> samples, double rank) {
  std::sort(samples.begin(), samples.end());
  return At(samples, rank);
}

}  // namespace torpor::plot
