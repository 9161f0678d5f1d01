#include "server/executor/ring_session.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/thread_name.h"
#include "proto/wire/batch.h"

namespace torpor::executor {
namespace {

using wire::TakeWaits;
using wire::WakeSleepers;

// Makes a memory file that no client can shrink under the executor's feet.
absl::StatusOr<UniqueFd> MakeRingFile() {
  UniqueFd file(memfd_create("torpor-rings", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || ftruncate(file.get(), wire::kRingFileBytes) != 0 ||
      fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return absl::ErrnoToStatus(errno, "cannot make a memory file for rings");
  }
  return file;
}

// The errno by which a client learns of `status`.
int ErrnoOf(const absl::Status& status) {
  if (absl::IsPermissionDenied(status)) return EACCES;
  if (absl::IsAlreadyExists(status)) return EBUSY;
  if (absl::IsUnavailable(status)) return ESHUTDOWN;
  return EIO;
}

bool SendWithDescriptor(int connection, const wire::RingReply& reply, int descriptor) {
  iovec data{const_cast<wire::RingReply*>(&reply), sizeof reply};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (reply.error == 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof reply);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RingSession>> RingSession::Start(UniqueFd connection,
                                                                const wire::RingRequest& request,
                                                                const Device& device,
                                                                SessionRegistry& registry,
                                                                std::function<void()> on_finished) {
  TORPOR_ASSIGN_OR_RETURN(UniqueFd file, MakeRingFile());
  std::unique_ptr<wire::RingFile> rings = wire::RingFile::Map(file.get());
  if (rings == nullptr) return absl::ErrnoToStatus(errno, "cannot map a memory file for rings");
  return std::unique_ptr<RingSession>(new RingSession(std::move(connection), std::move(file),
                                                      std::move(rings), request, device, registry,
                                                      std::move(on_finished)));
}

RingSession::RingSession(UniqueFd connection, UniqueFd file, std::unique_ptr<wire::RingFile> rings,
                         const wire::RingRequest& request, const Device& device,
                         SessionRegistry& registry, std::function<void()> on_finished)
    : connection_(std::move(connection)),
      file_(std::move(file)),
      rings_(std::move(rings)),
      request_(request),
      device_(device),
      registry_(registry),
      on_finished_(std::move(on_finished)),
      requests_(wire::RingReader(page().requests, rings_->requests()), wire::kMaxFrameBytes),
      replies_(page().replies, rings_->replies()),
      thread_([this] { Run(); }) {}

RingSession::~RingSession() { thread_.join(); }

void RingSession::End() {
  is_ending_.store(true);
  TakeWaits(page().executor_waits, wire::kWaitsForRecord | wire::kWaitsForRoom);
  WakeSleepers(page().executor_waits);
}

// The server's thread sees the end of the connection, and repeats End.
void RingSession::Cancel() {
  End();
  shutdown(connection_.get(), SHUT_RDWR);
}

void RingSession::Run() {
  NameThread("session");
  const absl::Status status = Serve();
  if (!status.ok()) {
    spdlog::warn("the rings of session {} end: {}", request_.session_id, status.ToString());
    Notify(wire::RingNotice::kEnd,
           std::string_view(status.message().data(), status.message().size()));
  }
  shutdown(connection_.get(), SHUT_RDWR);
  is_finished_.store(true, std::memory_order_release);
  on_finished_();
}

absl::Status RingSession::Serve() {
  TORPOR_RETURN_IF_ERROR(device_.MakeCurrent());
  const absl::StatusOr<Session*> session =
      registry_.Attach({request_.session_id, request_.session_key}, [this] { Cancel(); });
  if (!session.ok()) return Answer(ErrnoOf(session.status()));
  const absl::Cleanup detach = [&session] { (*session)->Detach(); };
  TORPOR_RETURN_IF_ERROR(Answer(0));
  file_.Reset();
  TORPOR_RETURN_IF_ERROR((*session)->ResetObjects());
  return ServeBatches(**session);
}

absl::Status RingSession::ServeBatches(Session& session) {
  using Step = wire::RecordReader::Step;
  while (!is_ending_.load()) {
    std::span<const std::uint8_t> record;
    const Step step = requests_.Next(record);
    if (step == Step::kMalformed) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the client wrote a cursor outside the ring of requests, or a batch of more than ",
          wire::kMaxFrameBytes, " bytes"));
    }
    OfferRoom();
    if (step == Step::kNeedMore) {
      AwaitRecord();
      continue;
    }
    TORPOR_RETURN_IF_ERROR(session.RunFrame(record, *this));
    if (replies_.is_broken()) {
      return absl::InvalidArgumentError("the client wrote a cursor outside the ring of replies");
    }
  }
  return absl::OkStatus();
}

absl::Status RingSession::Answer(int error) const {
  wire::RingReply reply;
  reply.error = error;
  if (SendWithDescriptor(connection_.get(), reply, file_.get())) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot hand out the memory file for rings");
}

void RingSession::AwaitRecord() {
  const auto is_ready = [this] { return requests_.HasBytes() || is_ending_.load(); };
  spin_.Wait(is_ready,
             [&] { wire::SleepOnce(page().executor_waits, wire::kWaitsForRecord, is_ready); });
}

void RingSession::AwaitRoom(std::size_t bytes) {
  const auto is_ready = [this, bytes] {
    return replies_.Room() >= bytes || replies_.is_broken() || is_ending_.load();
  };
  spin_.Wait(is_ready,
             [&] { wire::SleepOnce(page().executor_waits, wire::kWaitsForRoom, is_ready); });
}

// Tells a client with more to send that half of the ring is free.
void RingSession::OfferRoom() {
  if ((page().client_waits.load() & wire::kWaitsForRoom) == 0) return;
  if (requests_.ring().RoomLeft() < wire::kRequestRingBytes / 2) return;
  if (TakeWaits(page().client_waits, wire::kWaitsForRoom) != 0) {
    Notify(wire::RingNotice::kLook, {});
  }
}

void RingSession::Send(std::span<const std::uint8_t> reply) {
  const auto length = static_cast<wire::RecordLength>(reply.size());
  record_.resize(sizeof length + reply.size());
  std::memcpy(record_.data(), &length, sizeof length);
  std::copy(reply.begin(), reply.end(), record_.begin() + sizeof length);
  std::span<const std::uint8_t> rest = record_;
  while (true) {
    rest = rest.subspan(replies_.Write(rest));
    WakeClient();
    if (rest.empty() || is_ending_.load() || replies_.is_broken()) return;
    AwaitRoom(std::min<std::size_t>(rest.size(), wire::kReplyRingBytes / 2));
  }
}

void RingSession::WakeClient() {
  const std::uint32_t taken =
      TakeWaits(page().client_waits, wire::kWaitsForRecord | wire::kPollsForRecord);
  if ((taken & wire::kWaitsForRecord) != 0) WakeSleepers(page().client_waits);
  if ((taken & wire::kPollsForRecord) != 0) Notify(wire::RingNotice::kLook, {});
}

// Sends a packet. A client that does not take packets has one to look at already.
void RingSession::Notify(wire::RingNotice notice, std::string_view text) const {
  std::string packet(1, static_cast<char>(notice));
  packet += text.substr(0, wire::kMaxNoticeBytes - 1);
  send(connection_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace torpor::executor
