#include "tools/sim/figures/labels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace torpor::sim {

// The order of columns in every table and file.
const std::vector<Label>& AllLabels() {
  static const auto* const labels =
      new std::vector<Label>{{.key = "system", .is_text = true},
                             {.key = "model", .is_text = true},
                             {.key = "beside", .is_text = true},
                             {.key = "functions"},
                             {.key = "arrivals", .is_text = true, .unit = " arrivals"},
                             {.key = "rpm", .unit = " requests a minute"},
                             {.key = "rate_factor", .decimals = 2, .unit = " times the rates"},
                             {.key = "deadline_ms", .unit = " ms"}};
  return *labels;
}

Json InOrder(const Json& labels) {
  Json ordered = Json::object();
  for (const Label& label : AllLabels()) {
    const std::string key(label.key);
    if (labels.contains(key)) ordered[key] = labels.at(key);
  }
  TORPOR_CHECK(ordered.size() == labels.size());
  return ordered;
}

bool HasLabels(const Json& row, const Json& labels) {
  const auto items = labels.items();
  return std::all_of(items.begin(), items.end(), [&](const auto& label) {
    return row.contains(label.key()) && row.at(label.key()) == label.value();
  });
}

const Json* FindRow(const std::vector<Json>& rows, const Json& labels) {
  const auto row = std::find_if(rows.begin(), rows.end(),
                                [&](const Json& one) { return HasLabels(one, labels); });
  return row == rows.end() ? nullptr : &*row;
}

std::optional<double> MeasureIn(const Json& row, const std::string& key) {
  const Json::json_pointer pointer(absl::StrCat("/", key));
  if (!row.contains(pointer)) return std::nullopt;
  return row.at(pointer).get<double>();
}

std::string NameOf(const Json& labels, const std::vector<std::string>& left_out) {
  std::string name;
  for (const Label& label : AllLabels()) {
    const std::string key(label.key);
    const bool is_left_out = std::find(left_out.begin(), left_out.end(), key) != left_out.end();
    if (is_left_out || !labels.contains(key)) continue;
    const Json& value = labels.at(key);
    absl::StrAppend(&name, name.empty() ? "" : ", ",
                    value.is_string() ? value.get<std::string>() : value.dump(),
                    std::string(label.unit));
  }
  return name;
}

}  // namespace torpor::sim
