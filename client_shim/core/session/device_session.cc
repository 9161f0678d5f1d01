#include "client_shim/core/session/device_session.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/try.h"
#include "client_shim/core/call_tracer.h"
#include "client_shim/core/fork_guard.h"
#include "client_shim/core/session/thread_streams.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {
namespace {

// Between two looks at a full payload ring: well below the time that copying one piece takes.
constexpr std::chrono::microseconds kRingPoll{20};

}  // namespace

DeviceSession::DeviceSession(ProcessState& process, int device, int index)
    : process_(process), device_(device), index_(index) {
  if (index == 0) process_.SetPrimary(*this, memory_);
}

DeviceSession::~DeviceSession() {
  // The thread uses the parts that are destroyed next.
  if (service_) service_->Stop();
}

cudaError_t DeviceSession::Start() {
  return health_.OpenOnce([this] { return Open(); });
}

cudaError_t DeviceSession::Open() {
  settings_ = process_.ReadSettings();
  log_.set_level(settings_.log);
  if (device_ == 0) TORPOR_TRY(ChooseDevices());
  ForkGuard::Install();
  Result<Handshake, cudaError_t> handshake = ShakeHands();
  if (!handshake) return OpenFailed(handshake.failure().code, handshake.failure().message);
  auto* const reply = std::get_if<wire::HelloReply>(&handshake->answer);
  if (!reply) return OpenFailed(cudaErrorUnknown, "the Torpor daemon sent an unexpected answer");
  hello_ = std::move(*reply);
  hello_.descriptor_socket = SocketBeside(settings_.socket, hello_.descriptor_socket);
  if (device_ == 0) process_.devices().ShowAll(hello_.devices);
  service_ = std::make_unique<ServiceThread>();
  daemon_ = std::make_unique<DaemonConnection>(std::move(handshake->control),
                                               [this] { service_->Wake(); });
  TORPOR_TRY(MapWindow());
  MakeChannel(*handshake->http2);
  daemon_->Send(wire::HelloAck{});
  service_->Start(*service_work_);
  log_.Debug("session " + std::to_string(hello_.session_id) + " of function " + hello_.function);
  return cudaSuccess;
}

cudaError_t DeviceSession::OpenFailed(cudaError_t error, const std::string& why) {
  log_.Warn(why);
  daemon_.reset();
  return error;
}

// Also opens the primary session, unless this session is the primary one.
cudaError_t DeviceSession::ChooseDevices() {
  if (const cudaError_t error = process_.ChooseDevices(settings_, log_); error != cudaSuccess)
    return error;
  index_ = process_.devices().IndexOf(0);
  return index_ == 0 ? cudaSuccess : process_.OfIndex(0).Start();
}

Result<Handshake, cudaError_t> DeviceSession::ShakeHands() const {
  const wire::Hello hello = HelloOf(settings_);
  const Deadline now = std::chrono::steady_clock::now();
  if (&process_.primary() == this)
    return shim::ShakeHands(settings_, hello, now + settings_.connect_timeout);
  const wire::HelloReply& primary = process_.primary().session();
  return ShakeHandsUntil(settings_,
                         wire::DeviceHello{hello, primary.session_id, primary.session_key, index_},
                         now + settings_.reconnect_timeout);
}

// Maps the session's memory and reports a failure to the daemon. The host arena is the primary
// session's, with the same addresses for all sessions of the process.
cudaError_t DeviceSession::MapWindow() {
  const Deadline deadline = std::chrono::steady_clock::now() + settings_.connect_timeout;
  if (const Result<void, int> mapped = window_.Map(hello_, deadline); !mapped) {
    daemon_->Send(wire::HelloAck{cudaErrorMemoryAllocation, mapped.failure().message});
    daemon_->AwaitEnd(deadline);
    return OpenFailed(cudaErrorMemoryAllocation, mapped.failure().message);
  }
  hello_.host_base = process_.primary().session().host_base;
  hello_.host_bytes = process_.primary().session().host_bytes;
  health_.WatchPage(window_.page());
  memory_.Connect(*daemon_);
  return cudaSuccess;
}

