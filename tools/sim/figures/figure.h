#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tools/sim/model_profile.h"
#include "tools/sim/node_model.h"
#include "tools/sim/simulation.h"
#include "tools/workload/arrivals.h"
#include "tools/workload/rates.h"

// What a figure of the paper is made of: cases, each simulated for some seeds to a row of measures.
namespace torpor::sim {

using Json = nlohmann::ordered_json;

// What the command line says. Empty lists: the figure's own.
struct FigureOptions {
  const Profiles* profiles = nullptr;
  std::optional<NodeModel> node;                              // instead of the figure's
  workload::MinuteRates rates = workload::ConstantRates({});  // whose rows functions are given
  std::vector<std::size_t> functions;
  std::vector<workload::ArrivalProcess> arrivals;
  std::vector<std::string> systems;
  std::vector<double> rate_factors;
};

struct Case {
  Json labels;  // system, functions, arrivals, ...
  // Measures of one seed: numbers, or lists or objects of them. Called from several threads.
  std::function<Json(std::uint64_t seed)> measure;
};

struct Column {
  std::string title;
  std::string key;  // "models/bert-qa/p98_ms" is within objects
  int decimals = 0;
};

// Something that the paper shows, and whether our rows show it, too.
struct Finding {
  std::string claim;
  bool holds = false;
  std::string ours;
};

// How rows are drawn: as lines from point to point for each system and arrival process, or, where
// there are `bars`, as these side by side for each row.
struct FigurePlot {
  struct Bar {
    std::string name;
    std::string key;
  };
  std::string x_label;
  std::string x_key;
  std::string y_label;
  std::string y_key;
  bool log_y = false;
  std::vector<Bar> bars{};
};

struct Figure {
  std::string name;  // "figure 11", "table 3"
  int number = 0;
  std::string title;
  std::string setting;  // a sentence or two
  std::vector<Column> columns;
  std::vector<Case> cases;
  // The paper's measure for a row, where it gives one.
  std::function<std::string(const Json& row)> paper;
  std::function<std::vector<Finding>(const std::vector<Json>& rows)> findings;
  std::optional<FigurePlot> plot;
};

Figure MakeFigure8(const FigureOptions& options);
Figure MakeFigure9(const FigureOptions& options);
Figure MakeFigure10(const FigureOptions& options);
Figure MakeFigure11(const FigureOptions& options);
Figure MakeFigure12(const FigureOptions& options);
Figure MakeFigure14(const FigureOptions& options);
Figure MakeFigure16(const FigureOptions& options);
Figure MakeTable3(const FigureOptions& options);

}  // namespace torpor::sim
