#include "agent/session/identity.h"

#include <array>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <system_error>

#include <fmt/format.h>

#include "agent/worker/trial_files.h"

namespace labrack::session {
namespace {

std::string FirstLine(const char* path) {
  Result<std::string> text = worker::ReadFile(path, 4096);
  if (!text) return {};
  return text->substr(0, text->find('\n'));
}

}  // namespace

Result<Descriptor> LockStateDirectory(const std::filesystem::path& state) {
  std::error_code error;
  std::filesystem::create_directories(state, error);
  if (error) return std::unexpected(Error::FromErrno(error.value(), "mkdir", state.string()));
  const std::filesystem::path path = state / "agent.lock";
  Descriptor lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock.valid()) return FailErrno("open", path.string());
  if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return FailErrno("lock", path.string());
    return Fail(Errc::kBusy, state.string(),
                "another agent uses this state directory; give each agent its own `state`");
  }
  return lock;
}

Result<std::string> MakeAgentId() {
  std::array<unsigned char, 16> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return FailErrno("getrandom", "agent id");
  }
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string id;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) id += '-';
    id += fmt::format("{:02x}", bytes[i]);
  }
  return id;
}

Result<std::string> DecideAgentId(Journal& journal, const std::string& configured_name) {
  Result<std::string> kept = journal.AgentId();
  if (!kept) return std::unexpected(kept.error());
  std::string id = configured_name.empty() ? *kept : configured_name;
  if (id.empty()) {
    Result<std::string> made = MakeAgentId();
    if (!made) return std::unexpected(made.error());
    id = *std::move(made);
  }
  if (id == *kept) return id;
  if (!kept->empty()) {
    Result<std::vector<JournalRow>> held = journal.Held();
    if (!held) return std::unexpected(held.error());
    if (!held->empty()) {
      return Fail(Errc::kBusy, "name",
                  fmt::format("{} trials are held here as agent `{}`, and the controller takes "
                              "their results from that agent only; start it with `name: {}` until "
                              "they are reported, then as `{}`",
                              held->size(), *kept, *kept, id));
    }
  }
  if (Result<void> set = journal.SetAgentId(id); !set) return std::unexpected(set.error());
  return id;
}

std::string BootId() { return FirstLine("/proc/sys/kernel/random/boot_id"); }
std::string MachineId() { return FirstLine("/etc/machine-id"); }

}  // namespace labrack::session
