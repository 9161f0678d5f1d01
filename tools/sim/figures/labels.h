#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// A label: a key that tells rows apart.
struct Label {
  std::string_view key;
  bool is_text = false;
  int decimals = 0;
  std::string_view unit{};  // follows the value in plot names
};

// All labels of figures, in the order of rows.
const std::vector<Label>& AllLabels();

// Sorts known labels into the order above.
Json InOrder(const Json& labels);

bool HasLabels(const Json& row, const Json& labels);

// The first row with the labels; null if none has.
const Json* FindRow(const std::vector<Json>& rows, const Json& labels);

// A row's measure, within objects as "models/bert-qa/p98_ms"; nullopt if missing.
std::optional<double> MeasureIn(const Json& row, const std::string& key);

// A row's labels as text, such as "torpor poisson 60 ms", without the ones left out.
std::string NameOf(const Json& labels, const std::vector<std::string>& left_out);

}  // namespace torpor::sim
