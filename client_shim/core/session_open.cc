#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "client_shim/core/fork_guard.h"
#include "client_shim/core/session.h"
#include "client_shim/core/unix_socket.h"

namespace torpor::shim {
namespace {

constexpr char kHowToStart[] =
    ". Start torpord, or run the program with `torporctl run --standalone -- PROGRAM`; "
    "TORPOR_SOCKET names another socket.";

}  // namespace

Session::Session(std::function<Settings()> read_settings)
    : first_(*this), read_settings_(std::move(read_settings)) {}

Session::Session(Session& first, int device)
    : first_(first), device_(device), read_settings_(first.read_settings_) {}

Session::~Session() {
  further_.clear();
  {
    Lock lock(mutex_);
    stopping_ = true;
    if (wake_) Wake();
  }
  if (service_.joinable()) service_.join();
  if (control_) ForkGuard::Unwatch(control_->fd());
  for (const auto& [key, link] : links_) ForkGuard::Unwatch(link->stream.fd());
}

cudaError_t Session::Start() {
  if (ForkGuard::InChild()) return cudaErrorInitializationError;
  if (!started_.load(std::memory_order_acquire)) {
    std::lock_guard lock(start_mutex_);
    if (!started_.load(std::memory_order_relaxed)) {
      start_error_ = Open();
      started_.store(true, std::memory_order_release);
    }
  }
  if (start_error_ != cudaSuccess) return start_error_;
  return fatal_.load(std::memory_order_relaxed);
}

ClientCore* Session::OfDevice(int device) {
  if (device == 0) return &first_;
  const bool exists = device > 0 && static_cast<std::size_t>(device) < first_.hello_.devices.size();
  if (!exists) return nullptr;
  std::lock_guard lock(first_.further_mutex_);
  std::unique_ptr<Session>& further = first_.further_[device];
  if (!further) further.reset(new Session(first_, device));
  return further.get();
}

cudaError_t Session::OpenFailed(cudaError_t error, const std::string& why) {
  log_.Warn(why);
  control_.reset();
  return error;
}

cudaError_t Session::Open() {
  settings_ = read_settings_();
  log_.set_level(settings_.log);
  batch_ = Batch(settings_.batch_bytes);
  ForkGuard::Install();
  std::string why;
  http2_ = Nghttp2::Load(why);
  if (!http2_) return OpenFailed(cudaErrorSharedObjectInitFailed, why);

  const Time deadline = std::chrono::steady_clock::now() + settings_.connect_timeout;
  if (const cudaError_t error = ConnectControl(deadline); error != cudaSuccess) return error;
  wire::Hello hello;
  hello.token = settings_.token;
  hello.process_id = static_cast<std::uint64_t>(getpid());
  hello.program = program_invocation_short_name;
  if (device_ == 0)
    SendControl(hello);
  else
    SendControl(
        wire::DeviceHello{hello, first_.hello_.session_id, first_.hello_.session_key, device_});
  if (const cudaError_t error = AwaitHelloReply(deadline); error != cudaSuccess) return error;
  if (const cudaError_t error = MapRegions(deadline); error != cudaSuccess) return error;
  SendControl(wire::HelloAck{});
  ForkGuard::Watch(control_->fd());
  StartService();
  log_.Debug("session " + std::to_string(hello_.session_id) + " of function " + hello_.function);
  return cudaSuccess;
}

cudaError_t Session::ConnectControl(Time deadline) {
  Result<UniqueFd, int> socket = ConnectUnix(settings_.socket, SOCK_STREAM, deadline);
  if (!socket && socket.failure().code == EACCES)
    return OpenFailed(cudaErrorNoDevice, "this user may not open the Torpor daemon's socket " +
                                             settings_.socket + " (Permission denied)");
  if (!socket)
    return OpenFailed(cudaErrorNoDevice, "no Torpor daemon answers at " + settings_.socket + " (" +
                                             std::strerror(socket.failure().code) + ")" +
                                             kHowToStart);
  control_ = std::make_unique<GrpcStream>(*http2_, std::move(socket).value(),
                                          "/torpor.v1.Control/Connect");
  return cudaSuccess;
}

cudaError_t Session::AwaitHelloReply(Time deadline) {
  std::vector<std::uint8_t> buffer(std::size_t{64} * 1024);
  std::span<const std::uint8_t> payload;
  while (!control_->Next(payload)) {
    if (control_->closed())
      return OpenFailed(cudaErrorNoDevice, "the Torpor daemon at " + settings_.socket +
                                               " refused the session: " + control_->why_closed());
    control_->Write();
    const short events = control_->socket_is_full() ? POLLIN | POLLOUT : POLLIN;
    if (!PollUntil(control_->fd(), events, deadline))
      return OpenFailed(cudaErrorNoDevice, "the Torpor daemon at " + settings_.socket +
                                               " does not answer" + kHowToStart);
    const ssize_t got = Receive(control_->fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) control_->Feed({buffer.data(), static_cast<std::size_t>(got)});
    if (got == 0 || got == -2) control_->FeedEnd("it closed the connection");
  }
  wire::ServerMessage message;
  const bool decoded = wire::DecodeMessage(payload, message);
  auto* reply = decoded ? std::get_if<wire::HelloReply>(&message) : nullptr;
  if (!reply)
    return OpenFailed(cudaErrorInsufficientDriver,
                      "the Torpor daemon at " + settings_.socket +
                          " answers as one of another version; install the same version of both");
  hello_ = std::move(*reply);
  if (hello_.error == 0) return cudaSuccess;
  return OpenFailed(
      static_cast<cudaError_t>(hello_.error),
      "the Torpor daemon at " + settings_.socket + " refused the session: " + hello_.message);
}

cudaError_t Session::MapRegions(Time deadline) {
  Result<SharedRegions, int> regions = SharedRegions::Map(hello_, deadline);
  if (!regions) {
    SendControl(wire::HelloAck{cudaErrorMemoryAllocation, regions.failure().message});
    return OpenFailed(cudaErrorMemoryAllocation, regions.failure().message);
  }
  regions_ = std::move(regions).value();
  slots_.Attach(regions_.page());
  ring_.Attach(regions_.window(), wire::kCompletionPageBytes, hello_.window_bytes);
  hello_.host_base = first_.hello_.host_base;
  hello_.host_bytes = first_.hello_.host_bytes;
  return cudaSuccess;
}

void Session::StartService() {
  wake_.Reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  service_ = std::thread([this] { Serve(); });
  pthread_setname_np(service_.native_handle(), "torpor-client");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace torpor::shim
