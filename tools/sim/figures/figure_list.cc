#include "tools/sim/figures/figure_list.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"

namespace torpor::sim {
namespace {

// A figure or table known by name.
struct Entry {
  std::string name;
  Figure (*make)(const FigureOptions&);
  std::vector<std::string> models;  // that the profiles must have
  bool has_bound = false;
};

const std::vector<Entry>& Figures() {
  static const auto* const figures =
      new std::vector<Entry>{{"8", MakeFigure8, {"resnet-152"}},
                             {"9", MakeFigure9, {"resnet-152"}},
                             {"10", MakeFigure10, {"resnet-152"}},
                             {"11", MakeFigure11, {}, true},
                             {"12", MakeFigure12, {"bert-qa", "densenet-201"}},
                             {"14", MakeFigure14, {}},
                             {"16", MakeFigure16, {"resnet-152"}},
                             {"parts", MakeParts, {}}};
  return *figures;
}

const std::vector<Entry>& Tables() {
  static const auto* const tables =
      new std::vector<Entry>{{"3", MakeTable3, {"densenet-169", "resnet-152", "bert-qa"}}};
  return *tables;
}

// Returns, for example, "8, 9 and 10".
std::string NamesOf(const std::vector<Entry>& entries) {
  const auto name = [](std::string* text, const Entry& entry) { text->append(entry.name); };
  const auto last = entries.end() - 1;
  if (last == entries.begin()) return last->name;
  return absl::StrCat(absl::StrJoin(entries.begin(), last, ", ", name), " and ", last->name);
}

// Returns an error if the profiles lack a model of the figure, or if the options ask for the bound
// of a figure without bound.
absl::StatusOr<Figure> Make(const Entry& entry, const FigureOptions& options) {
  for (const std::string& model : entry.models) {
    TORPOR_RETURN_IF_ERROR(FindModel(*options.profiles, model).status());
  }
  if (!entry.has_bound) TORPOR_RETURN_IF_ERROR(CheckNoBound(options));
  return entry.make(options);
}

// Returns null for an unknown name.
const Entry* Find(const std::vector<Entry>& entries, std::string_view name) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

}  // namespace

absl::StatusOr<Figure> FigureNamed(std::string_view name, const FigureOptions& options) {
  if (const Entry* const entry = Find(Figures(), name)) return Make(*entry, options);
  return absl::InvalidArgumentError(absl::StrCat("there are figures ", FigureNames()));
}

absl::StatusOr<Figure> TableNamed(std::string_view name, const FigureOptions& options) {
  if (const Entry* const entry = Find(Tables(), name)) return Make(*entry, options);
  return absl::InvalidArgumentError(absl::StrCat("there is table ", NamesOf(Tables()), " only"));
}

std::string FigureNames() { return NamesOf(Figures()); }

absl::Status CheckNoBound(const FigureOptions& options) {
  const auto& systems = options.systems;
  if (std::find(systems.begin(), systems.end(), kBound) == systems.end()) return absl::OkStatus();
  return absl::InvalidArgumentError("a bound is in figure 11 only");
}

}  // namespace torpor::sim
