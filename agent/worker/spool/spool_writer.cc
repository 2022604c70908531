#include "agent/worker/spool/spool_writer.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "agent/worker/spool/spool_reader.h"

namespace labrack::spool {
namespace {

constexpr const char* kBallastName = "ballast";

}  // namespace

Result<void> SpoolWriter::OpenDirectory() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error) return std::unexpected(Error::FromErrno(error.value(), "mkdir", directory_.string()));
  directory_file_ = Descriptor(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory_file_.valid()) return FailErrno("open", directory_.string());
  return {};
}

bool SpoolWriter::MakeBallast() {
  const std::filesystem::path path = directory_ / kBallastName;
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  has_ballast_ = file.valid() &&
                 posix_fallocate(file.get(), 0, static_cast<off_t>(limits_.ballast.count())) == 0;
  // What room there is belongs to state and result.
  if (!has_ballast_) unlink(path.c_str());
  return has_ballast_;
}

bool SpoolWriter::ReleaseBallast() {
  has_ballast_ = false;
  return unlink((directory_ / kBallastName).c_str()) == 0;
}

Result<SpoolWriter> SpoolWriter::Create(std::filesystem::path directory, Identity identity,
                                        Limits limits) {
  SpoolWriter writer(std::move(directory), std::move(identity), limits);
  if (Result<void> opened = writer.OpenDirectory(); !opened) {
    return std::unexpected(opened.error());
  }
  Result<std::vector<std::uint32_t>> numbers = ListSegments(writer.directory_);
  if (!numbers) return std::unexpected(numbers.error());
  if (!numbers->empty()) {
    return Fail(Errc::kAlreadyExists, writer.directory_.string(), "holds a spool already");
  }
  writer.MakeBallast();
  if (Result<void> started = writer.StartSegment(); !started) {
    return std::unexpected(started.error());
  }
  return writer;
}

Result<SpoolWriter> SpoolWriter::Resume(std::filesystem::path directory, Identity identity,
                                        Limits limits) {
  SpoolWriter writer(std::move(directory), std::move(identity), limits);
  if (Result<void> opened = writer.OpenDirectory(); !opened) {
    return std::unexpected(opened.error());
  }
  SpoolReader reader(writer.directory_, writer.identity_);
  for (;;) {
    Result<std::optional<Record>> record = reader.Next();
    if (!record) return std::unexpected(record.error());
    if (!*record) break;
  }
  if (reader.sealed()) {
    return Fail(Errc::kAlreadyExists, writer.directory_.string(), "the spool is sealed");
  }
  writer.next_seq_ = reader.last_seq() + 1;
  const SpoolReader::Place place = reader.place();
  writer.segment_ = place.segment;
  if (place.segment == 0 || reader.at_segment_end()) {
    if (Result<void> started = writer.StartSegment(); !started) {
      return std::unexpected(started.error());
    }
    return writer;
  }
  const std::filesystem::path path = SegmentPath(writer.directory_, place.segment);
  if (place.offset == 0) {
    // The writer died while it made the segment: make it again.
    if (unlink(path.c_str()) != 0) return FailErrno("unlink", path.string());
    --writer.segment_;
    if (Result<void> started = writer.StartSegment(); !started) {
      return std::unexpected(started.error());
    }
    return writer;
  }
  writer.file_ = Descriptor(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!writer.file_.valid()) return FailErrno("open", path.string());
  if (ftruncate(writer.file_.get(), static_cast<off_t>(place.offset)) != 0) {
    return FailErrno("truncate", path.string());
  }
  Result<void> rewritten = writer.Rewrite(place.offset);
  if (!rewritten && rewritten.error().code() == Errc::kNoSpace && writer.ReleaseBallast()) {
    rewritten = writer.Rewrite(place.offset);
  }
  if (!rewritten) return std::unexpected(rewritten.error());
  writer.segment_size_ = place.offset;
  writer.segment_count_ = place.segment_count;
  writer.size_ = Bytes(place.offset);
  return writer;
}

Result<void> SpoolWriter::StartSegment() {
  const std::filesystem::path path = SegmentPath(directory_, segment_ + 1);
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == ENOSPC && ReleaseBallast()) {
    file = Descriptor(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  }
  if (!file.valid()) return FailErrno("create", path.string());
  ++segment_;
  file_ = std::move(file);
  segment_size_ = 0;
  segment_count_ = 0;
  Result<void> written =
      Write(EncodeHeader({.identity = identity_, .first_seq = next_seq_}), /*must_fit=*/true);
  if (!written) return written;
  return SyncDirectory();
}