// Makes the channel and the work of the service thread, which is not started yet.
void DeviceSession::MakeChannel(const Nghttp2& http2) {
  const ChannelOptions options{
      .batch = {settings_.batch_bytes, settings_.batch_calls, settings_.flush_after},
      .lease_idle = settings_.lease_idle,
      .holds_batches = settings_.is_blocking,
      .traces_requests = device_ == 0,
      .transport = settings_.transport,
      .daemon_socket = settings_.socket,
      .attach = {hello_.session_id, hello_.session_key},
      .replays = hello_.replays,
      .replay_bytes = hello_.replays ? settings_.replay_bytes : 0,
      .arena = {hello_.host_base, hello_.host_bytes}};
  channel_ = std::make_unique<CommandChannel>(
      options, ChannelParts{http2, *daemon_, health_, window_.slots(), window_.ring(),
                            window_.uploads(), log_, [this] { service_->Wake(); },
                            [this](std::uint64_t saved) {
                              deferred_.FreeUpTo(saved, [this](std::uint64_t address) {
                                memory_.FreeUnasked(address);
                              });
                            }});
  service_work_ = std::make_unique<SessionService>(
      *daemon_, *channel_, health_, log_,
      ReconnectOptions{http2, settings_.socket,
                       wire::Resume{HelloOf(settings_), hello_.session_id, hello_.session_key},
                       settings_.reconnect_timeout, /*is_told=*/device_ == 0});
}

cudaError_t DeviceSession::Enqueue(const Command& command) {
  TORPOR_TRY(health_.Check());
  if (!settings_.is_blocking) return channel_->Enqueue(command);
  const cudaError_t error = channel_->Enqueue(command);
  return error != cudaSuccess ? error : AwaitWork();
}

// Sends the batch, waits for all work of the session and returns an error of that work.
cudaError_t DeviceSession::AwaitWork() {
  CallReply reply;
  const cudaError_t error = Call({wire::DeviceSynchronize::kCallId, {}}, reply);
  if (error != cudaSuccess) return error;
  const cudaError_t async_error = TakeAsyncError();
  return async_error != cudaSuccess ? async_error : static_cast<cudaError_t>(reply.status);
}

cudaError_t DeviceSession::Call(const Command& command, CallReply& reply) {
  TORPOR_TRY(health_.Check());
  return channel_->Call(command, reply);
}

cudaError_t DeviceSession::Flush() {
  TORPOR_TRY(health_.Check());
  channel_->Flush();
  return cudaSuccess;
}

cudaError_t DeviceSession::Create(std::uint64_t handle, const Command& create) {
  TORPOR_TRY(health_.Check());
  channel_->Create(handle, create);
  return cudaSuccess;
}

cudaError_t DeviceSession::Configure(std::uint64_t handle, const Command& setting,
                                     std::uint64_t key) {
  TORPOR_TRY(health_.Check());
  return channel_->Configure(handle, setting, key);
}

cudaError_t DeviceSession::Destroy(std::uint64_t handle, const Command& destroy) {
  TORPOR_TRY(health_.Check());
  return channel_->Destroy(handle, destroy);
}

cudaError_t DeviceSession::TakeAsyncError() {
  TORPOR_TRY(health_.Check());
  return CallsAreQuiet() ? cudaSuccess : channel_->TakeAsyncError();
}

ClientCore::Use DeviceSession::CurrentUse() const {
  return {process_.memory().AllocatedBytes(device_), IsOpen() ? channel_->RecentShare() : 0};
}

cudaError_t DeviceSession::AcquireWindow(std::uint64_t bytes, WindowPiece& piece) {
  TORPOR_TRY(health_.Check());
  if (window_.ring().Acquire(bytes, piece)) return cudaSuccess;
  const TracedWait wait(TracedWaitFor::kWindow);
  for (;;) {
    // Pieces become free when their commands have run, so the commands must be on their way.
    TORPOR_TRY(Flush());
    std::this_thread::sleep_for(kRingPoll);
    if (window_.ring().Acquire(bytes, piece)) return cudaSuccess;
  }
}

// Memory that a replay may need goes last.
cudaError_t DeviceSession::AskMalloc(std::uint64_t bytes, std::uint64_t& address) {
  if (deferred_.Take(bytes, address)) return cudaSuccess;
  // Another thread's checkpoint may free them meanwhile.
  const bool has_deferred = deferred_.bytes() > 0;
  const cudaError_t error = memory_.Malloc(bytes, address);
  if (error != cudaErrorMemoryAllocation || !has_deferred) return error;
  if (deferred_.bytes() > 0) TORPOR_TRY(channel_->SaveMemory());
  return memory_.Malloc(bytes, address);
}

