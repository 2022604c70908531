#include "proto/convert/names.h"

namespace labrack::convert {

std::string CellName(const v1::PlannedCell& cell) {
  std::string name = cell.stack().name() + "/" + cell.workload().name();
  if (!cell.parameters_text().empty()) name += " " + cell.parameters_text();
  return name;
}

}  // namespace labrack::convert
