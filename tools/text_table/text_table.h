#pragma once

#include <string>
#include <vector>

namespace torpor {

// A text table. Columns are as wide as their widest cell, two blanks apart.
class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Appends a row. `cells` must have a cell for each column.
  void AddRow(std::vector<std::string> cells);

  // Returns the titles and the rows, a line each, without trailing blanks.
  std::string Render() const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace torpor
