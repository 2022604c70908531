#include "agent/worker/spool/record.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "agent/worker/spool/crc32c.h"

namespace labrack::spool {
namespace {

constexpr std::string_view kMagic = "LRSPOOL1";
constexpr std::string_view kExtension = ".seg";
constexpr std::size_t kNumberDigits = 6;

template <typename T>
void Put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
  }
}

// The caller has checked that the bytes are there.
template <typename T>
T Get(std::string_view data, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    const T byte = static_cast<unsigned char>(data[at + i]);
    value = static_cast<T>(value | static_cast<T>(byte << (8 * i)));
  }
  return value;
}

bool IsKnownType(std::uint8_t type) {
  return type >= static_cast<std::uint8_t>(RecordType::kState) &&
         (type <= static_cast<std::uint8_t>(RecordType::kResult) ||
          type == static_cast<std::uint8_t>(RecordType::kFooter));
}

}  // namespace

std::string EncodeHeader(const SegmentHeader& header) {
  std::string out(kMagic);
  Put<std::uint32_t>(out, kVersion);
  Put<std::uint64_t>(out, header.identity.epoch);
  Put<std::uint64_t>(out, header.first_seq);
  Put<std::uint32_t>(out, static_cast<std::uint32_t>(header.identity.assignment_id.size()));
  out += header.identity.assignment_id;
  Put<std::uint32_t>(out, Crc32c(out));
  return out;
}

std::optional<ParsedHeader> ParseHeader(std::string_view data) {
  constexpr std::size_t kFixed = 8 + 4 + 8 + 8 + 4;
  if (data.size() < kFixed + 4 || !data.starts_with(kMagic)) return std::nullopt;
  const std::size_t id_length = Get<std::uint32_t>(data, kFixed - 4);
  if (id_length > kAssignmentIdMax || data.size() < kFixed + id_length + 4) return std::nullopt;
  const std::size_t checked = kFixed + id_length;
  if (Get<std::uint32_t>(data, checked) != Crc32c(data.substr(0, checked))) return std::nullopt;
  if (Get<std::uint32_t>(data, 8) != kVersion) return std::nullopt;
  ParsedHeader parsed;
  parsed.header.identity.epoch = Get<std::uint64_t>(data, 12);
  parsed.header.first_seq = Get<std::uint64_t>(data, 20);
  parsed.header.identity.assignment_id = data.substr(kFixed, id_length);
  parsed.length = checked + 4;
  return parsed;
}

std::string EncodeRecord(RecordType type, std::uint64_t seq, std::int64_t mono_ns,
                         std::string_view payload) {
  std::string rest;
  rest.reserve(kRecordFixed + payload.size());
  rest.push_back(static_cast<char>(type));
  Put<std::uint64_t>(rest, seq);
  Put<std::uint64_t>(rest, static_cast<std::uint64_t>(mono_ns));
  rest += payload;
  std::string out;
  out.reserve(kRecordHead + rest.size());
  Put<std::uint32_t>(out, static_cast<std::uint32_t>(rest.size()));
  Put<std::uint32_t>(out, Crc32c(rest));
  out += rest;
  return out;
}

std::string EncodeFooterPayload(const Footer& footer) {
  std::string out;
  Put<std::uint64_t>(out, footer.last_seq);
  Put<std::uint64_t>(out, footer.count);
  out.push_back(footer.final_segment ? 1 : 0);
  return out;
}

std::optional<Footer> ParseFooterPayload(std::string_view payload) {
  if (payload.size() != kFooterPayload) return std::nullopt;
  return Footer{.last_seq = Get<std::uint64_t>(payload, 0),
                .count = Get<std::uint64_t>(payload, 8),
                .final_segment = payload[16] == 1};
}

ParsedRecord ParseRecord(std::string_view data) {
  ParsedRecord parsed;
  if (data.size() < kRecordHead) return parsed;
  const std::size_t length = Get<std::uint32_t>(data, 0);
  if (length < kRecordFixed || length > kRecordFixed + kPayloadMax.size()) {
    parsed.state = ParseState::kDamaged;
    return parsed;
  }
  if (data.size() < kRecordHead + length) return parsed;
  const std::string_view rest = data.substr(kRecordHead, length);
  const auto type = static_cast<std::uint8_t>(rest[0]);
  if (Get<std::uint32_t>(data, 4) != Crc32c(rest) || !IsKnownType(type)) {
    parsed.state = ParseState::kDamaged;
    return parsed;
  }
  parsed.state = ParseState::kRecord;
  parsed.record.type = static_cast<RecordType>(type);
  parsed.record.seq = Get<std::uint64_t>(rest, 1);
  parsed.record.mono_ns = static_cast<std::int64_t>(Get<std::uint64_t>(rest, 9));
  parsed.record.payload = rest.substr(kRecordFixed);
  parsed.length = kRecordHead + length;
  return parsed;
}

std::filesystem::path SegmentPath(const std::filesystem::path& directory, std::uint32_t number) {
  return directory / fmt::format("{:06}{}", number, kExtension);
}

Result<std::vector<std::uint32_t>> ListSegments(const std::filesystem::path& directory) {
  std::vector<std::uint32_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.size() != kNumberDigits + kExtension.size() || !name.ends_with(kExtension)) continue;
    std::uint32_t number = 0;
    const char* digits_end = name.data() + kNumberDigits;
    const auto [stop, bad] = std::from_chars(name.data(), digits_end, number);
    if (bad == std::errc() && stop == digits_end) numbers.push_back(number);
  }
  if (error) return std::unexpected(Error::FromErrno(error.value(), "list", directory.string()));
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace labrack::spool