cudaError_t DeviceSession::Malloc(std::uint64_t bytes, std::uint64_t& address) {
  TORPOR_TRY(health_.Check());
  const cudaError_t error = AskMalloc(bytes, address);
  if (error == cudaSuccess) process_.memory().Insert({address, bytes, true, device_});
  return error;
}

cudaError_t DeviceSession::Free(std::uint64_t address) {
  Allocation allocation;
  // The daemon knows device memory by the session that allocated it.
  if (FindAllocation(address, allocation) && allocation.on_device && allocation.device != device_)
    return OfDevice(allocation.device)->Free(address);
  TORPOR_TRY(health_.Check());
  if (!process_.memory().Forget(address, /*on_device=*/true)) return cudaErrorInvalidValue;
  if (!channel_->DefersFrees()) return memory_.Free(address);
  Defer(allocation);
  return cudaSuccess;
}

void DeviceSession::Defer(const Allocation& allocation) {
  // So much memory may be kept from other uses.
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  constexpr std::uint64_t kPartOfLimit = 8;
  deferred_.Add(allocation.begin, allocation.bytes, channel_->command_count());
  if (deferred_.bytes() > std::max(kLeast, hello_.memory_limit / kPartOfLimit))
    channel_->BeginSavingMemory();
}

cudaError_t DeviceSession::HostAlloc(std::uint64_t bytes, std::uint64_t& address) {
  TORPOR_TRY(health_.Check());
  TORPOR_TRY(process_.primary_memory().HostAlloc(bytes, address));
  channel_->NotePinned(address, bytes);
  process_.memory().Insert({address, bytes, false, device_});
  return cudaSuccess;
}

cudaError_t DeviceSession::HostFree(std::uint64_t address) {
  if (this != &process_.first()) return process_.first().HostFree(address);
  TORPOR_TRY(health_.Check());
  if (!process_.memory().Forget(address, /*on_device=*/false)) return cudaErrorInvalidValue;
  return process_.primary_memory().HostFree(address);
}

cudaError_t DeviceSession::Release(const Allocation& allocation) {
  if (allocation.is_foreign)
    return process_.memory().CloseWholly(allocation.begin, process_.primary_memory());
  return allocation.on_device ? Free(allocation.begin) : HostFree(allocation.begin);
}

cudaError_t DeviceSession::FreeAll() {
  TORPOR_TRY(health_.Check());
  channel_->ForgetMemory();
  for (const Allocation& allocation : process_.memory().All()) {
    if (allocation.device != device_) continue;
    TORPOR_TRY(Release(allocation));
  }
  return cudaSuccess;
}

cudaError_t DeviceSession::MemGetInfo(std::uint64_t& free_bytes, std::uint64_t& total_bytes) {
  std::uint64_t deferred = 0;
  const auto ask = [&] { return memory_.MemGetInfo(free_bytes, total_bytes); };
  TORPOR_TRY(deferred_.CountBeside(ask, deferred));
  free_bytes += deferred;
  return cudaSuccess;
}

cudaError_t DeviceSession::ShareMemory(std::uint64_t address, MemoryHandle& handle) {
  process_.memory().NoteSharing();
  if (IsOpen()) channel_->NoteLastingObstacle("memory is shared with other processes");
  std::array<std::uint8_t, 16> token{};
  const cudaError_t error = memory_.Share(address, token);
  if (error == cudaSuccess) handle = {hello_.session_id, address, token};
  return error;
}

cudaError_t DeviceSession::OpenMemory(const MemoryHandle& handle, Allocation& opened) {
  if (IsOpen()) channel_->NoteLastingObstacle("memory is shared with other processes");
  return process_.memory().Open(handle, process_.devices(), process_.primary_memory(), opened);
}

cudaError_t DeviceSession::CloseMemory(std::uint64_t address) {
  return process_.memory().Close(address, process_.primary_memory());
}

bool DeviceSession::HasMemoryAlone() const {
  return hello_.devices.size() == 1 && !process_.memory().WasShared();
}

std::uint64_t DeviceSession::PerThreadStream() { return ThreadStreamOf(*this); }

}  // namespace torpor::shim
