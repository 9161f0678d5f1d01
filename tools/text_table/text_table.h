#pragma once

#include <string>
#include <vector>

namespace torpor {

// A table whose columns are as wide as their widest cell, two blanks apart.
class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns.
  void AddRow(std::vector<std::string> cells);

  // The titles and the rows, a line each, without trailing blanks.
  std::string Render() const;

 private:
  const std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace torpor
