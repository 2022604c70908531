// Columns of text, as wide as their contents, for lists that people read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace labrack::report {

class TextTable {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
    std::size_t columns_max = 1000;  // longer cells are clipped
    bool whole = false;              // never clipped to make a line fit
  };

  explicit TextTable(std::vector<Column> columns);

  // As many cells as columns. Control characters in them become "?"; empty ones "-".
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }

  // Title and rows, each ended by "\n", two blanks between columns, no blanks at line ends. When a
  // line would be longer than `columns_max`, the widest left-aligned columns that
  // need not be whole are clipped.
  std::string Format(std::size_t columns_max) const;

 private:
  std::vector<std::size_t> Widths(std::size_t columns_max) const;
  std::string Line(const std::vector<std::string>& cells,
                   const std::vector<std::size_t>& widths) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace labrack::report
