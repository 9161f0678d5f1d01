#pragma once

#include <string>
#include <vector>

#include "tools/sim/figures/figure.h"

namespace torpor::sim {

// The rows as a table, the paper's number beside each where it gives one, and what of the paper's
// claims they show.
std::string FigureText(const Figure& figure, const std::vector<Json>& rows);

// {"figure": 11, "rows": [...], "findings": [...]}, for a table "table"; with a line's end.
std::string FigureJson(const Figure& figure, const std::vector<Json>& rows);

// The rows, a line each, and before them the names of their columns: within lists and objects as
// "models/bert-qa/p98_ms".
std::string FigureCsv(const std::vector<Json>& rows);

}  // namespace torpor::sim
