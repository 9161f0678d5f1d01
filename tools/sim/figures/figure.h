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

// Figures of the paper: cases, each simulated for some seeds and reduced to a row of measures.
namespace torpor::sim {

using Json = nlohmann::ordered_json;

// Options of the command line. An empty list stands for the figure's own.
struct FigureOptions {
  const Profiles* profiles = nullptr;
  std::optional<NodeModel> node;                              // replaces the figure's node
  workload::MinuteRates rates = workload::ConstantRates({});  // rows for the functions
  std::vector<std::size_t> functions;
  std::vector<workload::ArrivalProcess> arrivals;
  std::vector<std::string> systems;
  std::vector<double> rate_factors;
  scheduler::PolicyConstants constants;  // of all systems
  std::optional<Duration> length;  // replaces the load's length where the load follows the rates
};

// The upper bound, shown among the systems of figure 11.
inline constexpr const char* kBound = "bound";

// A row to measure: labels that identify the row, and the simulation of one seed.
struct Case {
  Json labels;  // system, functions, arrivals, ...
  // Measures a seed: numbers, lists or objects of numbers. Called from several threads.
  std::function<Json(std::uint64_t seed)> measure;
};

// A measure shown in the printed table and the CSV.
struct Column {
  std::string title;
  std::string key;  // "models/bert-qa/p98_ms" is within objects
  int decimals = 0;
};

// The paper's number for rows with these labels.
struct PaperNumber {
  Json labels;
  std::string text;
};

// A claim of the paper, and whether our rows bear it out.
struct Finding {
  std::string claim;
  bool holds = false;
  std::string ours;
};

// Drawing of the rows: with `bars`, bars side by side for each row; otherwise a line for each
// system, in a panel for each combination of the other labels.
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

// A figure or table of the paper, or a free run: cases to simulate and the presentation of their
// rows. Owned by the command; the cases refer to the FigureOptions' profiles.
struct Figure {
  std::string name;  // "figure 11", "table 3", "run"
  int number = 0;    // 0: none
  std::string title;
  std::string setting;  // a sentence or two
  std::vector<Column> columns;
  std::vector<Case> cases;
  std::vector<PaperNumber> paper;  // the first match of a row is shown
  std::function<std::vector<Finding>(const std::vector<Json>& rows)> findings;
  std::optional<FigurePlot> plot;
};

}  // namespace torpor::sim
