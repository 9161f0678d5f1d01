#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// What tells rows from each other.
struct Label {
  std::string_view key;
  bool is_text = false;
  int decimals = 0;
  std::string_view unit{};  // stands after its value where a plot is named by it
};

// All that figures have, in the order in which rows do.
const std::vector<Label>& AllLabels();

// These labels in that order; all must be among them.
Json InOrder(const Json& labels);

bool HasLabels(const Json& row, const Json& labels);

// The first row with these labels.
const Json* FindRow(const std::vector<Json>& rows, const Json& labels);

// A measure of a row, "models/bert-qa/p98_ms" within objects; nothing where it has none.
std::optional<double> MeasureIn(const Json& row, const std::string& key);

// What the labels of one row say, "torpor poisson 60 ms", but for those left out.
std::string NameOf(const Json& labels, const std::vector<std::string>& left_out);

}  // namespace torpor::sim
