// A playbook that has been read, checked and expanded: what the planner plans from.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "labrack/v1/playbook.pb.h"
#include "proto/fields/fields.h"
#include "storage/base/config/source.h"

namespace labrack::plan {

// A stack with a workload under one combination of the matrix. Only axes that the stack, the
// workload or the disks use count: what uses no axis is not multiplied by it.
struct ExpandedCell {
  v1::Stack stack;
  v1::Workload workload;
  v1::Disks disks;
  std::vector<std::pair<std::string, std::string>>
      parameters;  // axis and value, in the axes' order
  // The share of `parameters` that workload and disks use: cells with equal workload and conditions
  // are alternatives to each other, and are run side by side.
  std::string conditions;
};

// Where a value stands: in the playbook, or on the command line ("--set trials=0"; no span then).
struct Place {
  std::string file;
  config::Span span;
};

struct LoadedPlaybook {
  std::string file;
  std::string text;
  std::string sha256;  // of the text, the attachments, --set and --trials
  // Defaults filled in, attached job files put in; with the first value of every axis.
  v1::Playbook playbook;
  std::vector<ExpandedCell> cells;  // workloads outside, then parameters, then stacks
  // By path, as fields::Places; values from the command line are among them.
  std::map<std::string, Place> places;

  // The place of `path`, or of the nearest thing around it that was written. With `key`: of the
  // key.
  Place Find(std::string_view path) const;
  Place FindKey(std::string_view path) const;
};

}  // namespace labrack::plan
