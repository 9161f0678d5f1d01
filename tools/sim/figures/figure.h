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

// Stands among the systems of figure 11: what none can exceed.
inline constexpr const char* kBound = "bound";

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

// What the paper says of rows with these labels.
struct PaperNumber {
  Json labels;
  std::string text;
};

// Something that the paper shows, and whether our rows show it, too.
struct Finding {
  std::string claim;
  bool holds = false;
  std::string ours;
};

// How rows are drawn: as a line from point to point for each system, in a panel for each
// combination of the other labels; or, where there are `bars`, as these side by side for each row.
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

// The share of compliant functions over one of the labels.
inline FigurePlot CompliancePlot(const std::string& x_label, const std::string& x_key) {
  return {x_label, x_key, "share of compliant functions", "ratio"};
}

struct Figure {
  std::string name;  // "figure 11", "table 3", "run"
  int number = 0;    // if it has one
  std::string title;
  std::string setting;  // a sentence or two
  std::vector<Column> columns;
  std::vector<Case> cases;
  std::vector<PaperNumber> paper;  // the first of a row's is shown
  std::function<std::vector<Finding>(const std::vector<Json>& rows)> findings;
  std::optional<FigurePlot> plot;
};

}  // namespace torpor::sim
