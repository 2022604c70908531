#include "controller/plan/names.h"

#include <array>
#include <utility>

namespace labrack::plan {
namespace {

// The field of a one-of that is set, as its name; empty when none is.
std::string KindOf(const google::protobuf::Message& message) {
  const google::protobuf::OneofDescriptor* kind = message.GetDescriptor()->FindOneofByName("kind");
  const google::protobuf::FieldDescriptor* field =
      message.GetReflection()->GetOneofFieldDescriptor(message, kind);
  return field == nullptr ? std::string() : field->name();
}

std::vector<std::string> FilesSteps(const v1::FilesWorkload& files) {
  constexpr std::array<std::pair<v1::FilesStep, const char*>, 4> kInOrder{{
      {v1::FILES_STEP_CREATE, "create"},
      {v1::FILES_STEP_STAT, "stat"},
      {v1::FILES_STEP_READ, "read"},
      {v1::FILES_STEP_DELETE, "delete"},
  }};
  std::vector<std::string> names;
  for (const auto& [step, name] : kInOrder) {
    bool asked = files.steps_size() == 0;
    for (int written : files.steps()) asked |= written == step;
    if (asked) names.emplace_back(name);
  }
  return names;
}

}  // namespace

std::string WorkloadKind(const v1::Workload& workload) { return KindOf(workload); }

std::string StackKind(const v1::Stack& stack) {
  return stack.has_volume() ? KindOf(stack.volume()) : KindOf(stack.host());
}

std::string SupportKind(const v1::Stack& stack) {
  return stack.has_volume() ? "volume" : StackKind(stack);
}

std::vector<std::string> StepNames(const v1::Workload& workload) {
  switch (workload.kind_case()) {
    case v1::Workload::kStream:
      return {workload.stream().direction() == v1::DIRECTION_READ ? "read" : "write"};
    case v1::Workload::kCopy:
      return {"copy"};
    case v1::Workload::kChecksum:
      return {"checksum"};
    case v1::Workload::kRandom:
      return {"mix"};
    case v1::Workload::kSyncPages:
      return {"write"};
    case v1::Workload::kFiles:
      return FilesSteps(workload.files());
    case v1::Workload::kFio:
      return {"fio"};  // one process runs all jobs of the file
    case v1::Workload::kExec:
      return {"exec"};
    case v1::Workload::KIND_NOT_SET:
      return {};
  }
  return {};
}

}  // namespace labrack::plan
