#include "tools/sim/figures/figure_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tools/text_table/text_table.h"

namespace torpor::sim {
namespace {

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

// Those of the labels that the rows have, then the measures.
std::vector<Column> ColumnsOf(const Figure& figure) {
  std::vector<Column> columns;
  if (!figure.cases.empty()) {
    for (const auto& [key, value] : figure.cases.front().labels.items()) {
      columns.push_back({key, key, 2});  // NOLINT: a handful of them
    }
  }
  columns.insert(columns.end(), figure.columns.begin(), figure.columns.end());
  return columns;
}

std::string Table(const Figure& figure, const std::vector<Json>& rows) {
  const std::vector<Column> columns = ColumnsOf(figure);
  std::vector<TextTable::Column> titles;
  for (const Column& column : columns) {
    titles.push_back({column.title, column.key == "system" || column.key == "arrivals"  // NOLINT
                                        ? TextTable::Align::kLeft
                                        : TextTable::Align::kRight});
  }
  if (figure.paper) titles.push_back({"paper", TextTable::Align::kLeft});
  TextTable table(titles);
  for (const Json& row : rows) {
    std::vector<std::string> cells;
    cells.reserve(columns.size() + 1);
    for (const Column& column : columns) cells.push_back(Cell(row, column));
    if (figure.paper) cells.push_back(figure.paper(row));
    table.AddRow(std::move(cells));
  }
  return table.Render();
}

std::vector<Finding> FindingsOf(const Figure& figure, const std::vector<Json>& rows) {
  return figure.findings ? figure.findings(rows) : std::vector<Finding>();
}

}  // namespace

std::string FigureText(const Figure& figure, const std::vector<Json>& rows) {
  std::string text = absl::StrCat(figure.name, ": ", figure.title, "\n", figure.setting, "\n\n",
                                  Table(figure, rows));
  const std::vector<Finding> findings = FindingsOf(figure, rows);
  if (!findings.empty()) text += "\n";
  for (const Finding& finding : findings) {
    absl::StrAppend(&text,
                    finding.holds ? "as in the paper: " : "NOT AS IN THE PAPER: ", finding.claim,
                    " - ", finding.ours, "\n");
  }
  return text;
}

std::string FigureJson(const Figure& figure, const std::vector<Json>& rows) {
  Json json;
  json[figure.name.substr(0, figure.name.find(' '))] = figure.number;
  json["title"] = figure.title;
  json["setting"] = figure.setting;
  json["rows"] = rows;
  for (const Finding& finding : FindingsOf(figure, rows)) {
    json["findings"].push_back(
        {{"claim", finding.claim}, {"holds", finding.holds}, {"ours", finding.ours}});
  }
  return json.dump() + "\n";
}

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
