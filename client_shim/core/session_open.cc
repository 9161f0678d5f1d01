#include <pthread.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "client_shim/core/fork_guard.h"
#include "client_shim/core/session.h"
#include "client_shim/core/visible_devices.h"

namespace torpor::shim {

Session::Session(std::function<Settings()> read_settings)
    : first_(*this), read_settings_(std::move(read_settings)) {}

Session::Session(Session& first, int device, int index)
    : first_(first), device_(device), index_(index), read_settings_(first.read_settings_) {}

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
  const bool exists = device > 0 && static_cast<std::size_t>(device) < devices().size();
  if (!exists) return nullptr;
  return &OfIndex(first_.visible_ ? (*first_.visible_)[static_cast<std::size_t>(device)] : device);
}

Session& Session::OfIndex(int index) {
  if (index == first_.index_) return first_;
  std::lock_guard lock(first_.further_mutex_);
  std::unique_ptr<Session>& further = first_.further_[index];
  if (!further) further.reset(new Session(first_, VisibleDevice(index), index));
  return *further;
}

int Session::VisibleDevice(int index) const {
  if (!first_.visible_) return index;
  const std::vector<int>& visible = *first_.visible_;
  const auto found = std::find(visible.begin(), visible.end(), index);
  return found == visible.end() ? -1 : static_cast<int>(found - visible.begin());
}

ClientCore* Session::FindOpen(int index) {
  if (ForkGuard::InChild() || !first_.IsOpen()) return nullptr;
  if (index == first_.index_) return &first_;
  std::lock_guard lock(first_.further_mutex_);
  const auto found = first_.further_.find(index);
  return found != first_.further_.end() && found->second->IsOpen() ? found->second.get() : nullptr;
}

cudaError_t Session::Inquire(wire::InquiryReply& reply) const {
  const Settings settings = read_settings_();
  Log log;
  log.set_level(settings.log);
  const Time deadline = std::chrono::steady_clock::now() + settings.connect_timeout;
  Result<Handshake, cudaError_t> handshake =
      ShakeHands(settings, wire::Inquiry{HelloOf(settings)}, deadline);
  if (!handshake) {
    log.Warn(handshake.failure().message);
    return handshake.failure().code;
  }
  auto* const answer = std::get_if<wire::InquiryReply>(&handshake->answer);
  if (!answer || answer->free_bytes.size() != answer->devices.size())
    return cudaErrorInsufficientDriver;
  reply = std::move(*answer);
  return cudaSuccess;
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
  if (this == &first_)
    if (const cudaError_t error = ChooseDevices(); error != cudaSuccess) return error;
  ForkGuard::Install();
  const Time deadline = std::chrono::steady_clock::now() + settings_.connect_timeout;
  if (const cudaError_t error = Greet(deadline); error != cudaSuccess) return error;
  if (const cudaError_t error = MapRegions(deadline); error != cudaSuccess) return error;
  SendControl(wire::HelloAck{});
  ForkGuard::Watch(control_->fd());
  StartService();
  log_.Debug("session " + std::to_string(hello_.session_id) + " of function " + hello_.function);
  return cudaSuccess;
}

// By CUDA_VISIBLE_DEVICES, if it is set.
cudaError_t Session::ChooseDevices() {
  if (!settings_.visible_devices) return cudaSuccess;
  wire::InquiryReply reply;
  if (const cudaError_t error = Inquire(reply); error != cudaSuccess) return error;
  const std::string& text = *settings_.visible_devices;
  visible_ = VisibleDevices(text, reply.devices);
  if (visible_->empty()) {
    // Those who want none write nothing, or -1.
    if (!text.empty() && !text.starts_with('-'))
      log_.Warn("CUDA_VISIBLE_DEVICES=" + text + " leaves none of the function's " +
                std::to_string(reply.devices.size()) +
                " devices, which are numbered from 0; no call of CUDA will work");
    return cudaErrorNoDevice;
  }
  index_ = visible_->front();
  devices_.reserve(visible_->size());
  for (const int index : *visible_)
    devices_.push_back(std::move(reply.devices[static_cast<std::size_t>(index)]));
  if (index_ == 0) return cudaSuccess;
  head_ = &OfIndex(0);
  return head_->Start();
}

cudaError_t Session::Greet(Time deadline) {
  wire::ClientMessage hello = HelloOf(settings_);
  const Session& head = *first_.head_;
  if (this != &head)
    hello = wire::DeviceHello{HelloOf(settings_), head.hello_.session_id, head.hello_.session_key,
                              index_};
  Result<Handshake, cudaError_t> handshake = ShakeHands(settings_, hello, deadline);
  if (!handshake) return OpenFailed(handshake.failure().code, handshake.failure().message);
  auto* const reply = std::get_if<wire::HelloReply>(&handshake->answer);
  if (!reply) return OpenFailed(cudaErrorUnknown, "the Torpor daemon answered what was not asked");
  hello_ = std::move(*reply);
  http2_ = handshake->http2;
  control_ = std::move(handshake->control);
  if (this == &first_ && !visible_) devices_ = hello_.devices;
  return cudaSuccess;
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
  hello_.host_base = first_.head_->hello_.host_base;
  hello_.host_bytes = first_.head_->hello_.host_bytes;
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
