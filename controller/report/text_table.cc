#include "controller/report/text_table.h"

#include <algorithm>
#include <numeric>

#include "controller/report/style.h"
#include "storage/base/check.h"

namespace labrack::report {
namespace {

constexpr std::size_t kGap = 2;
constexpr std::size_t kColumnMin = 6;  // below it a clipped column says nothing

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

void TextTable::AddRow(std::vector<std::string> cells) {
  LABRACK_CHECK(cells.size() == columns_.size());
  for (std::string& cell : cells) cell = cell.empty() ? "-" : Printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<std::size_t> TextTable::Widths(std::size_t columns_max) const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = ColumnsOf(columns_[i].title);
    for (const std::vector<std::string>& row : rows_) width = std::max(width, ColumnsOf(row[i]));
    widths.push_back(std::min(width, columns_[i].columns_max));
  }
  const std::size_t gaps = kGap * (columns_.size() - 1);
  while (std::accumulate(widths.begin(), widths.end(), gaps) > columns_max) {
    std::size_t widest = columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].align != Align::kLeft || columns_[i].whole) continue;
      if (widths[i] <= kColumnMin) continue;
      if (widest == columns_.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string TextTable::Line(const std::vector<std::string>& cells,
                            const std::vector<std::size_t>& widths) const {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = Clipped(cells[i], widths[i]);
    const std::string blanks(widths[i] - ColumnsOf(cell), ' ');
    if (i > 0) line += std::string(kGap, ' ');
    line += columns_[i].align == Align::kLeft ? cell + blanks : blanks + cell;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string TextTable::Format(std::size_t columns_max) const {
  const std::vector<std::size_t> widths = Widths(columns_max);
  std::vector<std::string> titles;
  for (const Column& column : columns_) titles.push_back(column.title);
  std::string text = Line(titles, widths);
  for (const std::vector<std::string>& row : rows_) text += Line(row, widths);
  return text;
}

}  // namespace labrack::report
