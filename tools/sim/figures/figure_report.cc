#include "tools/sim/figures/figure_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "tools/sim/figures/labels.h"
#include "tools/text_table/text_table.h"

namespace torpor::sim {
namespace {

// A measure as text; a list as numbers with blanks between. Empty if the row lacks the measure.
std::string Cell(const Json& row, const Column& column) {
  const Json::json_pointer pointer(absl::StrCat("/", column.key));
  if (!row.contains(pointer)) return "";
  const Json& value = row.at(pointer);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_integer()) return absl::StrCat(value.get<std::int64_t>());
  if (value.is_number()) return absl::StrFormat("%.*f", column.decimals, value.get<double>());
  std::vector<std::string> cells;
  for (const Json& element : value) {
    cells.push_back(absl::StrFormat("%.*f", column.decimals, element.get<double>()));  // NOLINT
  }
  std::string joined;
  for (const std::string& cell : cells) absl::StrAppend(&joined, joined.empty() ? "" : " ", cell);
  return joined;
}

// The labels present in the rows.
std::vector<Label> LabelsOf(const Figure& figure) {
  std::vector<Label> labels;
  for (const Label& label : AllLabels()) {
    const bool is_there =
        !figure.cases.empty() && figure.cases.front().labels.contains(std::string(label.key));
    if (is_there) labels.push_back(label);  // NOLINT: a handful of them
  }
  return labels;
}

// The first of the paper's numbers whose labels the row has; empty without one.
std::string PaperNumberFor(const Figure& figure, const Json& row) {
  for (const PaperNumber& paper : figure.paper) {
    if (HasLabels(row, paper.labels)) return paper.text;
  }
  return "";
}

// Returns the rows as a text table: labels, measures and, where known, the paper's number.
std::string Table(const Figure& figure, const std::vector<Json>& rows) {
  std::vector<Column> columns;
  std::vector<TextTable::Column> titles;
  for (const Label& label : LabelsOf(figure)) {
    const std::string key(label.key);
    columns.push_back({key, key, label.decimals});  // NOLINT: a handful of them
    titles.push_back(                               // NOLINT
        {key, label.is_text ? TextTable::Align::kLeft : TextTable::Align::kRight});
  }
  for (const Column& column : figure.columns) {
    columns.push_back(column);                                   // NOLINT: a handful of them
    titles.push_back({column.title, TextTable::Align::kRight});  // NOLINT
  }
  if (!figure.paper.empty()) titles.push_back({"paper", TextTable::Align::kLeft});
  TextTable table(titles);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    cells.reserve(columns.size() + 1);
    for (const Column& column : columns) cells.push_back(Cell(row, column));
    if (!figure.paper.empty()) cells.push_back(PaperNumberFor(figure, row));
    table.AddRow(std::move(cells));
  }
  return table.Render();
}

// Returns the verdicts on the paper's claims; empty for figures without claims.
std::vector<Finding> FindingsIn(const Figure& figure, const std::vector<Json>& rows) {
  return figure.findings ? figure.findings(rows) : std::vector<Finding>();
}

}  // namespace

// The title, the table, and a line for each claim.
std::string FigureText(const Figure& figure, const std::vector<Json>& rows) {
  std::string text = absl::StrCat(figure.name, ": ", figure.title, "\n", figure.setting, "\n\n",
                                  Table(figure, rows));
  const std::vector<Finding> findings = FindingsIn(figure, rows);
  if (!findings.empty()) text += "\n";
  for (const Finding& finding : findings) {
    absl::StrAppend(&text,
                    finding.holds ? "as in the paper: " : "NOT AS IN THE PAPER: ", finding.claim,
                    " - ", finding.ours, "\n");
  }
  return text;
}

std::string FigureJson(const Figure& figure, const std::vector<Json>& rows) {
  // "figure 11", "figure parts", "run"
  const std::vector<std::string> words = absl::StrSplit(figure.name, ' ');
  Json json;
  json[words[0]] = words.size() > 1 && figure.number == 0 ? Json(words[1]) : Json(figure.number);
  json["title"] = figure.title;
  json["setting"] = figure.setting;
  json["rows"] = rows;
  for (const Finding& finding : FindingsIn(figure, rows)) {
    json["findings"].push_back(
        {{"claim", finding.claim}, {"holds", finding.holds}, {"ours", finding.ours}});
  }
  return json.dump() + "\n";
}

// Columns are all measures of any row, in order of appearance; a row without a measure has an empty
// cell.
std::string FigureCsv(const std::vector<Json>& rows) {
  std::vector<std::string> columns;
  for (const Json& row : rows) {
    const Json cells = row.flatten();
    for (const auto& [key, value] : cells.items()) {
      const bool is_new = std::find(columns.begin(), columns.end(), key) == columns.end();
      if (is_new) columns.push_back(key);  // NOLINT: how many is not known
    }
  }
  std::string csv;
  for (const std::string& column : columns) {
    absl::StrAppend(&csv, csv.empty() ? "" : ",",
                    absl::StrReplaceAll(column.substr(1), {{"~1", "/"}}));
  }
  for (const Json& row : rows) {
    const Json cells = row.flatten();
    const char* separator = "\n";
    for (const std::string& column : columns) {
      const bool is_there = cells.contains(column);
      const bool is_text = is_there && cells[column].is_string();
      absl::StrAppend(&csv, separator,
                      !is_there ? ""
                      : is_text ? cells[column].get<std::string>()
                                : cells[column].dump());
      separator = ",";
    }
  }
  return csv + "\n";
}

}  // namespace torpor::sim
