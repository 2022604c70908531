// Options that playbooks hand to mkfs, mount and zpool. Only what is known to stay on the trial's
// own disks is accepted: mkfs.ext4 with one word too many would format another device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "storage/base/result.h"

namespace labrack::stack {

struct ToolGrammar {
  std::string_view program;
  std::string_view flags;                      // letters of options without a value
  std::string_view with_value;                 // letters of options with one: "-i 4096", "-i4096"
  std::vector<std::string_view> long_options;  // "--csum", with a value
  std::vector<std::string_view> long_flags;    // "--mixed"
  std::vector<std::string_view> refused_text;  // "logdev": names another device
};

// All words are options of the grammar with their values; no value holds a '/'. kInvalidArgument
// lists what is accepted; kRefusedBySafety for what could reach another device or file.
Result<void> CheckToolWords(const ToolGrammar& grammar, const std::vector<std::string>& words);

// Mount options, one an item ("data=journal"): no path, no other device, no bind or loop.
Result<void> CheckMountOptions(const std::vector<std::string>& options);

// Properties of pools and file systems ("ashift=12").
Result<void> CheckZfsProperties(const std::vector<std::string>& properties);

}  // namespace labrack::stack
