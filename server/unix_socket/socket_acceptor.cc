#include "server/unix_socket/socket_acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <utility>

#include "base/thread_name.h"

namespace torpor::server {
namespace {

constexpr Duration kLogPeriod = std::chrono::seconds(10);

// Until others have closed something.
constexpr int kPauseMs = 100;

UniqueFd OpenSpare() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

// Whether accept4 has failed for want of descriptors or memory.
bool IsShortage(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

PeerCredentials CredentialsOf(int socket) {
  ucred credentials = {};
  socklen_t size = sizeof credentials;
  getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  PeerCredentials peer{credentials.pid, credentials.uid, {credentials.gid}};
  // As many as the system allows a process.
  std::vector<gid_t> groups(NGROUPS_MAX);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  if (getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
    groups.resize(size / sizeof(gid_t));
    peer.groups.insert(peer.groups.end(), groups.begin(), groups.end());
  }
  return peer;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketAcceptor>> SocketAcceptor::Start(UniqueFd listener,
                                                                      Options options, Take take) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  UniqueFd spare = OpenSpare();
  if (!stop || !spare) return absl::ErrnoToStatus(errno, "a socket's acceptor");
  return std::unique_ptr<SocketAcceptor>(new SocketAcceptor(
      std::move(listener), std::move(stop), std::move(spare), std::move(options), std::move(take)));
}

SocketAcceptor::SocketAcceptor(UniqueFd listener, UniqueFd stop, UniqueFd spare, Options options,
                               Take take)
    : listener_(std::move(listener)),
      stop_(std::move(stop)),
      spare_(std::move(spare)),
      options_(std::move(options)),
      take_(std::move(take)),
      thread_([this] { Serve(); }) {}

SocketAcceptor::~SocketAcceptor() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

void SocketAcceptor::Serve() {
  NameThread("acceptor");
  std::array<pollfd, 2> polled = {{{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}}};
  while (true) {
    if (poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    if (polled[0].revents != 0) return;
    if (polled[1].revents != 0) Accept();
  }
}

void SocketAcceptor::Accept() {
  UniqueFd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (connection) return Pass(std::move(connection));
  if (IsShortage(errno)) RefuseNext();
}

void SocketAcceptor::Pass(UniqueFd connection) {
  if (!HasRoomFor(connection.get())) return NoteRefused();
  if (options_.admits && !options_.admits(CredentialsOf(connection.get()))) return;
  take_(std::move(connection));
}

bool SocketAcceptor::HasRoomFor(int descriptor) const {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  // The system gives the lowest free number.
  const auto next = static_cast<rlim_t>(descriptor) + 1;
  return next + static_cast<rlim_t>(options_.reserved_descriptors) <= limit.rlim_cur;
}

void SocketAcceptor::RefuseNext() {
  NoteRefused();
  spare_.Reset();
  UniqueFd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)).Reset();
  spare_ = OpenSpare();
  if (spare_) return;
  // Another thread has taken the descriptor: connections wait.
  pollfd stop{stop_.get(), POLLIN, 0};
  poll(&stop, 1, kPauseMs);
}

void SocketAcceptor::NoteRefused() {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const TimePoint now = SteadyClock().Now();
  if (logged_at_ != TimePoint() && now - logged_at_ < kLogPeriod) return;
  logged_at_ = now;
  spdlog::error(
      "{}: no descriptors are left for connections ({} refused so far); close idle ones, "
      "or raise the limit of open files (ulimit -n, LimitNOFILE)",
      options_.name, refused());
}

}  // namespace torpor::server
