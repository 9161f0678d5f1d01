#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// What tools/dev/plot.py draws of the rows; the figure must have a plot.
std::string FigurePlotJson(const Figure& figure, const std::vector<Json>& rows);

// Writes NAME.plot.json beside NAME.svg and draws it as that, with python3 and gnuplot.
absl::Status DrawFigure(const Figure& figure, const std::vector<Json>& rows,
                        const std::string& svg_file);

}  // namespace torpor::sim
