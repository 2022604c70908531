#include "agent/stack/device_use.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "storage/base/check.h"

namespace labrack::stack {
namespace {

constexpr std::uint64_t kSectorBytes = 512;  // of the stat file, whatever the device's sectors are
constexpr std::size_t kFieldsMax = 17;

// Documentation/block/stat.rst; kernels before 5.5 have no flush fields.
enum Field : std::size_t {
  kReadOperations = 0,
  kReadSectors = 2,
  kWriteOperations = 4,
  kWriteSectors = 6,
  kBusyMilliseconds = 9,
  kFlushOperations = 15,
};

std::uint64_t Difference(std::uint64_t after, std::uint64_t before) {
  return after >= before ? after - before : 0;
}

}  // namespace

Result<std::vector<v1::DeviceUse>> ReadDeviceUse(const std::vector<DeviceRef>& devices) {
  std::vector<v1::DeviceUse> uses;
  for (const DeviceRef& device : devices) {
    const std::string path = "/sys/class/block/" + device.name + "/stat";
    std::ifstream file(path);
    std::array<std::uint64_t, kFieldsMax> fields{};
    std::size_t count = 0;
    while (count < kFieldsMax && file >> fields[count]) ++count;
    if (count <= kBusyMilliseconds) {
      return Fail(Errc::kIo, path,
                  "holds " + std::to_string(count) + " numbers instead of 11 to 17");
    }
    v1::DeviceUse use;
    use.set_device(device.label);
    use.set_read_operations(fields[kReadOperations]);
    use.set_read_bytes(fields[kReadSectors] * kSectorBytes);
    use.set_write_operations(fields[kWriteOperations]);
    use.set_write_bytes(fields[kWriteSectors] * kSectorBytes);
    use.set_flush_operations(fields[kFlushOperations]);
    use.set_busy_ns(static_cast<std::int64_t>(fields[kBusyMilliseconds]) * 1'000'000);
    uses.push_back(std::move(use));
  }
  return uses;
}

std::vector<v1::DeviceUse> Subtract(const std::vector<v1::DeviceUse>& after,
                                    const std::vector<v1::DeviceUse>& before) {
  LABRACK_CHECK(after.size() == before.size());
  std::vector<v1::DeviceUse> uses;
  for (std::size_t i = 0; i < after.size(); ++i) {
    v1::DeviceUse use = after[i];
    use.set_read_operations(Difference(use.read_operations(), before[i].read_operations()));
    use.set_read_bytes(Difference(use.read_bytes(), before[i].read_bytes()));
    use.set_write_operations(Difference(use.write_operations(), before[i].write_operations()));
    use.set_write_bytes(Difference(use.write_bytes(), before[i].write_bytes()));
    use.set_flush_operations(Difference(use.flush_operations(), before[i].flush_operations()));
    use.set_busy_ns(std::max<std::int64_t>(0, use.busy_ns() - before[i].busy_ns()));
    uses.push_back(std::move(use));
  }
  return uses;
}

}  // namespace labrack::stack
