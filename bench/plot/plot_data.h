#pragma once

#include <string>

#include "tools/plot/plot_data.h"

namespace torpor::bench {

using plot::BarPlot;
using plot::BarSeries;
using plot::CdfPlot;
using plot::CdfSeries;
using plot::Quantile;

// Write NAME.plot.json beside the figures if `make bench` says where (TORPOR_BENCH_PLOT_DIR);
// otherwise nothing is written. A file that cannot be written ends the process.
void WritePlot(const std::string& name, const CdfPlot& plot);
void WritePlot(const std::string& name, const BarPlot& plot);

}  // namespace torpor::bench
