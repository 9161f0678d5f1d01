#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/sim/figures/figure.h"

namespace torpor::sim {

Figure MakeFigure8(const FigureOptions& options);
Figure MakeFigure9(const FigureOptions& options);
Figure MakeFigure10(const FigureOptions& options);
Figure MakeFigure11(const FigureOptions& options);
Figure MakeFigure12(const FigureOptions& options);
Figure MakeFigure14(const FigureOptions& options);
Figure MakeFigure16(const FigureOptions& options);
// What each part of torpor-plus brings, in figure 11's setting.
Figure MakeParts(const FigureOptions& options);
Figure MakeTable3(const FigureOptions& options);

// "8", "parts" and so on. Fails where there is no such figure, or the options lack something that
// it needs, or ask for what it has not.
absl::StatusOr<Figure> FigureNamed(std::string_view name, const FigureOptions& options);
absl::StatusOr<Figure> TableNamed(std::string_view name, const FigureOptions& options);

// "8, 9 and parts".
std::string FigureNames();

// Fails where the options ask for the bound.
absl::Status CheckNoBound(const FigureOptions& options);

}  // namespace torpor::sim
