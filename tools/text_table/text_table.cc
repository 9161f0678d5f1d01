#include "tools/text_table/text_table.h"

#include <algorithm>

#include "base/check.h"

namespace torpor {
namespace {

void AppendCell(std::string& line, const std::string& cell, std::size_t width,
                TextTable::Align align) {
  const std::string blanks(width - cell.size(), ' ');
  line += align == TextTable::Align::kRight ? blanks + cell : cell + blanks;
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  TORPOR_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

std::string TextTable::Render() const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    titles.push_back(columns_[i].title);
    widths.push_back(columns_[i].title.size());
    for (const auto& row : rows_) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto append_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      AppendCell(line, row[i], widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append_row(titles);
  for (const auto& row : rows_) append_row(row);
  return text;
}

}  // namespace torpor
