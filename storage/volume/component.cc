#include "storage/volume/component.h"

#include "storage/base/units.h"

namespace labrack::volume {

std::string_view StateName(State state) {
  switch (state) {
    case State::kOkay:
      return "okay";
    case State::kResyncing:
      return "resyncing";
    case State::kOffline:
      return "offline";
    case State::kFailed:
      return "failed";
  }
  return "unknown";
}

Result<Component> PlaceComponent(block::BlockDevice& device, Bytes head, Bytes log_size,
                                 Bytes unit) {
  const block::Geometry geometry = device.geometry();
  const Bytes before = head + log_size;
  if (geometry.size < before + unit) {
    return Fail(Errc::kInvalidArgument,
                "is too small: it holds " + FormatBytesExact(geometry.size) + "; it needs " +
                    FormatBytesExact(before + unit) + " (" + FormatBytesExact(head) +
                    " for the state database, " + FormatBytesExact(log_size) +
                    " for the volume's log, " + FormatBytesExact(unit) + " of data)");
  }
  const Bytes left = geometry.size - before;
  return Component{.device = &device,
                   .data_at = Offset(before.count()),
                   .data_size = left - left % unit,
                   .log_at = Offset(head.count()),
                   .log_size = log_size};
}

}  // namespace labrack::volume
