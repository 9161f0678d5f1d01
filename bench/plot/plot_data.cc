#include "bench/plot/plot_data.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/write_file.h"

namespace torpor::bench {
namespace {

void Write(const std::string& name, const std::string& json) {
  const char* const folder = std::getenv("TORPOR_BENCH_PLOT_DIR");
  if (folder == nullptr) return;
  const std::string path = std::string(folder) + "/" + name + ".plot.json";
  const absl::Status written = WriteFile(path, json);
  if (written.ok()) return;
  std::fprintf(stderr, "%s; TORPOR_BENCH_PLOT_DIR must be a folder\n",
               std::string(written.message()).c_str());
  std::exit(1);
}

}  // namespace

void WritePlot(const std::string& name, const CdfPlot& plot) { Write(name, PlotJson(plot)); }
void WritePlot(const std::string& name, const BarPlot& plot) { Write(name, PlotJson(plot)); }

}  // namespace torpor::bench
