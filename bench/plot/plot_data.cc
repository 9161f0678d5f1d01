#include "bench/plot/plot_data.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

namespace torpor::bench {
namespace {

// More points than a plot has pixels tell nothing more; the tail gets its own.
constexpr int kBodyPoints = 200;
constexpr int kTailPoints = 100;

std::vector<double> Ranks() {
  std::vector<double> ranks;
  ranks.reserve(kBodyPoints + kTailPoints + 1);
  for (int i = 0; i < kBodyPoints; ++i) ranks.push_back(0.99 * i / kBodyPoints);
  for (int i = 0; i <= kTailPoints; ++i) ranks.push_back(0.99 + 0.01 * i / kTailPoints);
  return ranks;
}

// Of ascending samples.
double At(const std::vector<double>& samples, double rank) {
  if (samples.empty()) return 0;
  const double position = std::ceil(rank * static_cast<double>(samples.size())) - 1;
  const double last = static_cast<double>(samples.size() - 1);
  return samples[static_cast<std::size_t>(std::clamp(position, 0.0, last))];
}

void Write(const std::string& name, const nlohmann::json& plot) {
  const char* const folder = std::getenv("TORPOR_BENCH_PLOT_DIR");
  if (folder == nullptr) return;
  const std::string path = std::string(folder) + "/" + name + ".plot.json";
  std::ofstream file(path);
  file << plot.dump() << "\n";
  if (file.flush()) return;
  std::fprintf(stderr, "cannot write %s; TORPOR_BENCH_PLOT_DIR must be a folder\n", path.c_str());
  std::exit(1);
}

}  // namespace

double Quantile(std::vector<double> samples, double rank) {
  std::sort(samples.begin(), samples.end());
  return At(samples, rank);
}

void WritePlot(const std::string& name, const CdfPlot& plot) {
  nlohmann::json series = nlohmann::json::array();
  for (const CdfSeries& one : plot.series) {
    std::vector<double> samples = one.samples;
    std::sort(samples.begin(), samples.end());
    nlohmann::json points = nlohmann::json::array();
    for (const double rank : Ranks()) points.push_back({At(samples, rank), rank});
    series.push_back({{"name", one.name}, {"points", points}});
  }
  Write(name, {{"kind", "cdf"},
               {"title", plot.title},
               {"x_label", plot.x_label},
               {"log_x", plot.log_x},
               {"series", series}});
}

void WritePlot(const std::string& name, const BarPlot& plot) {
  nlohmann::json series = nlohmann::json::array();
  for (const BarSeries& one : plot.series) {
    series.push_back({{"name", one.name}, {"values", one.values}});
  }
  Write(name, {{"kind", "bars"},
               {"title", plot.title},
               {"y_label", plot.y_label},
               {"log_y", plot.log_y},
               {"groups", plot.groups},
               {"series", series}});
}

}  // namespace torpor::bench