Result<void> SpoolWriter::TryWrite(std::string_view data) {
  std::size_t done = 0;
  while (done < data.size()) {
    const ssize_t wrote = pwrite(file_.get(), data.data() + done, data.size() - done,
                                 static_cast<off_t>(segment_size_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      Error error = Error::FromErrno(wrote == 0 ? ENOSPC : errno, "write",
                                     SegmentPath(directory_, segment_).string());
      // Half a record must not stay: the next one goes to the same place.
      if (ftruncate(file_.get(), static_cast<off_t>(segment_size_)) != 0) {
        return FailErrno("truncate", SegmentPath(directory_, segment_).string());
      }
      return std::unexpected(std::move(error));
    }
    done += static_cast<std::size_t>(wrote);
  }
  segment_size_ += data.size();
  size_ += Bytes(data.size());
  return {};
}

Result<void> SpoolWriter::Write(std::string_view data, bool must_fit) {
  Result<void> written = TryWrite(data);
  if (written || written.error().code() != Errc::kNoSpace || !must_fit) return written;
  if (!ReleaseBallast()) return written;
  return TryWrite(data);
}

Result<void> SpoolWriter::SyncData() {
  if (Result<void> usable = Usable(); !usable) return usable;
  if (fdatasync(file_.get()) == 0) return {};
  failure_ = Error::FromErrno(errno, "fdatasync", SegmentPath(directory_, segment_).string());
  return std::unexpected(*failure_);
}

Result<void> SpoolWriter::SyncDirectory() {
  if (Result<void> usable = Usable(); !usable) return usable;
  if (fsync(directory_file_.get()) == 0) return {};
  failure_ = Error::FromErrno(errno, "fsync", directory_.string());
  return std::unexpected(*failure_);
}

Result<void> SpoolWriter::Usable() const {
  return failure_ ? Result<void>(std::unexpected(*failure_)) : Result<void>();
}

Result<void> SpoolWriter::Rewrite(std::uint64_t length) {
  const std::string path = SegmentPath(directory_, segment_).string();
  std::string bytes(64 << 10, '\0');
  for (std::uint64_t at = 0; at < length;) {
    const std::size_t want = std::min<std::uint64_t>(bytes.size(), length - at);
    const ssize_t got = pread(file_.get(), bytes.data(), want, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 ? FailErrno("read", path) : Fail(Errc::kIo, path, "ends early");
    const ssize_t put =
        pwrite(file_.get(), bytes.data(), static_cast<std::size_t>(got), static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return FailErrno("write", path);
    at += static_cast<std::uint64_t>(put);
  }
  return {};
}

Result<void> SpoolWriter::Append(RecordType type, Durability durability, std::int64_t mono_ns,
                                 std::string_view payload) {
  if (payload.size() > kPayloadMax.size() || type == RecordType::kFooter || !file_.valid()) {
    return Fail(Errc::kInvalidArgument, directory_.string(),
                "a record of " + std::to_string(payload.size()) + " bytes; at most " +
                    std::to_string(kPayloadMax.count()) + " fit, and none into a sealed spool");
  }
  if (Result<void> usable = Usable(); !usable) return usable;
  const bool detail = type == RecordType::kDetail;
  if (detail && size_ + Bytes(payload.size()) > limits_.trial) {
    ++dropped_count_;
    return Fail(Errc::kNoSpace, directory_.string(), "the trial's spool has reached its limit");
  }
  if (detail && !has_ballast_ && !MakeBallast()) {
    ++dropped_count_;
    return Fail(Errc::kNoSpace, directory_.string(), "the disk is full");
  }
  if (segment_size_ >= limits_.segment.count()) {
    if (Result<void> closed = CloseSegment(/*final_segment=*/false); !closed) return closed;
    if (Result<void> started = StartSegment(); !started) return started;
  }
  Result<void> written = Write(EncodeRecord(type, next_seq_, mono_ns, payload), !detail);
  if (!written) {
    if (detail) ++dropped_count_;
    return written;
  }
  ++next_seq_;
  ++segment_count_;
  return durability == Durability::kNow ? SyncData() : Result<void>();
}

Result<void> SpoolWriter::CloseSegment(bool final_segment) {
  const std::string footer = EncodeFooterPayload(
      {.last_seq = next_seq_ - 1, .count = segment_count_, .final_segment = final_segment});
  Result<void> written =
      Write(EncodeRecord(RecordType::kFooter, next_seq_, 0, footer), /*must_fit=*/true);
  if (!written) return written;
  return SyncData();
}

Result<void> SpoolWriter::Seal() {
  if (!file_.valid())
    return Fail(Errc::kInvalidArgument, directory_.string(), "the spool is sealed");
  if (Result<void> usable = Usable(); !usable) return usable;
  if (Result<void> closed = CloseSegment(/*final_segment=*/true); !closed) return closed;
  file_.Close();
  ReleaseBallast();
  return SyncDirectory();
}

}  // namespace labrack::spool
