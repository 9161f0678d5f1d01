#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// Each figure simulates the systems that the paper compares, and checks the paper's claims on the
// rows.
//
// Figure 8: seldom called functions on one GPU. Torpor serves 10 times native's throughput.
Figure MakeFigure8(const FigureOptions& options);
// Figure 9: often called functions on four GPUs. Late binding keeps tails short and loads even.
Figure MakeFigure9(const FigureOptions& options);
// Figure 10: native containers and kept-alive containers (INFless-KA) hold fewer functions.
Figure MakeFigure10(const FigureOptions& options);
// Figure 11: compliance under Torpor and without each policy; with the upper bound.
Figure MakeFigure11(const FigureOptions& options);
// Figure 12: eviction that knows heavy models keeps Bert-qa in time.
Figure MakeFigure12(const FigureOptions& options);
// Figure 14: a cluster of six nodes with up to 1,200 functions.
Figure MakeFigure14(const FigureOptions& options);
// Figure 16: queues that know objectives against FIFO, at rising rates and three deadlines.
Figure MakeFigure16(const FigureOptions& options);
// The gain of each part of torpor-plus, in figure 11's setting.
Figure MakeParts(const FigureOptions& options);
// Table 3: latency with another model swapping behind the same PCIe switch. The diagonal is input.
Figure MakeTable3(const FigureOptions& options);

// The figure "8", "parts" and so on. Returns InvalidArgument for an unknown name, or if the options
// lack a need of the figure or ask for something that the figure does not have.
absl::StatusOr<Figure> FigureNamed(std::string_view name, const FigureOptions& options);
absl::StatusOr<Figure> TableNamed(std::string_view name, const FigureOptions& options);

// The names as text: "8, 9 and parts".
std::string FigureNames();

// Returns InvalidArgument if the options ask for the bound.
absl::Status CheckNoBound(const FigureOptions& options);

}  // namespace torpor::sim
