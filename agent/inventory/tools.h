// The tools that labrack uses on this host, and their versions as they say them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "labrack/v1/host.pb.h"

namespace labrack::inventory {

// Those that are installed, in a fixed order. Each is run once per process and file (path, inode,
// time of change); at most kVersionTimeout each.
std::vector<v1::Tool> FindTools();

// The first line with a digit in it, cut to a sensible length; empty when there is none.
std::string VersionFrom(std::string_view output);

}  // namespace labrack::inventory
